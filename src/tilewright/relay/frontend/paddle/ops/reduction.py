"""Reductions."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter

_REDUCTIONS: Final[dict[str, Any]] = {
    "reduce_sum": relay.sum,
    "reduce_mean": relay.mean,
    "reduce_max": relay.max,
    "reduce_min": relay.min,
    "reduce_prod": relay.prod,
    "reduce_all": relay.all,
    "reduce_any": relay.any,
    "logsumexp": relay.logsumexp,
}


def _axes(node: PaddleNode, data: Expr, given: Expr | None, name: str = "dim") -> list[int]:
    """The axes that are reduced, counted from the front."""
    rank = node.rank(data)
    chosen = node.known(name, given, default=[]) or node.known("axis", None, default=[])
    if node.flag("reduce_all") or not chosen:
        return list(range(rank))
    return sorted({node.from_front(axis, rank) for axis in chosen})


def reduced(node: PaddleNode, data: Expr, axes: Expr | None = None, *, function: Any) -> Expr:
    """A reduction."""
    kind = node.kind("out_dtype", node.kind("dtype", node.dtype(data)))
    if node.op_type == "reduce_sum" and node.dtype(data) == "bool":
        data = relay.cast(data, "int64")
    elif kind != node.dtype(data) and function in (relay.sum, relay.prod, relay.mean):
        data = relay.cast(data, kind)
    if node.rank(data) == 0:
        return data
    keep = node.flag("keep_dim", node.flag("keepdim"))
    made: Expr = function(data, axis=_axes(node, data, axes), keepdims=keep)
    return made


for _name, _function in _REDUCTIONS.items():
    converter(_name, reads="X AxisTensor")(partial(reduced, function=_function))


@converter("mean")
def mean(node: PaddleNode, data: Expr) -> Expr:
    """The mean of everything."""
    return relay.mean(data)


@converter("p_norm")
def p_norm(node: PaddleNode, data: Expr) -> Expr:
    """The length of vectors, of the order that is given."""
    order = node.real("porder", 2.0)
    rank = node.rank(data)
    axes = list(range(rank)) if node.flag("asvector") else [node.chosen_axis("axis", -1, rank)]
    keep = node.flag("keepdim")
    return vector_norm(node, data, order, axes, keep)


def vector_norm(node: PaddleNode, data: Expr, order: float, axes: list[int], keep: bool) -> Expr:
    """The p-norm of elements along axes."""
    if order == float("inf"):
        return relay.max(relay.abs(data), axis=axes, keepdims=keep)
    if order == float("-inf"):
        return relay.min(relay.abs(data), axis=axes, keepdims=keep)
    if order == 0:
        there = relay.cast(relay.not_equal(data, node.constant(0, data)), node.dtype(data))
        return relay.sum(there, axis=axes, keepdims=keep)
    if order == 1:
        return relay.sum(relay.abs(data), axis=axes, keepdims=keep)
    if order == 2:
        return relay.sqrt(relay.sum(relay.multiply(data, data), axis=axes, keepdims=keep))
    powers = relay.power(relay.abs(data), node.constant(order, data))
    return relay.power(relay.sum(powers, axis=axes, keepdims=keep), node.constant(1 / order, data))


@converter("frobenius_norm", reads="X AxisTensor")
def frobenius_norm(node: PaddleNode, data: Expr, axes: Expr | None) -> Expr:
    """The root of the sum of squares."""
    keep = node.flag("keep_dim", node.flag("keepdim"))
    return vector_norm(node, data, 2.0, _axes(node, data, axes), keep)


@converter("squared_l2_norm")
def squared_norm(node: PaddleNode, data: Expr) -> Expr:
    """The sum of squares."""
    return relay.reshape(relay.sum(relay.multiply(data, data)), (1,))


@converter("arg_max", "arg_min", reads="X AxisTensor")
def extreme_place(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """The place of the largest or smallest element."""
    function = relay.argmax if node.op_type == "arg_max" else relay.argmin
    keep = node.flag("keepdims")
    if node.flag("flatten"):
        data = relay.reshape(data, (-1,))
        axis = 0
    else:
        axis = node.chosen_axis("axis", -1, node.rank(data), given)
    made = function(data, axis=[axis], keepdims=keep)
    return relay.cast(made, node.kind("dtype", "int64"))
