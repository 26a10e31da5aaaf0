"""Copying an expression with fresh variables, so that a function's body can be used in two places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.relay.adt import Clause, bound_variables
from tilewright.relay.expr import Call, Let, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function


class _Fresh(ExprMutator):
    """Every binding gets a new variable; uses follow."""

    def __init__(self, given: Mapping[Var, RelayExpr]) -> None:
        super().__init__()
        self.memo_map.update(dict(given.items()))

    def renew(self, variable: Var) -> None:
        """A new variable of the same name and annotation."""
        self.memo_map[variable] = Var(variable.name_hint, variable.type_annotation, variable.span)

    def visit_function(self, fn: Function) -> RelayExpr:
        for parameter in fn.params:
            self.renew(parameter)
        return super().visit_function(fn)

    def visit_let(self, let: Let) -> RelayExpr:
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            self.renew(current.var)
            current = current.body
        return super().visit_let(let)

    def visit_call(self, call: Call) -> RelayExpr:
        made = call.map_children(self.visit)
        # A call of a generic constructor (the empty list) has the type that its context requires: the copy has another.
        return made.replace() if made is call and isinstance(call.op, Constructor) else made

    def visit_clause(self, clause: Clause) -> Clause:
        for variable in bound_variables(clause.lhs):
            self.renew(variable)
        return super().visit_clause(clause)


def with_fresh_variables(expr: RelayExpr, given: Mapping[Var, RelayExpr] | None = None) -> Any:
    """The expression with new variables at all bindings. Free variables stay, but for those in ``given``, which get
    these values."""
    return _Fresh(given or {}).visit(expr)
