"""Operators that permute elements: transposition, reversal, layouts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, along_axis, as_it_is
from tilewright.relay.op.shapes import (
    Shape,
    combine,
    dims,
    normal_axis,
    product,
    require_multiple,
    same,
    shape_text,
    tensor,
    tensors,
)
from tilewright.relay.op.transform.layout_rules import convertible, newly, whole
from tilewright.relay.op.transform.support import Array, integers
from tilewright.tir.data_layout import Layout, bijective_layout


@attributes
class TransposeAttrs(OpAttrs):
    """The axis that comes to each place; None reverses them."""

    axes: tuple[int, ...] | None = None


def _permutation(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(rank))[::-1]
    chosen = tuple(normal_axis(axis, rank) for axis in axes)
    if sorted(chosen) != list(range(rank)):
        raise RelationError(f"transpose: {tuple(axes)} is not a permutation of {rank} axes")
    return chosen


def _transpose_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of transpose")
    if data is None:
        return None
    shape = dims(data)
    return TensorType([shape[axis] for axis in _permutation(attrs.axes, len(shape))], data.dtype)


def _transpose_gradient(primal: Any, grad: Any) -> list[Any]:
    axes = primal.attrs.axes
    if axes is None:
        return [call("transpose", grad)]
    order = _permutation(axes, len(axes))
    return [call("transpose", grad, axes=tuple(int(place) for place in np.argsort(order)))]


def _transpose_layout(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The result stays what it was; the axes are looked up by their letters where the new layout splits none."""
    old, new = original[0], newly(offered)
    if old is None or not old.defined or not whole(old):
        return as_it_is(attrs, offered, original, types)
    result = [old[axis] for axis in _permutation(attrs.axes, len(old))]
    if new is None or not convertible(new, old) or not whole(new):
        return Layouts((old,), (Layout("".join(result)),), attrs)
    axes = tuple(new.index_of(letter) for letter in result)
    return Layouts((new,), (Layout("".join(result)),), TransposeAttrs(axes))


_TRANSPOSE = define(
    "transpose",
    arguments=("data",),
    attrs=TransposeAttrs,
    relation=_transpose_relation,
    compute=lambda attrs, inputs, out_type: [topi.transpose(inputs[0], attrs.axes)],
    reference=lambda attrs, data: np.transpose(data, attrs.axes),
    gradient=_transpose_gradient,
    layout=_transpose_layout,
    kind=OpPattern.INJECTIVE,
    description="The axes in another order.",
)


def transpose(data: RelayExpr, axes: Sequence[int] | None = None) -> Call:
    """The axes in another order; reversed where ``axes`` is not given."""
    return Call(_TRANSPOSE, (data,), TransposeAttrs(None if axes is None else integers(axes, "transpose")))


@attributes
class ReverseAttrs(OpAttrs):
    """The axis along which the order is turned round."""

    axis: int = 0


def _reverse_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of reverse")
    if data is not None:
        normal_axis(attrs.axis, len(data.shape))
    return data


_REVERSE = define(
    "reverse",
    arguments=("data",),
    attrs=ReverseAttrs,
    relation=_reverse_relation,
    compute=lambda attrs, inputs, out_type: [topi.flip(inputs[0], attrs.axis)],
    reference=lambda attrs, data: np.flip(data, attrs.axis),
    gradient=lambda primal, grad: [call("reverse", grad, axis=primal.attrs.axis)],
    layout=along_axis,
    kind=OpPattern.INJECTIVE,
    description="The elements along an axis in the opposite order.",
)


def reverse(data: RelayExpr, axis: int) -> Call:
    """The elements along an axis in the opposite order."""
    return Call(_REVERSE, (data,), ReverseAttrs(axis))


@attributes
class ReverseSequenceAttrs(OpAttrs):
    """The axis along which each sequence runs, and the one that counts the sequences."""

    seq_axis: int = 1
    batch_axis: int = 0


def _reverse_sequence_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of reverse_sequence", "the lengths")
    if found is None:
        return None
    data, lengths = found
    shape = dims(data)
    batch = normal_axis(attrs.batch_axis, len(shape), "batch_axis")
    normal_axis(attrs.seq_axis, len(shape), "seq_axis")
    if len(lengths.shape) != 1 or not lengths.dtype.is_integral:
        raise RelationError(f"the lengths of reverse_sequence are a vector of integers, not {lengths}")
    same(dims(lengths)[0], shape[batch], "the number of lengths of reverse_sequence")
    return data


def _reverse_sequences(attrs: Any, data: Array, lengths: Array) -> Array:
    moved = np.moveaxis(data, (attrs.batch_axis, attrs.seq_axis), (0, 1)).copy()
    for row, length in zip(moved, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(moved, (0, 1), (attrs.batch_axis, attrs.seq_axis))


_REVERSE_SEQUENCE = define(
    "reverse_sequence",
    arguments=("data", "seq_lengths"),
    attrs=ReverseSequenceAttrs,
    relation=_reverse_sequence_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.reverse_sequence(inputs[0], inputs[1], attrs.seq_axis, attrs.batch_axis)
    ],
    reference=_reverse_sequences,
    kind=OpPattern.INJECTIVE,
    description="The first elements of each sequence, as many as its length, in the opposite order.",
)


def reverse_sequence(data: RelayExpr, seq_lengths: RelayExpr, seq_axis: int = 1, batch_axis: int = 0) -> Call:
    """The first elements of each sequence, as many as its length, in the opposite order."""
    return Call(_REVERSE_SEQUENCE, (data, seq_lengths), ReverseSequenceAttrs(seq_axis, batch_axis))


@attributes
class LayoutTransformAttrs(OpAttrs):
    """The layout that the data has and the one that it shall have."""

    src_layout: str = ""
    dst_layout: str = ""


def _through_layouts(shape: Shape, attrs: Any) -> Shape:
    source, destination = Layout(attrs.src_layout), Layout(attrs.dst_layout)
    if source == destination:
        return shape
    if bijective_layout(source, destination) is None:
        raise RelationError(f"a tensor of layout {source} can not have the layout {destination}")
    if len(source) != len(shape):
        raise RelationError(f"layout {source} has {len(source)} axes, the tensor is {shape_text(shape)}")
    by_axis = {source[place]: extent for place, extent in enumerate(shape)}
    made = []
    for place in range(len(destination)):
        axis = destination[place]
        whole, part = axis.upper(), axis.lower()
        extent = by_axis[whole]
        if part in by_axis:
            same(by_axis[part], source.factor_of(whole), f"part {part} of layout {source}")
            extent = combine(lambda a, b: a * b, extent, source.factor_of(whole))
        factor = destination.factor_of(axis)
        if factor > 0 and axis.islower():
            extent = factor
        elif factor > 0:
            message = f"axis {whole} of size {extent} does not divide by {factor}: {destination}"
            require_multiple(extent, factor, message)
            extent = combine(lambda a, b: a // b, extent, factor)
        made.append(extent)
    return tuple(made)


def _layout_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of layout_transform")
    return data and TensorType(_through_layouts(dims(data), attrs), data.dtype)


def _transformed(attrs: Any, data: Array) -> Array:
    """Parts moved next to their axis, the axes in order; then fused, split and ordered as in the new layout."""
    source, destination = Layout(attrs.src_layout), Layout(attrs.dst_layout)
    _through_layouts(data.shape, attrs)
    axes = source.primal_axes()
    beside = [source.index_of(one) for axis in axes for one in (axis, axis.lower()) if one in source]
    whole = data.transpose(beside).reshape(
        [data.shape[source.index_of(axis)] * max(source.factor_of(axis), 1) for axis in axes]
    )
    parts, letters = [], []
    for axis, extent in zip(axes, whole.shape, strict=True):
        factor = destination.factor_of(axis)
        parts += [extent] if factor < 0 else [extent // factor, factor]
        letters += [axis] if factor < 0 else [axis, axis.lower()]
    order = [letters.index(destination[place]) for place in range(len(destination))]
    return whole.reshape(parts).transpose(order)


_LAYOUT_TRANSFORM = define(
    "layout_transform",
    arguments=("data",),
    attrs=LayoutTransformAttrs,
    relation=_layout_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.layout_transform(inputs[0], attrs.src_layout, attrs.dst_layout)
    ],
    reference=_transformed,
    gradient=lambda primal, grad: [
        call("layout_transform", grad, src_layout=primal.attrs.dst_layout, dst_layout=primal.attrs.src_layout)
    ],
    kind=OpPattern.INJECTIVE,
    level=5,
    description="The data in another layout.",
)


def layout_transform(data: RelayExpr, src_layout: str, dst_layout: str) -> Call:
    """The data in another layout, such as from NCHW to NCHW16c."""
    return Call(_LAYOUT_TRANSFORM, (data,), LayoutTransformAttrs(str(src_layout), str(dst_layout)))


@attributes
class AutoSchedulerLayoutTransformAttrs(OpAttrs):
    """Two orders of parts of axes, such as "4n8c2n": each part has its size before the name of its axis."""

    src_layout: str = ""
    dst_layout: str = ""


_PART = re.compile(r"(\d+)([A-Za-z_]+)")


def parts_of(layout: str) -> list[tuple[int, str]]:
    """The sizes and axes of a layout of the search: "4n8c2n" is 4 of n, 8 of c, 2 of n."""
    found = [(int(size), axis) for size, axis in _PART.findall(layout)]
    if not found or "".join(f"{size}{axis}" for size, axis in found) != layout:
        raise RelationError(f"layout {layout!r} is not a row of sizes and names of axes, as in 4n8c2n")
    return found


def _search_layout_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of auto_scheduler_layout_transform")
    if data is None:
        return None
    sizes = [size for size, _ in parts_of(attrs.src_layout)]
    shape = [size for size, _ in parts_of(attrs.dst_layout)]
    have = dims(data)
    message = f"a tensor {shape_text(have)} has not the layout {attrs.src_layout}"
    if len(have) != len(sizes):
        raise RelationError(message)
    for extent, size in zip(have, sizes, strict=True):
        same(extent, size, message)
    if product(sizes) != product(shape):
        raise RelationError(f"layouts {attrs.src_layout} and {attrs.dst_layout} have different sizes")
    return TensorType(shape, data.dtype)


def _search_layout_transformed(attrs: Any, data: Array) -> Array:
    source, destination = parts_of(attrs.src_layout), parts_of(attrs.dst_layout)
    axes = list(dict.fromkeys(axis for _, axis in source))
    order = [place for axis in axes for place, (_, name) in enumerate(source) if name == axis]
    split = [(size, axis) for axis in axes for size, name in destination if name == axis]
    numbered = [
        (axis, sum(name == axis for _, name in destination[:place]))
        for place, (_, axis) in enumerate(destination)
    ]
    given = [(axis, sum(name == axis for _, name in split[:place])) for place, (_, axis) in enumerate(split)]
    joined = data.transpose(order).reshape([size for size, _ in split])
    return np.ascontiguousarray(joined.transpose([given.index(one) for one in numbered]))


_AUTO_SCHEDULER_LAYOUT_TRANSFORM = define(
    "auto_scheduler_layout_transform",
    arguments=("data",),
    attrs=AutoSchedulerLayoutTransformAttrs,
    relation=_search_layout_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.auto_scheduler_layout_transform(inputs[0], attrs.src_layout, attrs.dst_layout)
    ],
    reference=_search_layout_transformed,
    kind=OpPattern.INJECTIVE,
    level=5,
    description="The data in the layout that a search of schedules chose.",
)


def auto_scheduler_layout_transform(data: RelayExpr, src_layout: str, dst_layout: str) -> Call:
    """The data in the layout that a search of schedules chose."""
    attrs = AutoSchedulerLayoutTransformAttrs(src_layout, dst_layout)
    return Call(_AUTO_SCHEDULER_LAYOUT_TRANSFORM, (data,), attrs)
