"""The uses of each expression, and the nodes that all paths from an expression to the result go through."""

from __future__ import annotations

from functools import cached_property

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.relay.expr import Call
from tilewright.support.node import Node


class ExprGraph:
    """The graph of an expression. Parts are computed when they are first requested."""

    def __init__(self, root: RelayExpr) -> None:
        self.root = root

    @cached_property
    def order(self) -> list[Node]:
        """Every node once, what it is made of first."""
        return post_order(self.root)

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """The nodes in which each node stands."""
        found: dict[Node, list[Node]] = {node: [] for node in self.order}
        for node in self.order:
            for child in node.children():
                found[child].append(node)
        return found

    @cached_property
    def _dominators(self) -> dict[Node, tuple[Node | None, int]]:
        """For each node the first one that all ways from it to the root go through, and the length of that chain."""
        found: dict[Node, tuple[Node | None, int]] = {self.root: (None, 0)}
        for node in reversed(self.order):
            if node is self.root:
                continue
            first, *others = self.users[node]
            common = first
            for other in others:
                common = self._common(found, common, other)
            found[node] = (common, found[common][1] + 1)
        return found

    @staticmethod
    def _common(found: dict[Node, tuple[Node | None, int]], first: Node, second: Node) -> Node:
        while first is not second:
            if found[first][1] < found[second][1]:
                first, second = second, first
            above = found[first][0]
            assert above is not None
            first = above
        return first

    def dominates(self, later: Node, earlier: Node) -> bool:
        """True if all ways from ``earlier`` to the root go through ``later``."""
        depth = self._dominators[later][1]
        current: Node | None = earlier
        while current is not None and self._dominators[current][1] > depth:
            current = self._dominators[current][0]
        return current is later


def inputs_of(expr: Node) -> tuple[Node, ...]:
    """The inputs of an expression; for a call, the arguments."""
    return expr.args if isinstance(expr, Call) else expr.children()
