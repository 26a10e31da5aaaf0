"""Linear forms of expressions in given variables, and the bounds that a condition sets on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arith.core import AnalyzerCore, knowing_nothing
from tilewright.arith.int_set import NEG_INF, POS_INF
from tilewright.ir import operators
from tilewright.ir.expr import EQ, GE, GT, LE, LT, Add, And, Call, ExprLike, IntImm, Mul, PrimExpr, Sub, Var
from tilewright.ir.functor import uses_var
from tilewright.support.recursion import with_recursion_room

_Linear = tuple[PrimExpr | None, PrimExpr | None]
"""``(coefficient, base)`` of ``coefficient * variable + base``; None stands for zero."""


class _Detector:
    """Takes an expression apart into ``coefficient * variable + base``."""

    def __init__(self, variable: Var) -> None:
        self.variable = variable
        self.memo: dict[PrimExpr, _Linear | None] = {}

    def visit(self, node: Any) -> _Linear | None:
        """The linear form, or None if there is none."""
        if node in self.memo:
            return self.memo[node]
        made = self._take_apart(node)
        self.memo[node] = made
        return made

    def _take_apart(self, node: Any) -> _Linear | None:
        kind = type(node)
        if node is self.variable:
            return operators.const(1, node.dtype), None
        if kind is Add or kind is Sub:
            a, b = self.visit(node.a), self.visit(node.b)
            if a is None or b is None:
                return None
            join = _sum if kind is Add else _difference
            return join(a[0], b[0]), join(a[1], b[1])
        if kind is Mul:
            a, b = self.visit(node.a), self.visit(node.b)
            if a is None or b is None or (a[0] is not None and b[0] is not None):
                return None
            if a[0] is None:
                a, b = b, a
            return _product(a[0], b[1]), _product(a[1], b[1])
        return None if uses_var(node, self.variable) else (None, node)


def _sum(a: PrimExpr | None, b: PrimExpr | None) -> PrimExpr | None:
    if a is None or b is None:
        return b if a is None else a
    return operators.add(a, b)


def _difference(a: PrimExpr | None, b: PrimExpr | None) -> PrimExpr | None:
    if b is None:
        return a
    return operators.negative(b) if a is None else operators.subtract(a, b)


def _product(a: PrimExpr | None, b: PrimExpr | None) -> PrimExpr | None:
    return None if a is None or b is None else operators.multiply(a, b)


def detect_linear_equation(expr: ExprLike, var_list: Sequence[Var]) -> list[PrimExpr]:
    """``[c1, c2, ..., base]`` such that the expression is ``c1 * v1 + c2 * v2 + ... + base``, free of the variables.

    An empty list if the expression is not linear in them.
    """
    return _detect(operators.as_expr(expr), list(var_list))


def integer_coefficients(expr: ExprLike, variables: Sequence[Var]) -> tuple[list[int], PrimExpr] | None:
    """Coefficients and base of an expression that is linear in the variables with constant coefficients, or None."""
    found = detect_linear_equation(expr, variables)
    factors = [coefficient.value for coefficient in found[:-1] if isinstance(coefficient, IntImm)]
    return (factors, found[-1]) if found and len(factors) == len(variables) else None


@with_recursion_room
def _detect(expr: PrimExpr, variables: list[Var]) -> list[PrimExpr]:
    base = expr
    zero = operators.const(0, expr.dtype)
    coefficients: list[PrimExpr] = []
    for variable in variables:
        found = _Detector(variable).visit(base)
        if found is None:
            return []
        coefficients.append(zero if found[0] is None else found[0])
        base = zero if found[1] is None else found[1]
    if any(uses_var(coefficient, variables) for coefficient in coefficients):
        return []
    if base.dtype.is_integral:
        analyzer = knowing_nothing()
        return [analyzer.simplify(part) for part in (*coefficients, base)]
    return [*coefficients, base]


@with_recursion_room
def detect_clip_bound(expr: ExprLike, var_list: Sequence[Var]) -> list[PrimExpr]:
    """``[min1, max1, min2, max2, ...]``: the bounds that a conjunction of comparisons sets on the variables.

    Ends that are not bounded are the symbols of infinity. An empty list if a comparison bounds several of the
    variables at once, has a coefficient other than one, or the condition is something else.
    """
    bounds: dict[Var, tuple[PrimExpr | None, PrimExpr | None]] = {
        variable: (None, None) for variable in var_list
    }
    stack = [operators.as_expr(expr)]
    analyzer = knowing_nothing()
    while stack:
        condition: Any = stack.pop()
        if isinstance(condition, And):
            stack += (condition.b, condition.a)
            continue
        if isinstance(condition, Call) and getattr(condition.op, "name", "") == "tir.likely":
            stack.append(condition.args[0])
            continue
        if not _clip(condition, bounds, analyzer):
            return []
    made: list[PrimExpr] = []
    for low, high in bounds.values():
        made.append(NEG_INF if low is None else analyzer.simplify(low))
        made.append(POS_INF if high is None else analyzer.simplify(high))
    return made


def _clip(
    condition: Any, bounds: dict[Var, tuple[PrimExpr | None, PrimExpr | None]], analyzer: AnalyzerCore
) -> bool:
    """Enter the bound that one comparison sets; False if it is not of the right kind."""
    kind = type(condition)
    if kind not in (LT, LE, GT, GE, EQ) or not condition.a.dtype.is_int:
        return False
    used = [variable for variable in bounds if uses_var(condition, variable)]
    if len(used) != 1:
        return False
    variable = used[0]
    difference = _Detector(variable).visit(operators.subtract(condition.a, condition.b))
    if difference is None or difference[0] is None:
        return False
    coefficient = analyzer.simplify(difference[0])
    if not isinstance(coefficient, IntImm) or abs(coefficient.value) != 1:
        return False
    # variable * coefficient + base  compared with  0
    base = difference[1] if difference[1] is not None else operators.const(0, variable.dtype)
    positive = coefficient.value > 0
    edge = operators.negative(base) if positive else base
    upper = kind is EQ or (kind in (LT, LE)) is positive
    lower = kind is EQ or (kind in (GT, GE)) is positive
    gap = 1 if kind in (LT, GT) else 0
    low, high = bounds[variable]
    if upper:
        limit = operators.subtract(edge, gap)
        high = limit if high is None else operators.minimum(high, limit)
    if lower:
        limit = operators.add(edge, gap)
        low = limit if low is None else operators.maximum(low, limit)
    bounds[variable] = low, high
    return True
