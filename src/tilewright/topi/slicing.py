"""Parts of tensors by begin, end and stride, as Python slices them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr, Select, SizeVar
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.op import all as all_of
from tilewright.tir.op import if_then_else
from tilewright.topi.arguments import as_int, as_ints, real_axes, real_axis
from tilewright.topi.computed import computed
from tilewright.topi.tag import INJECTIVE
from tilewright.topi.utils import ceil_div, make_idx, within_index

Bounds = Tensor | Sequence[ExprLike]


def _simplified(expr: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """The expression simplified, knowing that a dimension is not negative."""
    analyzer = Analyzer()
    with analyzer.constraint_scope(extent >= 0):
        return analyzer.simplify(expr)


def _canonical(index: PrimExpr, extent: PrimExpr, stride: int) -> PrimExpr:
    """A begin or end as an index from the front, clamped to what the direction allows."""
    low, high = (operators.const(0), extent) if stride > 0 else (operators.const(-1), extent - 1)
    if isinstance(index, IntImm):
        if _is_beyond(index, extent):
            return high if index.value > 0 else low
        counted = extent + index if index.value < 0 else index
    else:
        index = _as_index(index)
        counted = Select(index < 0, index + extent, index)
    return _simplified(operators.maximum(operators.minimum(counted, high), low), extent)


def _as_index(bound: PrimExpr) -> PrimExpr:
    """A bound that a tensor of narrow integers or of floating-point numbers gives, in a type to calculate with."""
    narrow = not bound.dtype.is_integral or bound.dtype.bits < 32
    return operators.cast("int32", bound) if narrow else bound


def _is_beyond(index: IntImm, extent: PrimExpr) -> bool:
    """True for a number that no dimension of this type reaches, "to the end" as exporters write it: arithmetic with it
    would be in a wider type than that of the loops."""
    return bool(abs(index.value) >= 1 << (extent.dtype.bits - 1))


def _slice_extent(begin: PrimExpr, end: PrimExpr, stride: int, extent: PrimExpr) -> PrimExpr:
    distance = end - begin if stride > 0 else begin - end
    count = ceil_div(operators.as_expr(distance), abs(stride))
    return _simplified(operators.maximum(count, 0), extent)


def strided_slice(
    a: Tensor,
    begin: Bounds,
    end: Bounds,
    strides: Bounds | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Tensor:
    """``a[begin:end:strides]`` on the first axes, or on ``axes``; indices are clamped to the tensor as in Python.

    With ``slice_mode="size"``, ``end`` gives sizes, of which a negative one reaches to the end of its axis, and the
    strides are all 1. Where begin, end or strides are tensors, the result has new symbolic dimensions.
    """
    if isinstance(begin, Tensor) or isinstance(end, Tensor) or isinstance(strides, Tensor):
        if slice_mode != "end" or axes is not None:
            raise ExpressionError(
                "strided_slice: bounds in tensors go with slice_mode 'end' and without axes"
            )
        return _slice_by_tensors(a, begin, end, strides)
    if slice_mode not in ("end", "size"):
        raise ExpressionError(f"strided_slice: slice_mode is 'end' or 'size', not {slice_mode!r}")
    begins = [operators.as_expr(value) for value in begin]
    ends = [operators.as_expr(value) for value in end]
    rank = len(a.shape)
    if axes is None:
        chosen = list(range(max(len(begins), len(ends))))
    else:
        chosen = [real_axis("strided_slice", axis, rank) for axis in axes]
        real_axes("strided_slice", chosen, rank)
    if len(chosen) > rank or len(begins) > len(chosen) or len(ends) > len(chosen):
        raise ExpressionError(
            f"strided_slice: {len(begins)} begins and {len(ends)} ends for {len(chosen)} axes of {shape_text(a.shape)}"
        )
    steps = _strides(strides, len(chosen), slice_mode)
    plan: dict[int, tuple[PrimExpr, int]] = {}
    shape = list(a.shape)
    for order, axis in enumerate(chosen):
        extent, step = a.shape[axis], steps[order]
        start = _begin(begins, order, extent, step)
        stop = _end(ends, order, start, extent, step, slice_mode)
        plan[axis] = (start, step)
        shape[axis] = _slice_extent(start, stop, step, extent)

    def element(*i: PrimExpr) -> PrimExpr:
        return a(
            *[
                index * plan[axis][1] + plan[axis][0] if axis in plan else index
                for axis, index in enumerate(i)
            ]
        )

    return computed(shape, element, name="T_strided_slice", tag=INJECTIVE)


def _strides(strides: Any, count: int, slice_mode: str) -> list[int]:
    """One stride an axis; those not given are 1."""
    if strides is None or slice_mode == "size":
        return [1] * count
    given = as_ints("strided_slice", "a stride", strides)
    if len(given) == 1:
        given *= count
    if 0 in given or len(given) > count:
        raise ExpressionError(f"strided_slice: strides {given} for {count} axes; none may be zero")
    return given + [1] * (count - len(given))


def _begin(begins: list[PrimExpr], order: int, extent: PrimExpr, stride: int) -> PrimExpr:
    if order < len(begins):
        return _canonical(begins[order], extent, stride)
    return operators.const(0) if stride > 0 else extent - 1


def _end(
    ends: list[PrimExpr], order: int, begin: PrimExpr, extent: PrimExpr, stride: int, slice_mode: str
) -> PrimExpr:
    if order >= len(ends):
        return extent if stride > 0 else operators.const(-1)
    end = ends[order]
    if slice_mode == "end":
        return _canonical(end, extent, stride)
    if isinstance(end, IntImm):
        reach = extent if end.value < 0 or _is_beyond(end, extent) else operators.minimum(begin + end, extent)
    else:
        reach = Select(end < 0, extent, operators.minimum(begin + end, extent))
    return _simplified(reach, extent)


def _slice_by_tensors(a: Tensor, begin: Any, end: Any, strides: Any) -> Tensor:
    """A slice whose bounds are known at run time: the caller's output has the number of elements."""
    _check_length("strided_slice", a, begin, end, strides)
    count = _length("strided_slice", begin)
    shape = [SizeVar("dim", "int32") if axis < count else extent for axis, extent in enumerate(a.shape)]

    def element(*i: PrimExpr) -> PrimExpr:
        index: list[PrimExpr] = []
        for axis, position in enumerate(i):
            if axis >= count:
                index.append(position)
                continue
            extent = a.shape[axis]
            stride = _bound(strides, axis, 1)
            first = _runtime_canonical(_bound(begin, axis, 0), extent, stride)
            read = first + position * stride
            index.append(operators.maximum(operators.minimum(read, extent - 1), 0))
        return a(*index)

    return computed(shape, element, name="T_strided_slice_dynamic", tag=INJECTIVE)


dynamic_strided_slice = strided_slice


def _length(name: str, bounds: Any) -> int:
    """How many axes the bounds cover."""
    if not isinstance(bounds, Tensor):
        return len(bounds)
    if len(bounds.shape) != 1:
        raise ExpressionError(f"{name}: bounds are a vector, not {shape_text(bounds.shape)}")
    return as_int(name, "the number of bounds", bounds.shape[0])


def _check_length(name: str, a: Tensor, *all_bounds: Any) -> None:
    """Require at most one bound for each axis."""
    for bounds in all_bounds:
        if bounds is not None and _length(name, bounds) > len(a.shape):
            raise ExpressionError(
                f"{name}: {_length(name, bounds)} bounds for the axes of {shape_text(a.shape)}"
            )


def _bound(bounds: Any, axis: int, default: ExprLike) -> PrimExpr:
    """The bound of an axis, or the default where there is none."""
    if bounds is None or axis >= _length("slice", bounds):
        return operators.as_expr(default)
    return bounds(axis) if isinstance(bounds, Tensor) else operators.as_expr(bounds[axis])


def _runtime_canonical(index: PrimExpr, extent: PrimExpr, stride: PrimExpr) -> PrimExpr:
    """Like ``_canonical``, for a stride that is known at run time."""
    index, stride = _as_index(index), _as_index(stride)
    counted = Select(index < 0, index + extent, index)
    low = Select(stride < 0, operators.const(-1), operators.const(0))
    high = Select(stride < 0, extent - 1, extent)
    return operators.maximum(operators.minimum(counted, high), low)


def strided_set(a: Tensor, v: Tensor, begin: Bounds, end: Bounds, strides: Bounds | None = None) -> Tensor:
    """The tensor with ``a[begin:end:strides]`` replaced by ``v``; axes without bounds are replaced whole."""
    rank = len(a.shape)
    if len(v.shape) != rank:
        raise ExpressionError(
            f"strided_set: values of shape {shape_text(v.shape)} cannot replace a part of {shape_text(a.shape)}"
        )
    _check_length("strided_set", a, begin, end, strides)
    if strides is not None and not isinstance(strides, Tensor):
        _strides(strides, rank, "end")

    def bounds_of(axis: int) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
        extent = a.shape[axis]
        stride = _bound(strides, axis, 1)
        default_begin = Select(stride < 0, extent - 1, operators.const(0))
        default_end = Select(stride < 0, operators.const(-1) - extent, extent)
        first = _runtime_canonical(_bound(begin, axis, default_begin), extent, stride)
        last = _runtime_canonical(_bound(end, axis, default_end), extent, stride)
        return first, last, stride

    def element(*i: PrimExpr) -> PrimExpr:
        inside = []
        read = []
        for axis, index in enumerate(i):
            first, last, stride = bounds_of(axis)
            inside.append(within_index(first, last, stride, index))
            read.append(make_idx(first, last, stride, a.shape[axis], index))
        if not i:
            return v()
        return if_then_else(all_of(*inside), operators.cast(a.dtype, v(*read)), a(*i))

    return computed(a.shape, element, name="strided_set", tag=INJECTIVE)


def sliding_window(
    data: Tensor, axis: int, window_shape: int | Sequence[int], strides: int | Sequence[int]
) -> Tensor:
    """Windows over all axes from ``axis`` on: the positions of the window, then the elements inside of it."""
    first = real_axis("sliding_window", axis, len(data.shape))
    window = as_ints("sliding_window", "a size of the window", window_shape)
    steps = as_ints("sliding_window", "a stride", strides)
    count = len(data.shape) - first
    if len(window) != count or len(steps) != count or min(steps) < 1 or min(window) < 1:
        raise ExpressionError(
            f"sliding_window: a window {window} with strides {steps} does not move over the {count} axes of "
            f"{shape_text(data.shape)} from axis {first} on"
        )
    positions = []
    for extent, size, step in zip(data.shape[first:], window, steps, strict=True):
        if isinstance(extent, IntImm) and extent.value < size:
            raise ExpressionError(f"sliding_window: a window of {size} is larger than the axis of {extent}")
        positions.append(operators.floordiv(extent - (size - 1) + (step - 1), step))

    def element(*i: PrimExpr) -> PrimExpr:
        moved = [
            place * step + inside
            for place, step, inside in zip(i[first : first + count], steps, i[first + count :], strict=True)
        ]
        return data(*i[:first], *moved)

    return computed(
        [*data.shape[:first], *positions, *window], element, name="T_sliding_window", tag=INJECTIVE
    )
