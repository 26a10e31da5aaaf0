"""Sorting, and places of the largest and smallest elements. MXNet counts places in floating point."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


def _sorted_axis(node: SymbolNode, data: Expr) -> tuple[Expr, int]:
    """The tensor and the axis to sort; without an axis, all elements in a row."""
    if node.text("axis", "-1") == "None":
        return relay.reshape(data, (-1,)), 0
    return data, node.chosen_axis("axis", -1, node.rank(data))


@converter("sort")
def sort(node: SymbolNode, data: Expr) -> Expr:
    """Elements in order along an axis."""
    data, axis = _sorted_axis(node, data)
    return relay.sort(data, axis=axis, is_ascend=node.flag("is_ascend", True))


@converter("argsort")
def argsort(node: SymbolNode, data: Expr) -> Expr:
    """The places of elements in order along an axis."""
    data, axis = _sorted_axis(node, data)
    made = relay.argsort(data, axis=axis, is_ascend=node.flag("is_ascend", True))
    return relay.cast(made, node.text("dtype", "float32"))


@converter("topk")
def topk(node: SymbolNode, data: Expr) -> Any:
    """The largest or smallest elements along an axis, their places, or both."""
    wanted = node.text("ret_typ", "indices")
    if wanted not in ("indices", "value", "both"):
        raise node.fail(f"ret_typ {wanted!r} is not supported")
    data, axis = _sorted_axis(node, data)
    extent = node.static_shape(data)[axis]
    count = node.integer("k", 1)
    pair: Any = relay.topk(
        data, count if count >= 1 else extent, axis=axis, ret_type="both", is_ascend=node.flag("is_ascend")
    )
    values, places = pair
    numbers = relay.cast(places, node.text("dtype", "float32"))
    return {"indices": [numbers], "value": [values], "both": [values, numbers]}[wanted]


def _extreme(node: SymbolNode, data: Expr, function: Any) -> Expr:
    axis = node.optional_integer("axis")
    made = function(data, axis=None if axis is None else [axis], keepdims=node.flag("keepdims"))
    made = relay.cast(made, "float32")
    return made if axis is not None or node.flag("keepdims") else relay.reshape(made, (1,))


@converter("argmax")
def argmax(node: SymbolNode, data: Expr) -> Expr:
    """The place of the largest element."""
    return _extreme(node, data, relay.argmax)


@converter("argmin")
def argmin(node: SymbolNode, data: Expr) -> Expr:
    """The place of the smallest element."""
    return _extreme(node, data, relay.argmin)
