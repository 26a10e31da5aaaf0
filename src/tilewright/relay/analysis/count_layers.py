"""The depth of a model: how many operators of some kinds are on its longest path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Let
from tilewright.relay.expr_functor import ExprVisitor


class LayerCounter(ExprVisitor):
    """Counts calls of ``valid_ops``; the count of a branching graph is that of its deepest branch."""

    def __init__(self, valid_ops: Iterable[str | Op]) -> None:
        super().__init__()
        self.valid_ops = {op.name if isinstance(op, Op) else op for op in valid_ops}
        self.depth_count = 0
        self.deepest = 0

    def visit(self, expr: Any) -> None:
        """The deepest path that ends here; ``depth_count`` is that of the expression visited last."""
        if expr in self.memo_map:
            self.depth_count = max(self.depth_count, self.memo_map[expr])
            return
        before, self.depth_count = self.depth_count, 0
        super().visit(expr)
        depth = self.memo_map[expr] = self.depth_count
        self.deepest = max(self.deepest, depth)
        self.depth_count = max(before, depth)

    def visit_call(self, call: Call) -> None:
        """One more layer on top of the deepest argument."""
        super().visit_call(call)
        if isinstance(call.op, Op) and call.op.name in self.valid_ops:
            self.depth_count += 1

    def visit_let(self, let: Let) -> None:
        """A variable is as deep as its value."""
        chain: list[Let] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            chain.append(current)
            self.visit(current.value)
            self.memo_map[current.var] = self.memo_map[current.value]
            current = current.body
        self.depth_count = 0
        self.visit(current)
        for passed in chain[1:]:
            self.memo_map[passed] = self.depth_count

    def count(self) -> int:
        """The depth of what was visited."""
        return self.deepest


def count_layers(expr: Any, valid_ops: Iterable[str | Op]) -> int:
    """How many calls of these operators are on the longest path through an expression or through a module's main."""
    root = expr["main"] if hasattr(expr, "functions") else expr
    counter = LayerCounter(valid_ops)
    counter.visit(root)
    return counter.count()
