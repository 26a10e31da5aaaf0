"""The bound and free variables of an expression.

Variables are unique: one that is bound anywhere within the expression is not free in it. Lists are in the order of
evaluation from left to right, a binding before the uses in its scope.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir.base import RelayExpr
from tilewright.relay.adt import Clause, Pattern, bound_variables
from tilewright.relay.expr import Let, Var
from tilewright.relay.function import Function
from tilewright.support.node import Node


def met_variables(root: Node) -> Iterator[tuple[Var, bool]]:
    """Every place where a variable stands, as (variable, whether it is bound here). Each node is looked at once."""
    if isinstance(root, Pattern):
        yield from ((variable, True) for variable in bound_variables(root))
        return
    seen: set[Node] = set()
    pending: list[Node] = [root]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, Var):
            yield current, False
        elif isinstance(current, Let):
            yield current.var, True
        elif isinstance(current, Function):
            for parameter in current.params:
                yield parameter, True
        elif isinstance(current, Clause):
            for variable in bound_variables(current.lhs):
                yield variable, True
        pending.extend(reversed(current.children()))


def all_vars(expr: RelayExpr) -> list[Var]:
    """All variables, bound and free."""
    return list(dict.fromkeys(variable for variable, _ in met_variables(expr)))


def bound_vars(expr: RelayExpr | Pattern) -> list[Var]:
    """The variables that functions, lets and patterns bind, within an expression or in a pattern."""
    return list(dict.fromkeys(variable for variable, binding in met_variables(expr) if binding))


def free_vars(expr: RelayExpr) -> list[Var]:
    """The variables that are used and nowhere bound."""
    met = list(met_variables(expr))
    bound = {variable for variable, binding in met if binding}
    return list(dict.fromkeys(variable for variable, _ in met if variable not in bound))


def function_of(expr: RelayExpr) -> Function:
    """A function of the free variables of an expression, in the order in which they are met."""
    return Function(free_vars(expr), expr)
