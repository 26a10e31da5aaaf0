"""Reductions over axes: sums, products, extremes, their positions, and logic.

Narrow floating-point types are added and multiplied in float32. Without axes, or with an empty list of them, all are
reduced. A tensor without dimensions is its own reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr, Select
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import as_extents, known_different, same_extent, shape_text
from tilewright.te.operation import compute, reduce_axis
from tilewright.te.tensor import Tensor
from tilewright.tir import op
from tilewright.tir.reducer import Reducer, comm_reducer
from tilewright.tir.reducer import max as max_reducer
from tilewright.tir.reducer import min as min_reducer
from tilewright.tir.reducer import sum as sum_reducer
from tilewright.topi.arguments import accumulator_type, check_tensor, real_axes
from tilewright.topi.computed import computed
from tilewright.topi.math import cast
from tilewright.topi.tag import COMM_REDUCE, COMM_REDUCE_IDX, ELEMWISE, INJECTIVE
from tilewright.topi.utils import ravel_index

Axes = int | Sequence[int] | None


_prod = comm_reducer(lambda x, y: x * y, lambda dtype: operators.const(1, dtype), name="prod")
_all = comm_reducer(
    lambda x, y: operators.logical_and(x, y), lambda dtype: operators.const(True, dtype), name="all"
)
_any = comm_reducer(
    lambda x, y: operators.logical_or(x, y), lambda dtype: operators.const(False, dtype), name="any"
)


class _Plan:
    """Which axes are reduced, the shape that remains, and how an element of it finds its inputs."""

    def __init__(self, name: str, data: Tensor, axis: Axes, keepdims: bool) -> None:
        check_tensor(name, data)
        self.data = data
        self.keepdims = keepdims
        rank = len(data.shape)
        everything = axis is None or (not isinstance(axis, int) and len(axis) == 0)
        self.axes = list(range(rank)) if everything else real_axes(name, axis, rank)
        self.reduced = [reduce_axis((0, data.shape[number]), name=f"k{number}") for number in self.axes]
        one = operators.const(1)
        self.shape = [
            one if number in self.axes else extent
            for number, extent in enumerate(data.shape)
            if keepdims or number not in self.axes
        ]

    def indices(self, out: Sequence[PrimExpr]) -> list[Any]:
        """The index of the input for an element of the output and the reduction axes."""
        kept, reduced = iter(out), iter(self.reduced)
        index: list[Any] = []
        for number in range(len(self.data.shape)):
            if number in self.axes:
                index.append(next(reduced).var)
                if self.keepdims:
                    next(kept)
            else:
                index.append(next(kept))
        return index

    def reject_empty(self, name: str) -> None:
        """Require at least one value for an extreme."""
        for number in self.axes:
            extent = self.data.shape[number]
            if isinstance(extent, IntImm) and extent.value == 0:
                raise ExpressionError(
                    f"{name} of no values: axis {number} of {shape_text(self.data.shape)} is empty"
                )


def _reduce(
    name: str, plan: _Plan, reducer: Reducer, convert: Callable[[PrimExpr], PrimExpr] = lambda value: value
) -> Tensor:
    data = plan.data
    if not plan.axes:
        return computed(data.shape, lambda *i: convert(data(*i)), name=f"T_{name}", tag=ELEMWISE)
    return computed(
        plan.shape,
        lambda *i: reducer(convert(data(*plan.indices(i))), axis=plan.reduced),
        name=f"{name}_red",
        tag=COMM_REDUCE,
    )


def _accumulate(name: str, data: Tensor, axis: Axes, keepdims: bool, reducer: Reducer) -> Tensor:
    """A sum or product, in float32 for the 16-bit floating-point types."""
    plan = _Plan(name, data, axis, keepdims)
    if data.dtype.is_bool:
        raise ExpressionError(f"{name} takes numbers, not bool: convert them with cast first")
    wide = accumulator_type(data.dtype)
    result = _reduce(name, plan, reducer, lambda value: operators.cast(wide, value))
    return result if wide == data.dtype else cast(result, data.dtype)


def sum(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, in the type of the data."""
    return _accumulate("sum", data, axis, keepdims, sum_reducer)


def prod(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The product over axes, in the type of the data."""
    return _accumulate("prod", data, axis, keepdims, _prod)


def max(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest value over axes; NaN where one of them is."""
    plan = _Plan("max", data, axis, keepdims)
    plan.reject_empty("max")
    return _reduce("max", plan, max_reducer)


def min(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least value over axes; NaN where one of them is."""
    plan = _Plan("min", data, axis, keepdims)
    plan.reject_empty("min")
    return _reduce("min", plan, min_reducer)


def _truth(value: PrimExpr) -> PrimExpr:
    return value if value.dtype.is_bool else operators.not_equal(value, operators.const(0, value.dtype))


def all(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True where all values over the axes are; numbers count as true where they are not zero."""
    return _reduce("all", _Plan("all", data, axis, keepdims), _all, _truth)


def any(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True where one value over the axes is."""
    return _reduce("any", _Plan("any", data, axis, keepdims), _any, _truth)


def _index_reducer(
    name: str,
    better: Callable[[PrimExpr, PrimExpr], PrimExpr],
    worst: Callable[[DataType], PrimExpr],
    last: bool,
) -> Reducer:
    """A reducer of pairs of position and value.

    Of equal values the first position wins, or the last. The first NaN wins over every number, as in NumPy. The
    position of the identity loses against every other, so that data made of the worst value has a position too.
    """
    start = -1 if last else 2**31 - 1

    def combine(lhs: Any, rhs: Any) -> tuple[PrimExpr, PrimExpr]:
        ahead = rhs[0] > lhs[0] if last else rhs[0] < lhs[0]
        take = op.any(better(rhs[1], lhs[1]), op.all(operators.equal(rhs[1], lhs[1]), ahead))
        if rhs[1].dtype.is_float:
            take = op.all(op.any(take, op.isnan(rhs[1])), operators.logical_not(op.isnan(lhs[1])))
        return Select(take, rhs[0], lhs[0]), Select(take, rhs[1], lhs[1])

    def identity(index_type: DataType, value_type: DataType) -> tuple[PrimExpr, PrimExpr]:
        return operators.const(start, index_type), worst(value_type)

    return comm_reducer(combine, identity, name=name)


def _position(name: str, data: Tensor, axis: Axes, keepdims: bool, reducer: Reducer) -> Tensor:
    plan = _Plan(name, data, axis, keepdims)
    plan.reject_empty(name)
    if not plan.axes:
        return computed((), lambda *i: operators.const(0, "int32"), name=f"T_{name}", tag=ELEMWISE)
    extents = [data.shape[number] for number in plan.axes]

    def pair(*i: PrimExpr) -> Any:
        position = operators.cast("int32", ravel_index([axis.var for axis in plan.reduced], extents))
        return reducer((position, data(*plan.indices(i))), axis=plan.reduced)

    positions, _ = compute(plan.shape, pair, name=f"{name}_red_temp", tag=COMM_REDUCE_IDX)
    return computed(plan.shape, lambda *i: positions(*i), name=f"{name}_red", tag=COMM_REDUCE_IDX)


def argmax(
    data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """The position of the greatest value over axes, int32; over several, in row-major order of them."""
    reducer = _index_reducer("argmax", operators.greater, operators.least, select_last_index)
    return _position("argmax", data, axis, keepdims, reducer)


def argmin(
    data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """The position of the least value over axes, int32; over several, in row-major order of them."""
    reducer = _index_reducer("argmin", operators.less, operators.greatest, select_last_index)
    return _position("argmin", data, axis, keepdims, reducer)


def collapse_sum(data: Tensor, target_shape: ExprLike | Sequence[ExprLike]) -> Tensor:
    """The sum that undoes a broadcast: over every axis along which a tensor of ``target_shape`` was repeated."""
    target = as_extents(target_shape)
    missing = len(data.shape) - len(target)
    if missing < 0:
        raise ExpressionError(
            f"collapse_sum: {shape_text(data.shape)} has fewer dimensions than {shape_text(target)}"
        )
    axes = list(range(missing))
    for number, wanted in enumerate(target, start=missing):
        extent = data.shape[number]
        if isinstance(wanted, IntImm) and wanted.value == 1 and not same_extent(extent, wanted):
            axes.append(number)
        elif known_different(extent, wanted):
            raise ExpressionError(
                f"collapse_sum: {shape_text(data.shape)} is not a broadcast of {shape_text(target)}"
            )
    if not axes:
        return computed(data.shape, lambda *i: data(*i), name="T_collapse_sum", tag=ELEMWISE)
    summed = sum(data, axis=axes, keepdims=True)
    return computed(target, lambda *i: summed(*[0] * missing, *i), name="T_collapse_sum", tag=INJECTIVE)
