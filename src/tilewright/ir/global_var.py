"""The names by which functions of a module refer to one another."""

from __future__ import annotations

from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Call, PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.support.node import node
from tilewright.support.slot import GRAPH_CALL
from tilewright.support.span import Span


@node
class GlobalVar(RelayExpr):
    """A function of a module, by name. Within one module a name belongs to one GlobalVar."""

    name_hint: str
    span: Span | None = None

    def __init__(self, name_hint: str, span: Span | None = None) -> None:
        if not isinstance(name_hint, str) or not name_hint:
            raise ExpressionError(f"a global variable needs a name, not {name_hint!r}")
        self.name_hint = name_hint
        self.span = span

    def __call__(self, *args: Any) -> Any:
        """A call of the function: of graph expressions or of loop-level values, not of both. Without arguments it is a
        graph-level call."""
        if all(isinstance(argument, RelayExpr) for argument in args):
            return GRAPH_CALL.value(self, args)
        if all(isinstance(argument, (PrimExpr, int, float)) for argument in args):
            return Call("handle", self, args)
        kinds = ", ".join(type(argument).__name__ for argument in args)
        raise ExpressionError(f"function {self.name_hint} cannot be called with arguments of types {kinds}")

    def __repr__(self) -> str:
        return f"@{self.name_hint}"
