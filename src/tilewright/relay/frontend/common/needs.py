"""Errors about values that a conversion needs but that the model takes as inputs.

A caller that has the inputs can provide the shapes, or the values of the inputs named, and convert again.
"""

from __future__ import annotations

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Var
from tilewright.relay.expr_functor import ExprVisitor
from tilewright.support.errors import ModelError
from tilewright.support.wording import argument


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


def value_needed(message: str, expr: RelayExpr) -> ModelError:
    """The error about a value that has to be known: if it depends only on shapes, those are requested."""
    found = _Variables()
    found.visit(expr)
    if found.shapes and not found.names:
        return ShapeNeeded(f"{message}; it follows from shapes: fix them with {argument('shape')}")
    return ValueNeeded(message, expr)


class _Variables(ExprVisitor):
    """The names of the variables of which an expression reads more than the shape, in the order in which they are
    met; and whether it reads shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, None] = {}
        self.shapes = False

    def visit_call(self, call: Call) -> None:
        if isinstance(call.op, Op) and call.op.name in ("shape_of", "ndarray_size"):
            self.shapes = True
        else:
            super().visit_call(call)

    def visit_var(self, var: Var) -> None:
        self.names[var.name_hint] = None
