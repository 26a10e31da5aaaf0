"""Writing nested lets and conditionals in the order in which they are evaluated.

builder = ScopeBuilder()
total = builder.let("total", relay.add(x, y))
with builder.if_scope(condition):
    builder.ret(total)
with builder.else_scope():
    builder.ret(x)
body = builder.get()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.type import IncompleteType, Type
from tilewright.relay.expr import Constant, If, Let, Tuple, Var, unwrapped
from tilewright.support.errors import ExpressionError


class WithScope:
    """A ``with`` block that gives a value and calls back when it ends without an error."""

    def __init__(self, enter_value: Any, exit_cb: Callable[[], None]) -> None:
        self._enter_value = enter_value
        self._exit_cb = exit_cb

    def __enter__(self) -> Any:
        return self._enter_value

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: object) -> None:
        if kind is None:
            self._exit_cb()


def _as_expr(value: Any) -> RelayExpr:
    """A Python list or tuple of expressions is a tuple."""
    if isinstance(value, (tuple, list)):
        return Tuple([_as_expr(item) for item in value])
    value = unwrapped(value)
    if not isinstance(value, RelayExpr):
        raise ExpressionError(f"a graph expression is needed here, not {type(value).__name__}")
    return value


class ScopeBuilder:
    """Collects lets and conditionals; ``get`` gives the expression that they make."""

    def __init__(self) -> None:
        self._bindings: list[list[tuple[Var, RelayExpr]]] = [[]]
        self._results: list[RelayExpr | None] = [None]

    def _enter(self) -> None:
        self._bindings.append([])
        self._results.append(None)

    def _leave(self, what: str) -> RelayExpr:
        """The expression of the innermost scope, which ends."""
        bindings = self._bindings.pop()
        result = self._results.pop()
        if result is None:
            raise RuntimeError(f"nothing was returned from {what}: call ret(value) in it")
        for variable, value in reversed(bindings):
            result = Let(variable, value, result)
        return result

    def let(self, var: Var | str | tuple[str, Type], value: Any) -> Var:
        """Bind a value to a variable, or to a new one of this name, or of this name and type; gives the variable."""
        if isinstance(var, tuple):
            bound = Var(*var)
        else:
            bound = Var(var) if isinstance(var, str) else var
        self._bindings[-1].append((bound, _as_expr(value)))
        return bound

    def if_scope(self, cond: RelayExpr) -> WithScope:
        """The branch that is taken where the condition holds. ``else_scope`` must follow."""
        self._enter()

        def leave() -> None:
            branch = self._leave("the branch of if_scope")
            self._results[-1] = None
            self._pending = (len(self._results), cond, branch)

        return WithScope(None, leave)

    _pending: tuple[int, RelayExpr, RelayExpr] | None = None

    def else_scope(self) -> WithScope:
        """The other branch; the conditional is then the result of the scope around it."""
        if self._pending is None or self._pending[0] != len(self._results):
            raise RuntimeError("else_scope comes directly after an if_scope")
        _, cond, first = self._pending
        self._pending = None
        self._enter()

        def leave() -> None:
            self._results[-1] = If(cond, first, self._leave("the branch of else_scope"))

        return WithScope(None, leave)

    def type_of(self, expr: RelayExpr) -> Type | None:
        """The known type of an expression: a variable's annotation, a constant's type, the inferred type; else
        a type that is yet to be found."""
        if isinstance(expr, Var):
            return expr.type_annotation
        if isinstance(expr, Constant):
            return expr.tensor_type
        found: Type | None = getattr(expr, "_checked_type_", None)
        return found if found is not None else IncompleteType()

    def ret(self, value: Any) -> None:
        """The result of the innermost scope."""
        if self._results[-1] is not None:
            raise RuntimeError("ret was called before in this scope")
        self._results[-1] = _as_expr(value)

    def get(self) -> RelayExpr:
        """The whole expression."""
        if len(self._bindings) != 1:
            raise RuntimeError("get is called outside if_scope and else_scope")
        if self._pending is not None:
            raise RuntimeError("an if_scope has no else_scope")
        result = self._results[0]
        if result is None:
            raise RuntimeError("nothing was returned: call ret(value) before get()")
        for variable, value in reversed(self._bindings[0]):
            result = Let(variable, value, result)
        return result
