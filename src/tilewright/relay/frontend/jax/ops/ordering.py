"""Sorting, and the largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import relay
from tilewright.relay.expr import TupleWrapper
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.ops.elementwise import direction_of
from tilewright.relay.frontend.jax.registry import converter


def _arguments_read(block: Any) -> set[int]:
    """The arguments of a block that its operations read."""
    read = {value for operation in block.operations for value in operation.operation.operands}
    return {place for place, argument in enumerate(block.arguments) if argument in read}


def _is_ascending(node: JaxNode, block: Any) -> bool:
    """Whether a comparator puts small elements first."""
    found = {direction_of(one) for one in block.operations if one.operation.name == "stablehlo.compare"}
    ordered = found & {"LT", "GT", "LE", "GE"}
    known = all(
        one.operation.name.removeprefix("stablehlo.")
        in ("compare", "select", "constant", "and", "or", "return", "broadcast_in_dim")
        for one in block.operations
    )
    if not known or len({one[0] for one in ordered}) != 1:
        raise node.fail("the comparator is not an order of the elements themselves, ascending or descending")
    return "LT" in ordered or "LE" in ordered


def _sortable(node: JaxNode, data: Expr) -> Expr:
    return relay.cast(data, "int8") if node.dtype(data) == "bool" else data


@converter("sort")
def sort(node: JaxNode, *operands: Expr) -> Sequence[Expr]:
    """Tensors in the order of the first of them, or of several, where the later ones decide between equal elements."""
    block, axis = node.regions[0], int(node.attr("dimension"))
    ascending = _is_ascending(node, block)
    keys = [place for place in range(len(operands)) if {2 * place, 2 * place + 1} & _arguments_read(block)]
    axis %= max(node.rank(operands[0]), 1)
    if len(operands) == 1 and node.dtype(operands[0]) != "bool":
        return [relay.sort(operands[0], axis, ascending)]
    order: Expr | None = None
    # Sorting is stable, so that the least significant key comes first.
    for place in reversed(keys):
        key = _sortable(node, operands[place])
        current = key if order is None else relay.gather(key, axis, order)
        step = relay.argsort(current, axis, ascending, "int32")
        order = step if order is None else relay.gather(order, axis, step)
    assert order is not None
    return [relay.gather(operand, axis, order) for operand in operands]


def top_k(node: JaxNode, data: Expr, count: int) -> list[Expr]:
    """The largest elements of each row and their places."""
    found = relay.topk(data, count, -1, "both", False, "int32")
    assert isinstance(found, TupleWrapper)
    return [found[0], found[1]]


@converter("chlo.top_k")
def chlo_top_k(node: JaxNode, data: Expr) -> list[Expr]:
    """The largest elements of each row and their places."""
    return top_k(node, data, int(node.attr("k")))


@converter("custom_call mhlo.topk")
def mhlo_top_k(node: JaxNode, data: Expr) -> list[Expr]:
    """The same, as older exports write it."""
    settings = node.attr("mhlo.attributes")
    if not settings.get("largest", True):
        raise node.fail("only the largest elements are supported")
    return top_k(node, data, int(settings["k"]))
