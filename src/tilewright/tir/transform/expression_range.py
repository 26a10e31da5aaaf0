"""The least and the greatest value of an expression while some of its variables run over ranges.

Unlike constant bounds these are expressions in the other variables: over ``v`` in ``0..16`` the least value of
``n - v - i * 16`` is ``n - 15 - i * 16``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.ir import operators
from tilewright.ir.expr import Add, FloorDiv, FloorMod, IntImm, Max, Min, Mul, PrimExpr, Range, Sub, Var
from tilewright.ir.functor import post_order

Ranges = Mapping[Var, Range | None]
"""Ranges of variables; None for a variable of which nothing is known."""

Interval = tuple[PrimExpr | None, PrimExpr | None]
"""Least and greatest value; None for an end that is not known."""


def extreme_values(expr: PrimExpr, ranges: Ranges) -> Interval:
    """The least and greatest value of an integer expression over the ranges; exact or wider."""
    if not any(isinstance(found, Var) and found in ranges for found in post_order(expr)):
        return expr, expr
    if isinstance(expr, Var):
        return _extremes_of_variable(expr, ranges)
    if isinstance(expr, (Add, Sub)):
        low_a, high_a = extreme_values(expr.a, ranges)
        low_b, high_b = extreme_values(expr.b, ranges)
        if isinstance(expr, Add):
            return _combine(operators.add, low_a, low_b), _combine(operators.add, high_a, high_b)
        return _combine(operators.subtract, low_a, high_b), _combine(operators.subtract, high_a, low_b)
    if isinstance(expr, Mul) and isinstance(expr.b, IntImm):
        return _scaled(expr.a, expr.b, ranges)
    if isinstance(expr, Mul) and isinstance(expr.a, IntImm):
        return _scaled(expr.b, expr.a, ranges)
    if isinstance(expr, FloorDiv) and isinstance(expr.b, IntImm) and expr.b.value > 0:
        low, high = extreme_values(expr.a, ranges)
        return _combine(operators.floordiv, low, expr.b), _combine(operators.floordiv, high, expr.b)
    if isinstance(expr, FloorMod) and isinstance(expr.b, IntImm) and expr.b.value > 0:
        return operators.const(0, expr.dtype), operators.const(expr.b.value - 1, expr.dtype)
    if isinstance(expr, (Min, Max)):
        return _extremes_of_choice(expr, ranges)
    return None, None


def _extremes_of_variable(variable: Var, ranges: Ranges) -> Interval:
    found = ranges[variable]
    if found is None:
        return None, None
    # The range of an inner loop may depend on an outer one that runs over a range itself.
    others = {other: known for other, known in ranges.items() if other is not variable}
    low, _ = extreme_values(found.min, others)
    last = operators.add(found.min, operators.subtract(found.extent, 1))
    _, high = extreme_values(last, others)
    return low, high


def _extremes_of_choice(expr: Min | Max, ranges: Ranges) -> Interval:
    low_a, high_a = extreme_values(expr.a, ranges)
    low_b, high_b = extreme_values(expr.b, ranges)
    choose = operators.minimum if isinstance(expr, Min) else operators.maximum
    low, high = _combine(choose, low_a, low_b), _combine(choose, high_a, high_b)
    # A smaller of two is at most either of them, a larger at least either, known or not.
    if isinstance(expr, Min) and high is None:
        high = high_b if high_a is None else high_a
    if isinstance(expr, Max) and low is None:
        low = low_b if low_a is None else low_a
    return low, high


def _scaled(expr: PrimExpr, factor: IntImm, ranges: Ranges) -> Interval:
    low, high = extreme_values(expr, ranges)
    if factor.value < 0:
        low, high = high, low
    return _combine(operators.multiply, low, factor), _combine(operators.multiply, high, factor)


def _combine(
    make: Callable[[PrimExpr, PrimExpr], PrimExpr], a: PrimExpr | None, b: PrimExpr | None
) -> PrimExpr | None:
    return None if a is None or b is None else make(a, b)


def linear_part(expr: PrimExpr, variable: Var) -> tuple[int, PrimExpr] | None:
    """``expr`` as ``factor * variable + rest`` with a constant factor; None if it is not of that form."""
    if expr is variable:
        return 1, operators.const(0, expr.dtype)
    if not any(found is variable for found in post_order(expr)):
        return 0, expr
    if isinstance(expr, (Add, Sub)):
        left, right = linear_part(expr.a, variable), linear_part(expr.b, variable)
        if left is None or right is None:
            return None
        if isinstance(expr, Add):
            return left[0] + right[0], operators.add(left[1], right[1])
        return left[0] - right[0], operators.subtract(left[1], right[1])
    if isinstance(expr, Mul):
        for part, factor in ((expr.a, expr.b), (expr.b, expr.a)):
            found = linear_part(part, variable) if isinstance(factor, IntImm) else None
            if found is not None:
                return found[0] * factor.value, operators.multiply(found[1], factor)  # type: ignore[attr-defined]
    return None
