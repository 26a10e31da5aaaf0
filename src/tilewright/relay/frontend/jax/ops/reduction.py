"""Reductions: sums, products, extremes, places of extremes, and those whose body is anything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import PREFIX, JaxNode
from tilewright.relay.frontend.jax.ops.elementwise import combined, direction_of
from tilewright.relay.frontend.jax.registry import converter

_REDUCTIONS: Final[dict[str, Callable[..., Expr]]] = {
    "add": relay.sum,
    "multiply": relay.prod,
    "maximum": relay.max,
    "minimum": relay.min,
}
_TRUTH: Final[dict[str, Callable[..., Expr]]] = {
    "add": relay.any,
    "or": relay.any,
    "maximum": relay.any,
    "multiply": relay.all,
    "and": relay.all,
    "minimum": relay.all,
}
_KNOWN: Final = ("add", "multiply", "maximum", "minimum", "and", "or")


def reducer(block: Any) -> str | None:
    """The one operation by which a block combines its two arguments; "second" if it returns the second, None else."""
    operations = [one.operation for one in block.operations]
    arguments = list(block.arguments)
    returned = list(operations[-1].operands)
    if len(arguments) != 2 or len(returned) != 1:
        return None
    if len(operations) == 1:
        return "second" if returned[0] == arguments[1] else None
    name = str(operations[0].name).removeprefix(PREFIX)
    read = list(operations[0].operands)
    plain = read in (arguments, arguments[::-1]) and returned[0] == operations[0].results[0]
    return name if len(operations) == 2 and plain and name in _KNOWN else None


def identity(name: str, dtype: str) -> Any:
    """The value that an operation leaves others as they are with."""
    if name in ("add", "or") or (dtype == "bool" and name == "maximum"):
        return 0
    if dtype == "bool" or name == "multiply":
        return 1
    if name == "and":
        return -1
    if dtype.startswith(("float", "bfloat")):
        return -np.inf if name == "maximum" else np.inf
    limits = np.iinfo(dtype)
    return limits.min if name == "maximum" else limits.max


def is_identity(node: JaxNode, name: str, start: Expr) -> bool:
    """Whether a reduction begins with a value that does not matter."""
    known = node.value(node.source(start))
    return known is not None and bool(known.astype("float64") == float(identity(name, node.dtype(start))))


@converter("reduce")
def reduce(node: JaxNode, *operands: Expr) -> Sequence[Expr]:
    """A reduction along some dimensions, of one tensor or of several together."""
    count = len(operands) // 2
    data, starts = operands[:count], operands[count:]
    axes, block = node.list_attr("dimensions"), node.regions[0]
    name = reducer(block)
    if count == 1 and name is not None:
        made = _reduced(name, node.dtype(data[0]), data[0], axes)
        if made is not None:
            return [made if is_identity(node, name, starts[0]) else combined(node, name, made, starts[0])]
    found = _extreme_place(node, block, axes)
    if found is not None:
        highest, places = (relay.max, relay.argmax) if found == "GT" else (relay.min, relay.argmin)
        index = relay.cast(places(data[0], axis=axes[0]), node.result_dtype(1))
        return [highest(data[0], axis=axes), index]
    return reduced_in_pairs(node, block, data, starts, axes)


def _reduced(name: str, dtype: str, data: Expr, axes: list[int]) -> Expr | None:
    if not axes:
        return data
    function = (_TRUTH if dtype == "bool" else _REDUCTIONS).get(name)
    return None if function is None else function(data, axis=axes)


def _extreme_place(node: JaxNode, block: Any, axes: list[int]) -> str | None:
    """ "GT" or "LT" if a reduction of a tensor and of its indices finds the first largest or smallest element, as
    ``argmax`` and ``argmin`` do; None for any other."""
    operands = list(node.operation.operands)
    if len(operands) != 4 or len(axes) != 1:
        return None
    maker: Any = getattr(operands[1], "owner", None)
    if getattr(maker, "name", None) != "stablehlo.iota":
        return None
    allowed = ("compare", "select", "and", "or", "return")
    operations = [one.operation for one in block.operations]
    if any(str(one.name).removeprefix(PREFIX) not in allowed for one in operations):
        return None
    if int(maker.attributes["iota_dimension"].value) != axes[0]:
        return None
    arguments = list(block.arguments)
    directions = {
        direction_of(one)
        for one in operations
        if one.name == "stablehlo.compare" and list(one.operands) == [arguments[0], arguments[2]]
    } - {"EQ", "NE"}
    earlier = {
        direction_of(one)
        for one in operations
        if one.name == "stablehlo.compare" and list(one.operands) == [arguments[1], arguments[3]]
    }
    if earlier != {"LT"} or len(directions) != 1:
        return None
    found = directions.pop()
    return found if found in ("GT", "LT") else None


def reduced_in_pairs(
    node: JaxNode, block: Any, data: Sequence[Expr], starts: Sequence[Expr], axes: Sequence[int]
) -> list[Expr]:
    """A reduction by any block: neighbours are combined until one element is left along each dimension."""
    current = list(data)
    for axis in sorted(axes, reverse=True):
        extent = node.static_shape(current[0])[axis]
        while extent > 1:
            even = extent - extent % 2
            first = [_every_second(one, axis, 0, even) for one in current]
            second = [_every_second(one, axis, 1, even) for one in current]
            made = node.graph.inside(block, [*first, *second])
            if extent % 2:
                last = [relay.strided_slice(one, [even], [extent], [1], [axis]) for one in current]
                made = [relay.concatenate([one, end], axis) for one, end in zip(made, last, strict=True)]
            current, extent = made, extent - even // 2
        current = [relay.squeeze(one, [axis]) for one in current]
    made = node.graph.inside(block, [*starts, *current])
    shape = node.static_shape(current[0])
    return [one if node.shape(one) == shape else relay.broadcast_to(one, shape) for one in made]


def _every_second(data: Expr, axis: int, begin: int, end: int) -> Expr:
    return relay.strided_slice(data, [begin], [end], [2], [axis])
