"""Properties of an index at code generation: the form of a vector index, and the powers of two that divide it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import (
    Add,
    Broadcast,
    Call,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    PrimExpr,
    Ramp,
    Select,
    Sub,
    Var,
)

FACTOR_LIMIT = 64
"""No alignment beyond this is of use."""


LinearForm = tuple[PrimExpr, PrimExpr]


def linear_form(index: PrimExpr, memo: dict[int, LinearForm | None] | None = None) -> LinearForm | None:
    """``base, stride`` if the lanes of a vector index are ``base + stride * lane``, else None."""
    memo = {} if memo is None else memo
    if id(index) not in memo:
        memo[id(index)] = _linear_form(index, memo)
    return memo[id(index)]


def _linear_form(index: PrimExpr, memo: dict[int, LinearForm | None]) -> LinearForm | None:
    if isinstance(index, Ramp):
        return index.base, index.stride
    if isinstance(index, Broadcast):
        return index.value, operators.const(0, index.value.dtype)
    if isinstance(index, (Add, Sub)):
        left, right = linear_form(index.a, memo), linear_form(index.b, memo)
        if left is None or right is None:
            return None
        combine = operators.add if isinstance(index, Add) else operators.subtract
        return combine(left[0], right[0]), combine(left[1], right[1])
    if isinstance(index, Mul):
        for vector, scale in ((index.a, index.b), (index.b, index.a)):
            form = linear_form(vector, memo) if isinstance(scale, Broadcast) else None
            if form is not None and isinstance(scale, Broadcast):
                return operators.multiply(form[0], scale.value), operators.multiply(form[1], scale.value)
    return None


def power_of_two_factor(expr: PrimExpr, known: Mapping[Var, int], memo: dict[int, int] | None = None) -> int:
    """A power of two, at most ``FACTOR_LIMIT``, that divides the value of an integer expression."""
    memo = {} if memo is None else memo
    found = memo.get(id(expr))
    if found is None:
        found = memo[id(expr)] = _factor(expr, known, memo)
    return found


def _factor(expr: PrimExpr, known: Mapping[Var, int], memo: dict[int, int]) -> int:
    if isinstance(expr, IntImm):
        return FACTOR_LIMIT if expr.value == 0 else min(expr.value & -expr.value, FACTOR_LIMIT)
    if isinstance(expr, Var):
        return known.get(expr, 1)
    if isinstance(expr, (Add, Sub, Min, Max, Mod, FloorMod)):
        return min(power_of_two_factor(expr.a, known, memo), power_of_two_factor(expr.b, known, memo))
    if isinstance(expr, Mul):
        product = power_of_two_factor(expr.a, known, memo) * power_of_two_factor(expr.b, known, memo)
        return min(product, FACTOR_LIMIT)
    if isinstance(expr, FloorDiv) and isinstance(expr.b, IntImm):
        divisor = expr.b.value
        if divisor > 0 and divisor & (divisor - 1) == 0:
            return max(1, power_of_two_factor(expr.a, known, memo) // divisor)
    if isinstance(expr, Cast) and expr.value.dtype.is_integral and expr.value.dtype.bits >= 32:
        return power_of_two_factor(expr.value, known, memo)
    if isinstance(expr, Select):
        yes = power_of_two_factor(expr.true_value, known, memo)
        return min(yes, power_of_two_factor(expr.false_value, known, memo))
    return 1


def is_pure_index(expr: PrimExpr) -> bool:
    """True if a scalar signed integer consists only of variables, constants, sums, differences and products.

    Such an expression is index arithmetic, which is assumed not to overflow. A value read from memory may be data,
    whose arithmetic wraps.
    """
    stack: list[PrimExpr] = [expr]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen or isinstance(current, (IntImm, Var)):
            continue
        seen.add(id(current))
        if not isinstance(current, (Add, Sub, Mul)):
            return False
        stack += [current.a, current.b]
    return True


def is_cheap(expr: PrimExpr, budget: int = 12) -> bool:
    """True if evaluating the expression is safe whatever the condition, and costs less than a branch."""
    stack: list[Any] = [expr]
    while stack:
        current = stack.pop()
        budget -= 1
        if budget < 0 or isinstance(current, (Load, Call, Let)):
            return False
        stack.extend(current.children())
    return True
