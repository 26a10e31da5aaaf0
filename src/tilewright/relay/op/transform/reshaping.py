"""Operators that change the shape but not the elements or their order."""

from __future__ import annotations

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
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, as_it_is
from tilewright.relay.op.shapes import (
    Shape,
    dims,
    equal_dimensions,
    known,
    normal_axes,
    product,
    require,
    shape_text,
    tensor,
    tensors,
)
from tilewright.relay.op.transform.layout_rules import convertible, newly, whole
from tilewright.relay.op.transform.reshape_rule import reshaped, reshaped_from_the_right
from tilewright.relay.op.transform.support import as_expression, integers, is_computed, result_shape
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout


def _like_data(primal: Any, grad: Any) -> list[Any]:
    """The gradient in the shape that the argument had."""
    return [call("reshape_like", grad, primal.args[0])]


def _to_result_shape(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    return [topi.reshape(inputs[0], result_shape(out_type))]


@attributes
class ReshapeAttrs(OpAttrs):
    """The new shape, with codes (see ``reshape_rule``), and whether 0 is a size rather than a code."""

    newshape: tuple[int, ...] | None = None
    allowzero: bool = False


def _reshape_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of reshape")
    return data and TensorType(reshaped(dims(data), attrs.newshape, attrs.allowzero), data.dtype)


_RESHAPE = define(
    "reshape",
    arguments=("data",),
    attrs=ReshapeAttrs,
    relation=_reshape_relation,
    compute=_to_result_shape,
    reference=lambda attrs, data: data.reshape(reshaped(data.shape, attrs.newshape, attrs.allowzero)),
    gradient=_like_data,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    noncomputational=True,
    level=1,
    description="The elements in another shape.",
)


def reshape(data: RelayExpr, newshape: Any, allowzero: bool = False) -> Call:
    """The elements in another shape. ``newshape`` are numbers, codes (0 keeps a dimension, -1 is what is left, -2 keeps
    all that remain, -3 joins two, -4 splits one) or an expression that computes them."""
    if is_computed(newshape):
        return call("dyn.reshape", data, newshape, allowzero=allowzero)
    return Call(_RESHAPE, (data,), ReshapeAttrs(integers(newshape, "reshape"), allowzero))


def _reverse_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of reverse_reshape")
    return data and TensorType(reshaped_from_the_right(dims(data), attrs.newshape), data.dtype)


_REVERSE_RESHAPE = define(
    "contrib_reverse_reshape",
    arguments=("data",),
    attrs=ReshapeAttrs,
    relation=_reverse_relation,
    compute=_to_result_shape,
    reference=lambda attrs, data: data.reshape(reshaped_from_the_right(data.shape, attrs.newshape)),
    gradient=_like_data,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    noncomputational=True,
    level=10,
    description="The elements in another shape, whose codes are read from the right.",
)


def reverse_reshape(data: RelayExpr, newshape: Any) -> Call:
    """The elements in another shape, whose codes are read from the right: (10, 5, 4) with (-1, 0) is (50, 4)."""
    return Call(_REVERSE_RESHAPE, (data,), ReshapeAttrs(integers(newshape, "reverse_reshape")))


@attributes
class ReshapeLikeAttrs(OpAttrs):
    """The ranges of dimensions that are replaced, and that replace them."""

    lhs_begin: int = 0
    lhs_end: int | None = None
    rhs_begin: int = 0
    rhs_end: int | None = None


def _reshaped_like(data: Shape, like: Shape, attrs: Any) -> Shape:
    begin, end, _ = slice(attrs.lhs_begin, attrs.lhs_end).indices(len(data))
    like_begin, like_end, _ = slice(attrs.rhs_begin, attrs.rhs_end).indices(len(like))
    if begin > end or like_begin > like_end:
        raise RelationError("reshape_like: a range of dimensions begins after its end")
    shape = (*data[:begin], *like[like_begin:like_end], *data[end:])
    before, after = product(data), product(shape)
    message = f"reshape_like: {before} elements of {shape_text(data)} do not fit into {shape_text(shape)}"
    require(equal_dimensions, (before, after), message)
    return shape


def _reshape_like_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of reshape_like", "the tensor whose shape is taken")
    return (
        None
        if found is None
        else TensorType(_reshaped_like(dims(found[0]), dims(found[1]), attrs), found[0].dtype)
    )


_RESHAPE_LIKE = define(
    "reshape_like",
    arguments=("data", "shape_like"),
    attrs=ReshapeLikeAttrs,
    relation=_reshape_like_relation,
    compute=_to_result_shape,
    reference=lambda attrs, data, like: data.reshape(_reshaped_like(data.shape, like.shape, attrs)),
    gradient=lambda primal, grad: [*_like_data(primal, grad), call("zeros_like", primal.args[1])],
    kind=OpPattern.INJECTIVE,
    description="The elements in the shape of another tensor, or with some dimensions of it.",
)


def reshape_like(
    data: RelayExpr,
    shape_like: RelayExpr,
    lhs_begin: int = 0,
    lhs_end: int | None = None,
    rhs_begin: int = 0,
    rhs_end: int | None = None,
) -> Call:
    """The elements with dimensions ``lhs_begin`` to ``lhs_end`` replaced by those of ``shape_like``."""
    attrs = ReshapeLikeAttrs(lhs_begin, lhs_end, rhs_begin, rhs_end)
    return Call(_RESHAPE_LIKE, (data, shape_like), attrs)


@attributes
class ExpandDimsAttrs(OpAttrs):
    """Where new dimensions of size one go, and how many."""

    axis: int = 0
    num_newaxis: int = 1


def expanded(shape: Shape, axis: int, count: int) -> Shape:
    """The shape with ``count`` dimensions of size one before ``axis``, which may be the rank and may be negative."""
    rank = len(shape)
    if count < 0:
        raise RelationError(f"expand_dims: {count} new dimensions can not be")
    if not -rank - 1 <= axis <= rank:
        raise RelationError(f"expand_dims: axis {axis} is out of range for a tensor of {rank} dimensions")
    place = axis + rank + 1 if axis < 0 else axis
    return (*shape[:place], *[1] * count, *shape[place:])


def _expand_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of expand_dims")
    return data and TensorType(expanded(dims(data), attrs.axis, attrs.num_newaxis), data.dtype)


_EXPAND_DIMS = define(
    "expand_dims",
    arguments=("data",),
    attrs=ExpandDimsAttrs,
    relation=_expand_relation,
    compute=lambda attrs, inputs, out_type: [topi.expand_dims(inputs[0], attrs.axis, attrs.num_newaxis)],
    reference=lambda attrs, data: data.reshape(expanded(data.shape, attrs.axis, attrs.num_newaxis)),
    gradient=_like_data,
    layout=as_it_is,
    kind=OpPattern.BROADCAST,
    noncomputational=True,
    level=1,
    description="New dimensions of size one.",
)


def expand_dims(data: RelayExpr, axis: Any, num_newaxis: int = 1) -> Call:
    """New dimensions of size one before ``axis``; a negative one counts from behind the last dimension."""
    if is_computed(axis):
        return call("dyn.expand_dims", data, axis, num_newaxis=num_newaxis)
    return Call(_EXPAND_DIMS, (data,), ExpandDimsAttrs(integers(axis, "expand_dims")[0], num_newaxis))


@attributes
class SqueezeAttrs(OpAttrs):
    """The axes of size one to drop; None for every one that is known to be one."""

    axis: tuple[int, ...] | None = None


def squeezed_axes(shape: Shape, axis: Sequence[int] | None) -> tuple[int, ...]:
    """The axes that squeeze drops."""
    if axis is None:
        if not known(*shape):
            raise RelationError(
                f"squeeze: which dimensions of {shape_text(shape)} are one is not known, give the axes"
            )
        return tuple(place for place, extent in enumerate(shape) if extent == 1)
    axes = normal_axes(axis, len(shape))
    for place in axes:
        require(
            equal_dimensions,
            (shape[place], 1),
            f"squeeze: dimension {place} of {shape_text(shape)} is not one",
        )
    return axes


def _squeeze_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of squeeze")
    if data is None:
        return None
    shape = dims(data)
    dropped = squeezed_axes(shape, attrs.axis)
    return TensorType([extent for place, extent in enumerate(shape) if place not in dropped], data.dtype)


def _squeeze_layout(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The dropped axes are those of the same letters; a dropped axis can not be split."""
    old, new = original[0], newly(offered)
    if old is None or not whole(old):
        return as_it_is(attrs, offered, original, types)
    if new is None or not convertible(new, old):
        new = old
    letters = [old[place] for place in squeezed_axes(dims(types[0]), attrs.axis)]
    if any(new.factor_of(letter) > 0 for letter in letters):
        new = old
    kept = "".join(
        f"{new.factor_of(letter)}{letter}" if letter.islower() else letter
        for letter in (new[place] for place in range(len(new)))
        if letter not in letters
    )
    axes = tuple(sorted(new.index_of(letter) for letter in letters))
    return Layouts((new,), (Layout(kept) if kept else None,), SqueezeAttrs(axes))


_SQUEEZE = define(
    "squeeze",
    arguments=("data",),
    attrs=SqueezeAttrs,
    relation=_squeeze_relation,
    compute=_to_result_shape,
    reference=lambda attrs, data: np.squeeze(data, squeezed_axes(data.shape, attrs.axis)),
    gradient=_like_data,
    layout=_squeeze_layout,
    kind=OpPattern.INJECTIVE,
    noncomputational=True,
    description="The tensor without dimensions of size one.",
)


def squeeze(data: RelayExpr, axis: Any = None) -> Call:
    """The tensor without some dimensions of size one: those of ``axis``, or all."""
    if is_computed(axis):
        return call("dyn.squeeze", data, as_expression(axis))
    return Call(_SQUEEZE, (data,), SqueezeAttrs(None if axis is None else integers(axis, "squeeze")))
