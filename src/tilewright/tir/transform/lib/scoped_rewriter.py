"""Visiting statements with their expressions, for passes whose result depends on the enclosing scope.

Expressions are graphs: visiting one as a tree can take exponential time. Within one statement the scope is the same
everywhere, so each distinct expression is visited once per statement.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.functor import Mutator, Visitor, post_order
from tilewright.support.node import Node
from tilewright.tir.stmt import Stmt


class ScopedMutator(Mutator):
    """Rewrites each distinct expression once in every statement in which it occurs."""

    def __init__(self) -> None:
        super().__init__()
        self._plain: set[int] = set()
        self._noted: list[Node] = []

    def note_plain(self, root: Node) -> None:
        """Skip subtrees without a node that this class has a method for: most statements of an unrolled loop."""
        # The ids stay those of the nodes as long as the root is alive.
        self._noted.append(root)
        plain, default = self._plain, type(self).visit_default
        for node in post_order(root):
            handler = self._handlers.get(type(node)) or self._handler(type(node))
            if handler is default and all(id(child) in plain for child in node.children()):
                plain.add(id(node))

    def visit(self, node: Any) -> Any:
        if id(node) in self._plain:
            return node
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        if isinstance(node, Stmt):
            outer, self._memo = self._memo, {}
            made = handler(self, node)
            self._memo = outer
            return made
        found = self._memo.get(id(node))
        if found is None:
            found = self._memo[id(node)] = (node, handler(self, node))
        return found[1]


class StmtVisitor(Visitor):
    """Looks at statements and not into expressions."""

    def visit_default(self, node: Any) -> None:
        for child in node.children():
            if isinstance(child, Stmt):
                self.visit(child)
