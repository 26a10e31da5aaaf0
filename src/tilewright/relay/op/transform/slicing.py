"""Operators that read and replace parts of tensors by begin, end and stride."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import PrimExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.op.shapes import (
    Dimension,
    Shape,
    combine,
    dims,
    normal_axes,
    normal_axis,
    require_at_most,
    shape_text,
    tensor,
    tensors,
)
from tilewright.relay.op.transform.layout_rules import convertible, newly
from tilewright.relay.op.transform.support import (
    Array,
    as_expression,
    constant_list,
    constant_shape,
    greatest,
    integers,
    is_computed,
    least,
)
from tilewright.support.errors import ExpressionError, OpNotImplemented
from tilewright.te.tensor import Tensor

_MODES = ("end", "size")


@attributes
class StridedSliceAttrs(OpAttrs):
    """Where each axis begins, ends and by how much it steps.

    With ``slice_mode`` "size" the ends are sizes, of which a negative one reaches to the end, and steps are one. None
    as a begin or end stands for the whole of the axis. ``axes`` names the axes; without it they are the first ones.
    """

    begin: tuple[int | None, ...] | None = None
    end: tuple[int | None, ...] | None = None
    strides: tuple[int, ...] | None = None
    slice_mode: str = "end"
    axes: tuple[int, ...] | None = None

    def check(self) -> None:
        """The mode is known and no step is zero."""
        if self.slice_mode not in _MODES:
            raise ExpressionError(f"strided_slice: slice_mode is 'end' or 'size', not {self.slice_mode!r}")
        if self.strides is not None and 0 in self.strides:
            raise ExpressionError("strided_slice: a stride is zero")


LARGEST_EXTENT = 2**31 - 1
"""Dimensions that are known only at run time are 32-bit numbers."""


def _place(index: int | None, size: Dimension, step: int, default: Dimension) -> Dimension:
    """A begin or end as Python reads it: negative ones count from the back, and all are held within the axis."""
    if index is None:
        return default
    low, high = (0, size) if step > 0 else (-1, combine(lambda a: a - 1, size))
    if not isinstance(size, int) and abs(index) > LARGEST_EXTENT:
        # "To the end", as exporters write it. Its type would widen the dimension beyond that of the loops.
        return high if index > 0 else low
    counted = combine(lambda a: a + index, size) if index < 0 else index
    return least(greatest(counted, low), high)


def _given(attrs: Any, place: int) -> tuple[int | None, int | None, int]:
    """Begin, end and step of one axis as they are given; None for a whole axis."""
    begin = attrs.begin[place] if attrs.begin is not None and place < len(attrs.begin) else None
    end = attrs.end[place] if attrs.end is not None and place < len(attrs.end) else None
    if attrs.slice_mode == "size":
        return begin, end, 1
    return begin, end, attrs.strides[place] if attrs.strides is not None and place < len(attrs.strides) else 1


def _bounds(attrs: Any, place: int, size: Dimension) -> tuple[Dimension, Dimension, int]:
    """Begin, end and step of one axis of this size; none is negative but for the end of a step backwards."""
    begin, end, step = _given(attrs, place)
    if attrs.slice_mode == "size":
        first = _place(begin, size, 1, 0)
        if end is None or end < 0 or (end > LARGEST_EXTENT and not isinstance(size, int)):
            return first, size, 1
        return first, least(combine(lambda a: a + end, first), size), 1
    if step > 0:
        return _place(begin, size, step, 0), _place(end, size, step, size), step
    last = combine(lambda a: a - 1, size)
    return _place(begin, size, step, last), _place(end, size, step, -1), step


def _count(begin: Dimension, end: Dimension, step: int) -> Dimension:
    """How many elements there are from begin to end."""
    distance = combine(lambda a, b: b - a if step > 0 else a - b, begin, end)
    return greatest(combine(lambda a: (a + abs(step) - 1) // abs(step), distance), 0)


def _sliced_axes(attrs: Any, rank: int) -> list[int]:
    lengths = [len(one) for one in (attrs.begin, attrs.end) if one is not None]
    if attrs.axes is None:
        axes = list(range(max(lengths, default=0)))
        if len(axes) > rank:
            raise RelationError(f"strided_slice: {len(axes)} begins or ends for {rank} dimensions")
        return axes
    if any(length != len(attrs.axes) for length in lengths):
        raise RelationError(f"strided_slice: {len(attrs.axes)} axes, and begins and ends {lengths}")
    normal_axes(attrs.axes, rank)
    return [normal_axis(axis, rank) for axis in attrs.axes]


def sliced_shape(shape: Shape, attrs: Any) -> Shape:
    """The shape of a slice."""
    made = list(shape)
    for place, axis in enumerate(_sliced_axes(attrs, len(shape))):
        made[axis] = _count(*_bounds(attrs, place, shape[axis]))
    return tuple(made)


def _slice_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of strided_slice")
    return data and TensorType(sliced_shape(dims(data), attrs), data.dtype)


def _slice_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data = inputs[0]
    axes = _sliced_axes(attrs, len(data.shape))
    if not axes:
        return [topi.identity(data)]
    begins, ends, steps = [], [], []
    for place, axis in enumerate(axes):
        begin, end, step = _given(attrs, place)
        size = data.shape[axis]
        begins.append((0 if step > 0 else size - 1) if begin is None else begin)
        ends.append((size if step > 0 else -size - 1) if end is None else end)
        steps.append(step)
    return [topi.strided_slice(data, begins, ends, steps, axes, attrs.slice_mode)]


def python_slices(attrs: Any, shape: Sequence[int]) -> tuple[slice, ...]:
    """The slice that ``strided_slice`` takes of each axis."""
    made = [slice(None)] * len(shape)
    for place, axis in enumerate(_sliced_axes(attrs, len(shape))):
        begin, end, step = _given(attrs, place)
        if attrs.slice_mode == "size":
            begin, end, step = _bounds(attrs, place, shape[axis])  # type: ignore[assignment]
        made[axis] = slice(begin, end, step)
    return tuple(made)


def _slice_gradient(primal: Any, grad: Any) -> list[Any]:
    """The gradient in its place, zero around it."""
    data = primal.args[0]
    shape = dims(data.checked_type)
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) != len(shape):
        raise OpNotImplemented(
            f"the gradient of strided_slice needs a constant shape, not {shape_text(shape)}"
        )
    begins, ends, steps = [], [], []
    for size, one in zip(sizes, python_slices(primal.attrs, sizes), strict=True):
        step = one.step or 1
        begins.append((0 if step > 0 else size - 1) if one.start is None else one.start)
        ends.append((size if step > 0 else -size - 1) if one.stop is None else one.stop)
        steps.append(step)
    bounds = [const(np.asarray(numbers), "int64") for numbers in (begins, ends, steps)]
    return [call("strided_set", call("zeros_like", data), grad, *bounds)]


def _slice_layout(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Axes are looked up by their letters. Where an axis is split into parts, begin and end must divide by their size
    and the step must be one."""
    old, new = original[0], newly(offered)
    kept = Layouts((old,), (old,), attrs)
    if old is None or new is None or not convertible(new, old):
        return kept
    begins, ends, steps, axes = [], [], [], []
    for place, axis in enumerate(_sliced_axes(attrs, len(old))):
        begin, end, step = _bounds(attrs, place, dims(types[0])[axis])
        factor = max(new.factor_of(old[axis]), 1)
        if not isinstance(begin, int) or not isinstance(end, int) or (factor > 1 and step != 1):
            return kept
        if begin % factor or end % factor:
            return kept
        begins.append(begin // factor)
        ends.append(None if end < 0 else end // factor)
        steps.append(step)
        axes.append(new.index_of(old[axis]))
    made = StridedSliceAttrs(tuple(begins), tuple(ends), tuple(steps), "end", tuple(axes))
    return Layouts((new,), (new,), made)


_STRIDED_SLICE = define(
    "strided_slice",
    arguments=("data",),
    attrs=StridedSliceAttrs,
    relation=_slice_relation,
    compute=_slice_compute,
    reference=lambda attrs, data: data[python_slices(attrs, data.shape)],
    gradient=_slice_gradient,
    layout=_slice_layout,
    kind=OpPattern.INJECTIVE,
    level=4,
    description="The part of a tensor from begin to end, by strides.",
)


def _whole_numbers(value: Any) -> tuple[int | None, ...] | None:
    """Begins or ends that are known here."""
    if value is None:
        return None
    items = constant_list(value)
    if items is None:
        items = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
    return tuple(None if one is None else integers(one, "strided_slice")[0] for one in items)


def strided_slice(
    data: RelayExpr,
    begin: Any,
    end: Any,
    strides: Any = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Call:
    """``data[begin:end:strides]`` on the first axes, or on ``axes``, as Python slices.

    With ``slice_mode="size"`` the ends are sizes, and a negative one reaches to the end of its axis. Any of the bounds
    may be an expression.
    """
    if is_computed(begin) or is_computed(end) or is_computed(strides):
        if axes is not None:
            raise ExpressionError("strided_slice takes axes only where begin, end and strides are constants")
        bounds = [as_expression(one) for one in (begin, end, [1] if strides is None else strides)]
        return call("dyn.strided_slice", data, *bounds, slice_mode=slice_mode)
    attrs = StridedSliceAttrs(
        _whole_numbers(begin),
        _whole_numbers(end),
        None if strides is None else integers(strides, "strided_slice"),
        slice_mode,
        None if axes is None else integers(axes, "strided_slice"),
    )
    return Call(_STRIDED_SLICE, (data,), attrs)


def _set_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of strided_set", "the values", "begin", "end", "strides")
    if found is None:
        return None
    data, values, *bounds = found
    if values.dtype is not data.dtype:
        raise RelationError(f"strided_set: element types {data.dtype} and {values.dtype} differ")
    if len(values.shape) != len(data.shape):
        raise RelationError(f"strided_set: {values} can not replace a part of {data}")
    for name, bound in zip(("begin", "end", "strides"), bounds, strict=True):
        if len(bound.shape) != 1 or not bound.dtype.is_integral:
            raise RelationError(f"strided_set: {name} is a vector of integers, not {bound}")
        if constant_shape(bound, name)[0] > len(data.shape):
            raise RelationError(f"strided_set: {name} has more numbers than {data} has dimensions")
    return data


def _set_reference(attrs: Any, data: Array, values: Array, begin: Array, end: Array, strides: Array) -> Array:
    made = data.copy()
    slices = []
    for axis in range(data.ndim):
        step = int(strides[axis]) if axis < len(strides) else 1
        first = int(begin[axis]) if axis < len(begin) else None
        last = int(end[axis]) if axis < len(end) else None
        slices.append(slice(first, last, step))
    made[tuple(slices)] = values
    return made


_STRIDED_SET = define(
    "strided_set",
    arguments=("data", "v", "begin", "end", "strides"),
    relation=_set_relation,
    compute=lambda attrs, inputs, out_type: [topi.strided_set(*inputs)],
    reference=_set_reference,
    kind=OpPattern.INJECTIVE,
    level=4,
    description="A tensor with the part from begin to end replaced.",
)


def strided_set(data: RelayExpr, v: RelayExpr, begin: Any, end: Any, strides: Any = None) -> Call:
    """The tensor with ``data[begin:end:strides]`` replaced by ``v``."""
    bounds = [as_expression(one) for one in (begin, end, [1] if strides is None else strides)]
    return Call(_STRIDED_SET, (data, v, *bounds))


@attributes
class SliceLikeAttrs(OpAttrs):
    """The axes that are cut; None for all that both tensors have."""

    axes: tuple[int, ...] | None = None


def _slice_like_shape(data: Shape, like: Shape, axes: Sequence[int] | None) -> Shape:
    if axes is None:
        chosen = tuple(range(min(len(data), len(like))))
    else:
        chosen = tuple(normal_axis(axis, len(data)) for axis in axes)
    made = list(data)
    for axis in chosen:
        if axis >= len(like):
            raise RelationError(f"slice_like: {shape_text(like)} has no dimension {axis}")
        size, wanted = made[axis], like[axis]
        require_at_most(wanted, size, f"slice_like: {wanted} elements can not be cut from {size}")
        made[axis] = wanted
    return tuple(made)


def _slice_like_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of slice_like", "the tensor whose shape is taken")
    return (
        None
        if found is None
        else TensorType(_slice_like_shape(dims(found[0]), dims(found[1]), attrs.axes), found[0].dtype)
    )


def _slice_like_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, like = inputs
    shape = _slice_like_shape(tuple(data.shape), tuple(like.shape), attrs.axes)
    ends: list[PrimExpr] = list(shape)  # type: ignore[arg-type]
    return [topi.strided_slice(data, [0] * len(ends), ends)] if ends else [topi.identity(data)]


_SLICE_LIKE = define(
    "slice_like",
    arguments=("data", "shape_like"),
    attrs=SliceLikeAttrs,
    relation=_slice_like_relation,
    compute=_slice_like_compute,
    reference=lambda attrs, data, like: data[
        tuple(slice(size) for size in _slice_like_shape(data.shape, like.shape, attrs.axes))
    ],
    kind=OpPattern.INJECTIVE,
    level=10,
    description="The first elements along each axis, as many as another tensor has.",
)


def slice_like(data: RelayExpr, shape_like: RelayExpr, axes: Sequence[int] | None = None) -> Call:
    """The first elements along each axis (or some axes), as many as another tensor has."""
    chosen = None if axes is None or len(axes) == 0 else integers(axes, "slice_like")
    return Call(_SLICE_LIKE, (data, shape_like), SliceLikeAttrs(chosen))
