"""Propagating what is known about small integer tensors through arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.onnx.node import Node


def known_items(
    node: Node, result: RelayExpr, function: Callable[..., Any], *operands: RelayExpr
) -> RelayExpr:
    """The result of an elementwise operator, with each element remembered that follows from known ones.

    ``function`` takes one element of each operand and gives the element of the result, or None where it has none.
    """
    kind = node.type_of(result)
    if not kind.dtype.is_integral or len(kind.shape) > 1 or any(node.rank(one) > 1 for one in operands):
        return result
    given = [node.partial(operand) for operand in operands]
    extents = node.shape(result)
    if extents == (None,) or any(items is None for items in given):
        return result
    count = (extents[0] if extents else 1) or 0
    rows = [items * count if len(items) == 1 else items for items in given if items is not None]
    if any(len(row) != count for row in rows):
        return result
    made = [None if None in row else function(*row) for row in zip(*rows, strict=True)]
    return node.graph.note_partial(result, [None if item is None else int(item) for item in made])
