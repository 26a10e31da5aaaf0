"""Reductions.

Axes are an attribute up to opset 17 (of ReduceSum: 12) and an input after it. No axes means all, or none with
``noop_with_empty_axes``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.needs import ShapeNeeded
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.elementwise import is_floating, number_limits
from tilewright.relay.frontend.onnx.ops.runtime_axes import axes_count, reduced_at
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.support.dtype import DataType

Reduction = Callable[[Node, RelayExpr, tuple[int, ...], bool], RelayExpr]
"""(node, data, axes, keepdims) to the result; there is at least one axis."""


def _reduce(reduction: Callable[..., RelayExpr]) -> Reduction:
    return lambda node, data, axes, keep: reduction(data, axis=axes, keepdims=keep)


def _has_no_elements(node: Node, data: RelayExpr, axes: tuple[int, ...]) -> bool:
    """True if nothing is combined into each element of the result."""
    shape = node.shape(data)
    return any(shape[axis] == 0 for axis in axes)


def _constant_result(node: Node, data: RelayExpr, axes: tuple[int, ...], keep: bool, value: Any) -> RelayExpr:
    """A value in the shape of the result."""
    shape = node.shape(data)
    kept = [1 if axis in axes else extent for axis, extent in enumerate(shape) if keep or axis not in axes]
    if any(extent is None for extent in kept):
        raise ShapeNeeded(f"{node.where}: an axis of {shape} has no elements, and all of it must be known")
    dtype = node.dtype(data)
    return relay.full(const(value, dtype), tuple(kept), dtype)


def _extreme(greatest: bool) -> Reduction:
    def reduced(node: Node, data: RelayExpr, axes: tuple[int, ...], keep: bool) -> RelayExpr:
        dtype = node.dtype(data)
        if _has_no_elements(node, data, axes):
            return _constant_result(node, data, axes, keep, number_limits(dtype)[0 if greatest else 1])
        if DataType(dtype).is_bool:
            return (relay.any if greatest else relay.all)(data, axis=axes, keepdims=keep)
        return (relay.max if greatest else relay.min)(data, axis=axes, keepdims=keep)

    return reduced


def _mean(node: Node, data: RelayExpr, axes: tuple[int, ...], keep: bool) -> RelayExpr:
    if _has_no_elements(node, data, axes) and is_floating(node, data):
        return _constant_result(node, data, axes, keep, np.nan)
    return relay.mean(data, axis=axes, keepdims=keep)


def _sum_of(prepare: Callable[[RelayExpr], RelayExpr]) -> Reduction:
    return lambda node, data, axes, keep: relay.sum(prepare(data), axis=axes, keepdims=keep)


def _square(data: RelayExpr) -> RelayExpr:
    return relay.multiply(data, data)


def in_floats(node: Node, data: RelayExpr, function: Callable[[RelayExpr], RelayExpr]) -> RelayExpr:
    """A function of floating-point numbers, of integers too: computed in float64, and cut off."""
    if is_floating(node, data):
        return function(data)
    return relay.cast(function(relay.cast(data, "float64")), node.dtype(data))


def _euclidean(node: Node, data: RelayExpr, axes: tuple[int, ...], keep: bool) -> RelayExpr:
    return in_floats(node, relay.sum(_square(data), axis=axes, keepdims=keep), relay.sqrt)


def _log_sum(node: Node, data: RelayExpr, axes: tuple[int, ...], keep: bool) -> RelayExpr:
    return in_floats(node, relay.sum(data, axis=axes, keepdims=keep), relay.log)


def _log_sum_exp(node: Node, data: RelayExpr, axes: tuple[int, ...], keep: bool) -> RelayExpr:
    if _has_no_elements(node, data, axes):
        return _constant_result(node, data, axes, keep, number_limits(node.dtype(data))[0])
    return in_floats(node, data, lambda given: relay.logsumexp(given, axis=axes, keepdims=keep))


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": _sum_of(relay.abs),
    "ReduceL2": _euclidean,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extreme(True),
    "ReduceMean": _mean,
    "ReduceMin": _extreme(False),
    "ReduceProd": _reduce(relay.prod),
    "ReduceSum": _reduce(relay.sum),
    "ReduceSumSquare": _sum_of(_square),
}
_OF_ONE: dict[str, Callable[[Node, RelayExpr], RelayExpr]] = {
    "ReduceL1": lambda node, data: relay.abs(data),
    "ReduceL2": lambda node, data: relay.abs(data),
    "ReduceLogSum": lambda node, data: in_floats(node, data, relay.log),
    "ReduceSumSquare": lambda node, data: _square(data),
}
"""The result of an operator if no axis is reduced; by default, the data."""


def _normal_axes(node: Node, axes: list[int], rank: int) -> tuple[int, ...]:
    return tuple(sorted({node.from_front(axis, rank) for axis in axes}))


def _reduced(node: Node, data: RelayExpr, axes: list[int], nothing_means_all: bool) -> RelayExpr:
    rank = node.rank(data)
    chosen = _normal_axes(node, axes, rank)
    if not axes and nothing_means_all:
        chosen = tuple(range(rank))
    if not chosen:
        of_one = _OF_ONE.get(node.op_type)
        return data if of_one is None else of_one(node, data)
    return _REDUCTIONS[node.op_type](node, data, chosen, bool(node.attr("keepdims", 1)))


def _axes_as_attribute(node: Node, data: RelayExpr) -> RelayExpr:
    """Axes as an attribute."""
    return _reduced(node, data, [int(axis) for axis in node.attr("axes", ())], True)


def _axes_as_input(node: Node, data: RelayExpr, axes: RelayExpr | None = None) -> RelayExpr:
    """Axes as an input."""
    # What is reduced along no elements has to be known: the result then depends on the operator and the type only.
    is_empty = 0 in node.shape(data)
    if axes is not None and node.shape(axes) != (0,) and node.value(axes) is None and not is_empty:
        return _reduced_at(node, data, axes)
    chosen = [] if axes is None or node.shape(axes) == (0,) else node.ints(axes, "the axes")
    return _reduced(node, data, chosen, not node.attr("noop_with_empty_axes", 0))


def _reduced_at(node: Node, data: RelayExpr, axes: RelayExpr) -> RelayExpr:
    """Axes that are known only at run time; there is at least one."""
    if not node.rank(data):
        return _reduced(node, data, [], False)
    axes_count(node, cast(Expr, axes))
    reduction = _REDUCTIONS[node.op_type]
    return reduced_at(
        node,
        cast(Expr, data),
        cast(Expr, axes),
        bool(node.attr("keepdims", 1)),
        lambda matrix: cast(Expr, reduction(node, matrix, (1,), False)),
    )


for _name in _REDUCTIONS:
    converter(_name)(_axes_as_attribute)
    converter(_name, since=13 if _name == "ReduceSum" else 18)(_axes_as_input)


@converter("ArgMax", "ArgMin")
def position(node: Node, data: RelayExpr) -> RelayExpr:
    """Where the greatest or least element is along an axis, as int64; of equals the first, or the last."""
    axis = node.axis(0, node.rank(data))
    find = relay.argmax if node.op_type == "ArgMax" else relay.argmin
    found = find(
        data,
        axis=axis,
        keepdims=bool(node.attr("keepdims", 1)),
        select_last_index=bool(node.attr("select_last_index", 0)),
    )
    return relay.cast(found, "int64")
