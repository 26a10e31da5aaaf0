"""A visitor of statements that visits shared expressions once."""

from __future__ import annotations

from typing import Any

from tilewright.ir.functor import Visitor
from tilewright.tir.stmt import Stmt


class StatementVisitor(Visitor):
    """Visits statements at every place where they occur, and an expression once within each statement.

    What an analysis finds depends on the statements around a node, so nothing is lost; and an expression whose parts
    are shared costs its nodes, not the paths to them.
    """

    def visit(self, node: Any) -> None:
        """Look at a node."""
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        if isinstance(node, Stmt):
            outer, self._seen = self._seen, set()
            handler(self, node)
            self._seen = outer
        elif id(node) not in self._seen:
            # The statement being visited keeps its expressions alive, so that ids stay theirs.
            self._seen.add(id(node))
            handler(self, node)
