"""The core of the analyzer: known facts about integer expressions, and simplification with them.

An analyzer records facts about variables (``bind``, ``update``) and conditions that hold (``constraint_scope``). Its
parts (constant bounds, modular sets and the two simplifiers) share one pool of interned expressions and cache their
results. A scope starts with empty caches and restores the old ones when it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tilewright.arith.canonical import Canonical
from tilewright.arith.const_int_bound import BoundAnalyzer, ConstIntBound, finish
from tilewright.arith.facts import learn
from tilewright.arith.modular_set import ModularAnalyzer, ModularSet, normal
from tilewright.arith.pool import BINARY_CLASSES, Expr, Pool
from tilewright.arith.rewrite.simplifier import Rewriter
from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr, Range, Var
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room

_MEMORY_LIMIT = 200_000
"""When more expressions than this are remembered and no scope is open, the memory starts anew."""


class ConstraintScope:
    """A condition that holds within a ``with`` block. ``fenter`` starts it and gives the function that ends it."""

    __slots__ = ("_exit", "_fenter")

    def __init__(self, fenter: Callable[[], Callable[[], None]]) -> None:
        self._fenter = fenter
        self._exit: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self._exit.append(self._fenter())

    def __exit__(self, *exception: object) -> None:
        self._exit.pop()()


class AnalyzerCore:
    """Bounds, congruences, simplification and proofs of integer expressions under what is known.

    All but integer sets.
    """

    def __init__(self) -> None:
        # The parts are for the other files of this package.
        self.pool = Pool()
        self.bounds = BoundAnalyzer()
        self.congruences = ModularAnalyzer(self.bounds)
        self.rewriter = Rewriter(self.pool, self.bounds, self.congruences, self._assume)
        self.canonical = Canonical(self.pool, self.rewriter)
        self._scopes = 0
        self.ranges: dict[Var, Range] = self.rewriter.ranges

    # Questions.

    def const_int_bound(self, expr: ExprLike) -> ConstIntBound:
        """Constant bounds of the expression."""
        return ConstIntBound.of(self.deeply(self._bound, expr))

    def modular_set(self, expr: ExprLike) -> ModularSet:
        """A congruence that every value of the expression obeys."""
        return ModularSet(*self.deeply(self._congruence, expr))

    def simplify(self, expr: ExprLike, steps: int = 2) -> PrimExpr:
        """The expression simplified by rules and made canonical, in turns; ``steps`` counts the turns of both kinds."""
        node = operators.as_expr(expr)
        if type(node) is IntImm:
            return node
        return _keep(node, self.deeply(self.simplified, node, steps))

    def rewrite_simplify(self, expr: ExprLike) -> PrimExpr:
        """The expression simplified by rules."""
        return _keep(expr, self.deeply(self.rewriter.visit, expr))

    def canonical_simplify(self, expr: ExprLike) -> PrimExpr:
        """The expression as a canonical sum of products, with splits of one variable joined."""
        return _keep(expr, self.deeply(self.canonical.visit, expr))

    def can_prove(self, expr: ExprLike) -> bool:
        """True only if the condition is known to hold."""
        node = operators.as_expr(expr)
        if type(node) is not IntImm:
            node = self.deeply(self.simplified, node, 2)
        return type(node) is IntImm and node.value != 0

    def can_prove_greater_equal(self, expr: ExprLike, lower_bound: ExprLike) -> bool:
        """True only if the expression is known to be this or more."""
        return self.can_prove(operators.greater_equal(expr, lower_bound))

    def can_prove_less(self, expr: ExprLike, upper_bound: ExprLike) -> bool:
        """True only if the expression is known to be less."""
        return self.can_prove(operators.less(expr, upper_bound))

    def can_prove_equal(self, lhs: ExprLike, rhs: ExprLike) -> bool:
        """True only if both are known to be equal."""
        if lhs is rhs:
            return True
        return self.can_prove(operators.equal(lhs, rhs))

    # What is known.

    def bind(self, var: Var, expr: ExprLike | Range, allow_override: bool = False) -> None:
        """Let a variable stand for an expression, or run over a range. Binding it again needs ``allow_override``."""
        if isinstance(expr, Range):
            if type(expr.extent) is IntImm and expr.extent.value == 1:
                self.bind(var, expr.min, allow_override)
                return
            low = self.deeply(self._bound, expr.min)
            extent = self.deeply(self._bound, expr.extent)
            self._set_variable(var, finish(low[0], low[1] + extent[1] - 1, var.dtype), None, allow_override)
            self.ranges[var] = expr
            self.rewriter.bindings.pop(var, None)
            return
        value = self.simplify(expr)
        if value.dtype is not var.dtype:
            value = operators.cast(var.dtype, value)
        value = self.deeply(self.rewriter.visit, value)
        bound, modular = self.bounds.bound(value), self.congruences.modular(value)
        self._set_variable(var, bound, modular, allow_override)
        self.rewriter.bindings[var] = value
        self.ranges.pop(var, None)

    def update(self, var: Var, info: ConstIntBound | ModularSet, override: bool = False) -> None:
        """Set what is known of a variable; a different bound or congruence than before needs ``override``."""
        if isinstance(info, ConstIntBound):
            self._set_variable(var, info.pair(), None, override)
        elif isinstance(info, ModularSet):
            self._set_variable(var, None, normal(info.coeff, info.base), override)
        else:
            raise TilewrightError(
                f"an analyzer takes ConstIntBound and ModularSet, not {type(info).__name__}"
            )

    def constraint_scope(self, constraint: ExprLike) -> ConstraintScope:
        """A ``with`` block in which the condition is known to hold."""
        return ConstraintScope(lambda: self._enter(constraint))

    # Inside.

    def deeply(self, function: Callable[..., Any], expr: ExprLike, *rest: Any) -> Any:
        """Call on an expression; one too deep for the interpreter's limit is tried again with room for it."""
        pool = self.pool
        if (
            len(pool.table) + len(pool.imported) + len(self.rewriter.memo) > _MEMORY_LIMIT
            and not self._scopes
        ):
            pool.clear()
            self._forget()
        node = expr if isinstance(expr, PrimExpr) else operators.as_expr(expr)
        self.rewriter.scoped_visits = 0
        try:
            return function(node, *rest)
        except RecursionError:
            with recursion_room():
                return function(node, *rest)

    def _bound(self, node: Expr) -> Any:
        return self.bounds.bound(self.pool.intern(node))

    def _congruence(self, node: Expr) -> Any:
        return self.congruences.modular(self.pool.intern(node))

    def simplified(self, node: Expr, steps: int) -> Expr:
        """``simplify`` without the way in."""
        for step in range(steps):
            node = self.canonical.visit(node) if step % 2 else self.rewriter.visit(node)
            if type(node) is IntImm:
                break
        return node

    def _set_variable(self, var: Var, bound: Any, modular: Any, override: bool) -> None:
        for table, value in ((self.bounds.variables, bound), (self.congruences.variables, modular)):
            if value is None:
                continue
            if not override and table.get(var, value) != value:
                raise TilewrightError(
                    f"{var.name} is already known to be {table[var]}, not {value}; pass allow_override"
                )
            table[var] = value
        self._forget()

    def _forget(self) -> None:
        """Drop what was derived, because what it was derived from has changed."""
        self.bounds.memo = {}
        self.congruences.memo = {}
        self.rewriter.memo = {}
        self.canonical.memo = {}
        self.canonical.forms = {}

    def _enter(self, constraint: ExprLike) -> Callable[[], None]:
        """Start a scope."""
        condition = self.deeply(self.rewriter.visit, constraint)
        return self.deeply(self._open, condition)  # type: ignore[no-any-return]

    def _assume(self, condition: Expr) -> ConstraintScope:
        """The scope of a condition that is simplified already."""
        return ConstraintScope(lambda: self._open(condition))

    def _open(self, condition: Expr) -> Callable[[], None]:
        bounds, modular, rewriter, canonical = self.bounds, self.congruences, self.rewriter, self.canonical
        saved = (
            bounds.memo, bounds.facts, modular.memo, modular.facts,
            rewriter.memo, rewriter.truths, canonical.memo, canonical.forms,
        )  # fmt: skip
        bounds.facts = dict(bounds.facts)
        modular.facts = dict(modular.facts)
        rewriter.truths = dict(rewriter.truths)
        self._scopes += 1

        def leave() -> None:
            self._scopes -= 1
            (
                bounds.memo, bounds.facts, modular.memo, modular.facts,
                rewriter.memo, rewriter.truths, canonical.memo, canonical.forms,
            ) = saved  # fmt: skip

        # Once before, so that what is derived on the way stays in this scope, and once after, because more is
        # known then.
        self._forget()
        try:
            learn(condition, rewriter, canonical, bounds, modular)
        except BaseException:
            leave()
            raise
        self._forget()
        return leave


_local = threading.local()


def knowing_nothing() -> AnalyzerCore:
    """This thread's analyzer in which nothing is bound, and nothing may be: it remembers from call to call."""
    found: AnalyzerCore | None = getattr(_local, "analyzer", None)
    if found is None:
        found = _local.analyzer = AnalyzerCore()
    return found


_KEPT_SIZE = 64
"""Larger expressions are not compared with their simplified form."""


def _keep(original: ExprLike, made: Any) -> PrimExpr:
    """The original where simplification only put other nodes in the same places, so that callers see no change."""
    room = _KEPT_SIZE
    stack = [(original, made)]
    while stack:
        old, new = stack.pop()
        if old is new:
            continue
        kind = type(new)
        room -= 1
        if type(old) is not kind or not room:
            return made  # type: ignore[no-any-return]
        if kind is IntImm:
            if old.value != new.value or old.dtype is not new.dtype:
                return made  # type: ignore[no-any-return]
        elif kind in BINARY_CLASSES:
            stack.append((old.b, new.b))
            stack.append((old.a, new.a))
        else:
            return made  # type: ignore[no-any-return]
    return original  # type: ignore[no-any-return]
