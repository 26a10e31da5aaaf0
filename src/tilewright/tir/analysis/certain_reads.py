"""Reads that an expression makes whatever its conditions say."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.ir.expr import Call, Load, PrimExpr, Select
from tilewright.support.node import Node
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal


def reads_anyway(node: Select) -> list[Load]:
    """The reads that happen whichever value is chosen: those of the condition, and those of both values."""
    yes, no = certain_reads(node.true_value), certain_reads(node.false_value)
    both = [read for read in yes if is_among(read, no)]
    return [*certain_reads(node.condition), *both]


def certain_reads(expr: PrimExpr) -> list[Load]:
    """The reads that happen whenever the expression is evaluated as its program says."""
    found: list[Load] = []
    waiting: list[Node] = [expr]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Select):
            found += reads_anyway(part)
        elif isinstance(part, Call) and getattr(part.op, "name", "") == "tir.if_then_else":
            waiting.append(part.args[0])
        else:
            if isinstance(part, Load):
                found.append(part)
            waiting.extend(part.children())
    return found


def is_among(read: Load, others: Iterable[Load]) -> bool:
    """True if one of the others reads the same elements."""
    return any(
        other is read or (other.buffer_var is read.buffer_var and expr_deep_equal(other, read))
        for other in others
    )
