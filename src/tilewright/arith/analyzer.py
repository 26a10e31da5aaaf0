"""The analyzer: the core and integer sets.

Beyond what the core simplifies, a comparison is proved by the interval of the difference, when variables were
bound to ranges whose ends are not constant: with ``i`` in ``range(0, n)``, ``i < n`` holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.arith.const_int_bound import ConstIntBound
from tilewright.arith.core import AnalyzerCore, ConstraintScope
from tilewright.arith.int_set import IntervalSet
from tilewright.arith.int_set_eval import eval_int_set
from tilewright.arith.modular_set import ModularSet
from tilewright.arith.pool import is_index
from tilewright.ir import operators
from tilewright.ir.expr import EQ, LE, LT, And, ExprLike, IntImm, Or


class Analyzer(AnalyzerCore):
    """Bounds, congruences, integer sets, simplification and proofs of integer expressions under what is known."""

    def int_set(self, expr: ExprLike, dom_map: Mapping[Any, Any] | None = None) -> IntervalSet:
        """An interval that contains the values of the expression.

        Without a map, over the ranges that variables are bound to.
        """
        return eval_int_set(expr, self.ranges if dom_map is None else dom_map, self)

    def can_prove(self, expr: ExprLike) -> bool:
        """True only if the condition is known to hold."""
        node = operators.as_expr(expr)
        if type(node) is not IntImm:
            node = self.deeply(self.simplified, node, 2)
        if type(node) is IntImm:
            return node.value != 0
        return bool(self.ranges) and self._prove_by_ranges(node)

    def _prove_by_ranges(self, condition: Any) -> bool:
        """True if the ranges of variables decide a simplified condition."""
        kind = type(condition)
        if kind is And:
            return self._prove_by_ranges(condition.a) and self._prove_by_ranges(condition.b)
        if kind is Or:
            return self._prove_by_ranges(condition.a) or self._prove_by_ranges(condition.b)
        if kind not in (LT, LE, EQ) or not is_index(condition.a.dtype):
            return False
        ends = eval_int_set(operators.subtract(condition.a, condition.b), self.ranges, self)
        gap = 1 if kind is LT else 0
        if not ends.has_upper_bound or self.const_int_bound(ends.max_value).max_value > -gap:
            return False
        return kind is not EQ or (
            ends.has_lower_bound and self.const_int_bound(ends.min_value).min_value >= 0
        )


__all__ = ["Analyzer", "ConstIntBound", "ConstraintScope", "ModularSet"]
