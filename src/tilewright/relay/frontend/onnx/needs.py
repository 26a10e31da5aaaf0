"""Errors about what a conversion has to know and the model leaves to its inputs.

Whoever has the inputs at hand can answer them: give the shapes, or the values of the inputs named, and convert again.
"""

from __future__ import annotations

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Var
from tilewright.relay.expr_functor import ExprVisitor
from tilewright.support.errors import ModelError


class ShapeNeeded(ModelError):
    """A shape has to be known: give ``shape=``."""


class ValueNeeded(ModelError):
    """A value has to be known: it is computed from the inputs ``inputs``."""

    def __init__(self, message: str, expr: RelayExpr) -> None:
        found = _Variables()
        found.visit(expr)
        self.inputs = tuple(found.names)
        computed = f"; it is computed from {', '.join(self.inputs)}" if self.inputs else ""
        super().__init__(message + computed)


class _Variables(ExprVisitor):
    """The names of the variables of an expression, in the order in which they are met."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, None] = {}

    def visit_var(self, var: Var) -> None:
        self.names[var.name_hint] = None
