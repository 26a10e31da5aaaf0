"""The values that loop variables can have where a condition holds."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith import Analyzer, IntervalSet, intersect, neg_inf, pos_inf
from tilewright.arith.pattern import integer_coefficients
from tilewright.ir import operators
from tilewright.ir.expr import EQ, GE, GT, LE, LT, NE, And, Call, Not, Or, PrimExpr, Var
from tilewright.ir.functor import uses_var

Ranges = list[tuple[Var, IntervalSet]]

_NEGATED: dict[type[PrimExpr], type[PrimExpr]] = {LT: GE, GE: LT, GT: LE, LE: GT, EQ: NE, NE: EQ}


def negated(condition: PrimExpr) -> PrimExpr:
    """The opposite of a condition, with the negation at the comparisons."""
    bare = _without_mark(condition)
    if isinstance(bare, Not):
        return bare.a
    if isinstance(bare, Or):
        return operators.logical_and(negated(bare.a), negated(bare.b))
    if isinstance(bare, And):
        return operators.logical_or(negated(bare.a), negated(bare.b))
    opposite = _NEGATED.get(type(bare))
    if opposite is None:
        return operators.logical_not(bare)
    return opposite(bare.a, bare.b)  # type: ignore[attr-defined,call-arg]


def narrowed(ranges: Sequence[tuple[Var, IntervalSet]], condition: PrimExpr, analyzer: Analyzer) -> Ranges:
    """The ranges without values for which no choice of the other variables makes the condition hold.

    Comparisons of sums of the variables with integer coefficients are used; what is not of that form narrows nothing.
    """
    found = dict(ranges)
    for low, high in _inequalities(condition):
        # low <= high, so high - low is not negative.
        linear = integer_coefficients(operators.subtract(high, low), list(found))
        if linear is None:
            continue
        base = linear[1]
        factors = {variable: factor for variable, factor in zip(found, linear[0], strict=True) if factor}
        for variable, factor in factors.items():
            most = [_most(other, found[name]) for name, other in factors.items() if name is not variable]
            total = base
            for term in most:
                if term is not None:
                    total = operators.add(total, term)
            if any(term is None for term in most) or uses_var(total, list(found)):
                continue
            values = intersect([found[variable], _solved(factor, total)], analyzer)
            if not values.is_nothing():
                found[variable] = values
    return list(found.items())


def _most(coefficient: int, values: IntervalSet) -> PrimExpr | None:
    """The greatest value of a term; None if it has no bound."""
    if not (values.has_upper_bound if coefficient > 0 else values.has_lower_bound):
        return None
    return operators.multiply(values.max_value if coefficient > 0 else values.min_value, coefficient)


def _solved(coefficient: int, total: PrimExpr) -> IntervalSet:
    """The values x with ``coefficient * x + total >= 0``."""
    if coefficient > 0:
        # x >= ceil(-total / coefficient)
        return IntervalSet(operators.subtract(0, operators.floordiv(total, coefficient)), pos_inf())
    return IntervalSet(neg_inf(), operators.floordiv(total, -coefficient))


def _inequalities(condition: PrimExpr) -> list[tuple[PrimExpr, PrimExpr]]:
    """Pairs (low, high) with ``low <= high`` where the condition holds."""
    bare = _without_mark(condition)
    if isinstance(bare, And):
        return _inequalities(bare.a) + _inequalities(bare.b)
    if isinstance(bare, Not):
        opposite = negated(bare.a)
        return [] if isinstance(opposite, Not) else _inequalities(opposite)
    if not isinstance(bare, (LT, LE, GT, GE, EQ)) or not bare.a.dtype.is_int or bare.a.dtype.lanes != 1:
        return []
    if isinstance(bare, LT):
        return [(operators.add(bare.a, 1), bare.b)]
    if isinstance(bare, GT):
        return [(operators.add(bare.b, 1), bare.a)]
    if isinstance(bare, LE):
        return [(bare.a, bare.b)]
    if isinstance(bare, GE):
        return [(bare.b, bare.a)]
    return [(bare.a, bare.b), (bare.b, bare.a)]


def _without_mark(condition: PrimExpr) -> PrimExpr:
    """The condition inside ``likely``."""
    while isinstance(condition, Call) and getattr(condition.op, "name", "") == "tir.likely":
        condition = condition.args[0]
    return condition
