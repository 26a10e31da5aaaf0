"""Reductions. Without axes all elements are reduced, to a vector of one as MXNet has it."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter

_REDUCTIONS: Final[dict[str, Any]] = {
    "sum": relay.sum,
    "mean": relay.mean,
    "max": relay.max,
    "min": relay.min,
    "prod": relay.prod,
}


def _axes(node: SymbolNode, data: Expr) -> list[int]:
    """The axes that are reduced, counted from the front."""
    rank = node.rank(data)
    text = node.text("axis", "None")
    given = () if text == "None" else node.numbers("axis")
    if None in given:
        raise node.fail(f"the attribute 'axis' is {text}, which is not a list of axes")
    chosen = {node.from_front(axis, rank) for axis in given}
    if not chosen:
        return list(range(rank))
    return [axis for axis in range(rank) if (axis in chosen) != node.flag("exclude")]


def reduced(node: SymbolNode, data: Expr, *, function: Any) -> Expr:
    """A reduction."""
    axes, keep = _axes(node, data), node.flag("keepdims")
    made = function(data, axis=axes, keepdims=keep)
    return relay.reshape(made, (1,)) if len(axes) == node.rank(data) and not keep else made


for _name, _function in _REDUCTIONS.items():
    converter(_name, f"{_name}_axis")(partial(reduced, function=_function))


@converter("norm")
def norm(node: SymbolNode, data: Expr) -> Expr:
    """The sum of sizes, or the root of the sum of squares."""
    order = node.integer("ord", 2)
    if order == 1:
        return reduced(node, relay.abs(data), function=relay.sum)
    if order != 2:
        raise node.fail(f"ord {order} is not supported")
    return relay.sqrt(reduced(node, relay.multiply(data, data), function=relay.sum))
