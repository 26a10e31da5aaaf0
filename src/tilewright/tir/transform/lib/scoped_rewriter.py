"""Visiting statements with their expressions, for passes whose result depends on the enclosing scope.

Expressions are graphs: visiting one as a tree can take exponential time. Within one statement the scope is the same
everywhere, so each distinct expression is visited once per statement.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.functor import Mutator, Visitor
from tilewright.tir.stmt import Stmt


class ScopedMutator(Mutator):
    """Rewrites each distinct expression once in every statement in which it occurs."""

    def visit(self, node: Any) -> Any:
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


class ScopedVisitor(Visitor):
    """Looks at each distinct expression once in every statement in which it occurs."""

    def visit(self, node: Any) -> None:
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        if isinstance(node, Stmt):
            outer, self._seen = self._seen, set()
            handler(self, node)
            self._seen = outer
        elif id(node) not in self._seen:
            # The statement that is being looked at keeps its expressions alive, so that ids stay theirs.
            self._seen.add(id(node))
            handler(self, node)


class StmtVisitor(Visitor):
    """Looks at statements and not into expressions."""

    def visit_default(self, node: Any) -> None:
        for child in node.children():
            if isinstance(child, Stmt):
                self.visit(child)
