"""Conditions that are joined by ``and``."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.expr import And, Call, IntImm, PrimExpr


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions that a condition joins by ``and``; none of a condition that always holds."""
    found: list[PrimExpr] = []
    stack = [condition]
    while stack:
        one = stack.pop()
        if isinstance(one, And):
            stack += (one.b, one.a)
        elif isinstance(one, Call) and getattr(one.op, "name", "") == "tir.likely":
            stack.append(one.args[0])
        elif not (isinstance(one, IntImm) and one.value):
            found.append(one)
    return found


def conjunction(conditions: Sequence[PrimExpr]) -> PrimExpr:
    """All of these conditions."""
    joined: PrimExpr = operators.const(True, "bool")
    for condition in conditions:
        joined = operators.logical_and(joined, condition)
    return joined
