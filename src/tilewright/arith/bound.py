"""Solving a condition for a variable.

``deduce_bound`` isolates the variable on one side, step by step: addends move to the other side with the opposite sign,
and factors divide. The other side is then relaxed, so that the condition holds for all values of the variables in
``relax_map``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.arith.core import AnalyzerCore
from tilewright.arith.int_set import NEG_INF, POS_INF, IntervalSet, IntSet, as_interval
from tilewright.arith.int_set_eval import eval_int_set
from tilewright.ir import operators
from tilewright.ir.expr import EQ, GE, GT, LE, LT, Add, Call, ExprLike, IntImm, Mul, PrimExpr, Sub, Var
from tilewright.ir.functor import uses_var

_TURNED: dict[Any, Any] = {LT: GT, LE: GE, GT: LT, GE: LE, EQ: EQ}

Sets = Mapping[Any, IntSet]


def deduce_bound(var: Var, cond: ExprLike, hint_map: Sets, relax_map: Sets) -> IntervalSet:
    """The values of ``var`` for which the condition is known to hold, whatever the variables of ``relax_map`` are.

    ``hint_map`` says in which sets the other variables lie: it decides signs. The empty set if the condition
    never holds, or if it is not known when it does.
    """
    condition: Any = operators.as_expr(cond)
    while isinstance(condition, Call) and getattr(condition.op, "name", "") == "tir.likely":
        condition = condition.args[0]
    analyzer = AnalyzerCore()
    _bind_hints(analyzer, hint_map, relax_map, var)
    decided = analyzer.simplify(condition)
    if isinstance(decided, IntImm):
        return IntSet.everything() if decided.value else IntSet.nothing()
    kind = type(condition)
    if kind not in _TURNED or not condition.a.dtype.is_int:
        return IntSet.nothing()
    left, right = analyzer.simplify(condition.a), analyzer.simplify(condition.b)
    if uses_var(right, var):
        if uses_var(left, var):
            left, right = analyzer.simplify(operators.subtract(left, right)), operators.const(0, left.dtype)
        else:
            left, right, kind = right, left, _TURNED[kind]
    if not uses_var(left, var):
        return IntSet.nothing()
    # From here on the comparison is <=, >= or ==.
    if kind is LT:
        right, kind = operators.subtract(right, 1), LE
    elif kind is GT:
        right, kind = operators.add(right, 1), GE
    return _Deducer(analyzer, var, relax_map).solve(left, right, kind)


def _bind_hints(analyzer: AnalyzerCore, hint_map: Sets, relax_map: Sets, var: Var) -> None:
    """Let the analyzer know the constant bounds of the other variables."""
    for variable, given in (*hint_map.items(), *relax_map.items()):
        interval = as_interval(given)
        known = variable.var if hasattr(variable, "var") else variable
        if known is not var and interval.is_bounded and known not in analyzer.bounds.variables:
            low = analyzer.const_int_bound(interval.min_value)
            high = analyzer.const_int_bound(interval.max_value)
            analyzer.bounds.variables[known] = low.pair()[0], high.pair()[1]


class _Deducer:
    def __init__(self, analyzer: AnalyzerCore, variable: Var, relax_map: Sets) -> None:
        self.analyzer = analyzer
        self.variable = variable
        self.relax_map = relax_map

    def solve(self, left: Any, right: PrimExpr, kind: type) -> IntervalSet:
        """The values for which ``left`` compares so with ``right``; ``left`` uses the variable, ``right`` does not."""
        while left is not self.variable:
            step = type(left)
            if step not in (Add, Sub, Mul):
                return IntSet.nothing()
            first = uses_var(left.a, self.variable)
            if first and uses_var(left.b, self.variable):
                return IntSet.nothing()
            inner, other = (left.a, left.b) if first else (left.b, left.a)
            if step is Add:
                right = operators.subtract(right, other)
            elif step is Sub and first:
                right = operators.add(right, other)
            elif step is Sub:
                right, kind = operators.subtract(other, right), _TURNED[kind]
            else:
                divided = self._divide(right, other, kind)
                if divided is None:
                    return IntSet.nothing()
                right, kind = divided
            left = inner
        return self._relaxed(right, kind)

    def _divide(self, right: PrimExpr, factor: PrimExpr, kind: type) -> tuple[PrimExpr, type] | None:
        """Both sides divided by a factor of known sign, rounded so that the condition holds.

        None if it cannot be said.
        """
        low, high = self.analyzer.const_int_bound(factor).pair()
        if low <= 0 <= high:
            return None
        if high < 0:
            kind = _TURNED[kind]
        quotient = operators.floordiv(right, factor)
        if kind is LE:
            return quotient, kind
        if self.analyzer.can_prove(operators.equal(operators.floormod(right, factor), 0)):
            return quotient, kind
        if kind is EQ:
            return None
        if isinstance(factor, IntImm):
            # The quotient rounded up.
            towards = factor.value - (1 if factor.value > 0 else -1)
            return operators.floordiv(operators.add(right, towards), factor), kind
        return operators.add(quotient, 1), kind

    def _relaxed(self, right: PrimExpr, kind: type) -> IntervalSet:
        """The side without the variable, tightened over the sets of ``relax_map``."""
        ends = eval_int_set(self.analyzer.simplify(right), self.relax_map, self.analyzer)
        low: PrimExpr = ends.min_value
        high: PrimExpr = ends.max_value
        if kind is LE:
            return IntervalSet(NEG_INF, low) if low is not NEG_INF else IntSet.nothing()
        if kind is GE:
            return IntervalSet(high, POS_INF) if high is not POS_INF else IntSet.nothing()
        return IntervalSet(low, high) if ends.is_single_point else IntSet.nothing()
