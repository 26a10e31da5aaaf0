"""Sums, differences and products of integers, compiled as one Python function.

They are most of what a loop program computes, because indices consist of them. Addition and multiplication commute with
wrapping, so the whole expression is computed without bounds and wrapped once, with the same result as wrapping every
step. The compiled text consists only of numbers, frame slots and the operators ``+ - *``.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import lru_cache
from typing import Any

from tilewright.ir.expr import Add, IntImm, Mul, PrimExpr, Sub, Var

_SYMBOLS: dict[type, str] = {Add: "+", Sub: "-", Mul: "*"}
_DEPTH = 12
"""How deep one function goes; below stand other functions, because Python's compiler cannot go arbitrarily deep."""


class RingText:
    """The text of an expression, and the parts of it that are not sums, differences or products."""

    def __init__(self, slots: dict[Var, int], shared: Container[int] = ()) -> None:
        self.slots = slots
        self.shared = shared
        self.leaves: list[PrimExpr] = []

    def text(self, node: PrimExpr, depth: int = 0) -> str:
        """The expression in terms of the frame and of ``leaf0(frame)``, ``leaf1(frame)`` ..."""
        if isinstance(node, IntImm):
            return f"({node.value})"
        if isinstance(node, Var) and node in self.slots:
            return f"frame[{self.slots[node]}]"
        symbol = _SYMBOLS.get(type(node))
        if symbol is None or depth == _DEPTH or id(node) in self.shared:
            self.leaves.append(node)
            return f"leaf{len(self.leaves) - 1}(frame)"
        assert isinstance(node, (Add, Sub, Mul))
        return f"({self.text(node.a, depth + 1)} {symbol} {self.text(node.b, depth + 1)})"


@lru_cache(maxsize=4096)
def ring_maker(text: str, leaves: int, low: int, high: int) -> Callable[..., Any]:
    """A function that, given what wraps a value and the closures of the leaves, makes the closure of the expression."""
    parameters = ", ".join(["wrap", *(f"leaf{position}" for position in range(leaves))])
    lines = (
        f"def make({parameters}):",
        "    def run(frame):",
        f"        value = {text}",
        f"        return value if {low} <= value <= {high} else wrap(value)",
        "    return run",
    )
    namespace: dict[str, Any] = {}
    exec(compile("\n".join(lines), "<tilewright interpreter>", "exec"), namespace)
    made: Callable[..., Any] = namespace["make"]
    return made
