"""The verifier of graph-level programs: the invariants that hold between any two passes.

* Each variable is bound in one place, and used only within its scope. An expression may occur in several places of the
  graph; the variables that it uses must be in scope in all of them.
* A let-bound value does not use its own variable, unless inside a function (that is how recursion is written).
* An expression may have free variables; a function of a module has none.
* The rules of single nodes are the checks below.

The time is linear in the size of the program. The scopes that an expression needs are the bits of a number, by depth:
another occurrence of the expression is valid if the deepest of these scopes is active there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.relay.adt import Clause, Match, Pattern, PatternConstructor, bound_variables
from tilewright.relay.expr import Call, Let, TempExpr, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprFunctor
from tilewright.relay.function import Function
from tilewright.support.errors import VerifyError
from tilewright.support.node import Node

Check = Callable[[Any], str | None]
CHECKS: Final[dict[type, tuple[Check, ...]]] = {}
"""The checks of each class of node: each gives what is wrong, or None."""


def _check(*classes: type) -> Callable[[Check], Check]:
    def register(function: Check) -> Check:
        for node_class in classes:
            CHECKS[node_class] = (*CHECKS.get(node_class, ()), function)
        return function

    return register


@_check(TupleGetItem)
def fields_are_counted_from_the_front(item: TupleGetItem) -> str | None:
    """The index of a field is not negative."""
    return f"field {item.index} of a tuple" if item.index < 0 else None


@_check(Call)
def constructors_get_their_arguments(call: Call) -> str | None:
    """A constructor is called with as many values as it takes."""
    if isinstance(call.op, Constructor) and len(call.op.inputs) != len(call.args):
        return f"{call.op.name_hint} takes {len(call.op.inputs)} values, the call has {len(call.args)}"
    return None


@_check(Clause)
def patterns_fit_their_constructors(clause: Clause) -> str | None:
    """A constructor's pattern has a pattern for each value that the constructor takes."""
    pending: list[Pattern] = [clause.lhs]
    while pending:
        pattern = pending.pop()
        if isinstance(pattern, PatternConstructor):
            taken = len(pattern.constructor.inputs)
            if taken != len(pattern.patterns):
                name = pattern.constructor.name_hint
                return f"{name} takes {taken} values, its pattern has {len(pattern.patterns)}"
        pending.extend(pattern.children())  # type: ignore[arg-type]
    return None


class _Verifier(ExprFunctor):
    """Gives, for each expression, the set of scopes around it that it needs."""

    def __init__(self, mod: IRModule | None) -> None:
        super().__init__()
        self.mod = mod
        self.scopes: list[int] = []
        self.scope_variables: list[tuple[Var, ...]] = []
        self.depths: dict[Var, int] = {}
        self.own_value: dict[Var, int] = {}
        self.function_depth = 0
        self.ever_bound: set[Var] = set()
        self.free: dict[Var, None] = {}
        self.needed_scope: dict[Node, int] = {}

    def fail(self, rule: str, message: str, node: Any) -> VerifyError:
        """The error about a node."""
        return VerifyError(f"{message} (rule: {rule.replace('_', ' ')})", span=getattr(node, "span", None))

    def visit(self, expr: Any) -> int:
        if not self._entered:
            return super().visit(expr)  # type: ignore[no-any-return]
        needs: int | None = self.memo_map.get(expr)
        if needs is None:
            handler = self._handlers.get(type(expr)) or self._handler(type(expr))
            needs = handler(self, expr)
            self.remember(expr, needs)
        elif needs:
            depth = needs.bit_length() - 1
            scope = self.needed_scope[expr]
            if depth >= len(self.scopes) or self.scopes[depth] != scope:
                names = ", ".join(variable.name_hint for variable in self.scope_variables[scope])
                raise self.fail("scope", f"an expression uses {names} outside their scope", expr)
        return needs

    def remember(self, expr: Any, needs: int) -> None:
        """The result for an expression, and the innermost scope that it needs."""
        if isinstance(expr, Var):
            return
        self.memo_map[expr] = needs
        if needs:
            self.needed_scope[expr] = self.scopes[needs.bit_length() - 1]

    def run_checks(self, node: Any) -> None:
        """The checks of a node's class."""
        for check in CHECKS.get(type(node), ()):
            message = check(node)
            if message is not None:
                raise self.fail(check.__name__, message, node)

    def enter(self, variables: Iterable[Var], node: Any) -> None:
        """These variables are in force until ``leave``."""
        bound = tuple(variables)
        for variable in bound:
            if variable in self.ever_bound:
                raise self.fail("bound_once", f"variable {variable.name_hint} is bound twice", node)
            if variable in self.free:
                raise self.fail(
                    "bound_before_use", f"variable {variable.name_hint} is used outside its binding", node
                )
            self.ever_bound.add(variable)
            self.depths[variable] = len(self.scopes)
        self.scopes.append(len(self.scope_variables))
        self.scope_variables.append(bound)

    def leave(self, needs: int) -> int:
        """End the innermost scope; what is needed without it."""
        for variable in self.scope_variables[self.scopes.pop()]:
            del self.depths[variable]
        return needs & ~(1 << len(self.scopes))

    def visit_default(self, expr: Any) -> int:
        if isinstance(expr, TempExpr):
            raise self.fail(
                "no_temporaries", f"{type(expr).__name__} is an expression that only a pass may use", expr
            )
        if not isinstance(expr, (RelayExpr, Clause)):
            raise self.fail("expressions", f"{type(expr).__name__} is not a graph-level expression", expr)
        self.run_checks(expr)
        needs = 0
        for child in expr.children():
            needs |= self.visit(child)
        return needs

    def visit_var(self, var: Var) -> int:
        depth = self.depths.get(var)
        if depth is None:
            if var in self.ever_bound:
                raise self.fail("scope", f"variable {var.name_hint} is used outside its scope", var)
            self.free[var] = None
            return 0
        if self.own_value.get(var) == self.function_depth:
            raise self.fail("own_value", f"the value of {var.name_hint} uses {var.name_hint} itself", var)
        return 1 << depth

    def visit_global_var(self, name: GlobalVar) -> int:
        if self.mod is not None and name not in self.mod:
            raise self.fail("functions_exist", f"the module has no function {name.name_hint}", name)
        return 0

    def visit_let(self, let: Let) -> int:
        chain: list[tuple[Let, int]] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            self.enter((current.var,), current)
            self.own_value[current.var] = self.function_depth
            value = self.visit(current.value)
            del self.own_value[current.var]
            chain.append((current, value))
            current = current.body
        needs = self.visit(current)
        for passed, value in reversed(chain):
            needs = self.leave(needs | value)
            self.remember(passed, needs)
        return needs

    def visit_function(self, fn: Function) -> int:
        self.enter(fn.params, fn)
        self.function_depth += 1
        needs = self.visit(fn.body)
        self.function_depth -= 1
        return self.leave(needs)

    def visit_match(self, match: Match) -> int:
        needs = self.visit(match.data)
        for clause in match.clauses:
            self.run_checks(clause)
            self.enter(bound_variables(clause.lhs), match)
            inner = self.visit(clause.rhs)
            needs |= self.leave(inner)
        return needs


def verify(expr: RelayExpr, mod: IRModule | None = None, closed: bool = False) -> None:
    """Raise ``VerifyError`` if an expression breaks a rule. With a module, the functions that it names must be there;
    a ``closed`` one leaves no variable to its surroundings."""
    verifier = _Verifier(mod)
    verifier.visit(expr)
    if closed and verifier.free:
        variable = next(iter(verifier.free))
        raise verifier.fail("closed", f"variable {variable.name_hint} is bound nowhere", variable)


def well_formed(expr: RelayExpr | IRModule) -> bool:
    """True if an expression, or every graph-level function of a module, keeps the rules of ``verify``."""
    try:
        if isinstance(expr, IRModule):
            verify_module(expr)
        else:
            verify(expr)
    except VerifyError:
        return False
    return True


def verify_module(module: IRModule) -> None:
    """Each graph-level function keeps the rules."""
    for name, function in module.functions.items():
        if isinstance(function, Function):
            try:
                function.verify(module)
            except VerifyError as error:
                raise VerifyError(f"function {name.name_hint}: {error.message}", span=error.span) from None


def verify_function(function: Function, module: IRModule) -> None:
    """What runs between passes: a function of a module keeps the rules, and leaves no variable free."""
    verify(function, module, closed=True)
