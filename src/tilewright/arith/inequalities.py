"""Systems of linear inequalities over the integers, solved by Fourier-Motzkin elimination.

The variables are eliminated one by one: each lower bound combined with each upper bound of a variable gives an
inequality between the remaining variables. Then, from the last variable to the first, each gets the tightest range that
its bounds give in terms of the variables after it. Bounds that the range does not imply stay as relations, so that the
solutions are exactly those of the original system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, lcm
from typing import Any

from tilewright.arith.core import AnalyzerCore
from tilewright.arith.int_constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
from tilewright.arith.int_set_eval import eval_int_set
from tilewright.arith.pattern import integer_coefficients
from tilewright.arith.pool import FALSE
from tilewright.ir import operators
from tilewright.ir.expr import EQ, GE, GT, LE, LT, Add, And, ExprLike, IntImm, PrimExpr, Range, Var, is_const
from tilewright.ir.functor import substitute_expr, uses_var

Inequality = tuple[dict[Var, int], PrimExpr]
"""``sum of coefficient * variable + rest <= 0``; the rest uses none of the variables."""

_MAX_INEQUALITIES = 512
"""Elimination can square the number of inequalities.

Combinations beyond this are left out, and only ranges get wider.
"""


def solve_linear_inequalities(
    equations: IntConstraints | Sequence[ExprLike],
    variables: Sequence[Var] | None = None,
    ranges: Mapping[Var, Range] | None = None,
    deskew_range: bool = False,
) -> IntConstraints | IntConstraintsTransform:
    """The ranges of the variables, each in terms of the ones after it, and the relations that they do not imply.

    With ``deskew_range``, a transform to new variables whose ranges start at zero; a range of one value takes
    its variable away.
    """
    source = (
        equations
        if isinstance(equations, IntConstraints)
        else IntConstraints(variables or (), ranges, equations)
    )
    solved = _to_ranges(source)
    return _deskew(source, solved) if deskew_range else solved


def solve_inequalities_as_conditions(
    variables: Sequence[Var], ranges: Mapping[Var, Range] | None, equations: Sequence[ExprLike]
) -> list[PrimExpr]:
    """The same system as bounds: for each variable its lower and its upper ones in terms of the variables after it,
    then what is not linear. A bound that another one implies is left out."""
    source = IntConstraints(variables, ranges, equations)
    analyzer = AnalyzerCore()
    linear, others = _read(source, analyzer)
    bounds, remaining = _eliminate(linear, source.variables, analyzer)
    for variable, known in source.ranges.items():
        _bind_loosely(analyzer, variable, known)
    conditions: list[PrimExpr] = [operators.less_equal(rest, 0) for _, rest in remaining]
    for variable in source.variables:
        group = bounds[variable]
        scaled = operators.multiply(variable, group.coef)
        conditions += [operators.equal(scaled, bound) for bound in group.equal]
        for compare, sides in ((operators.greater_equal, group.lower), (operators.less_equal, group.upper)):
            kept: list[PrimExpr] = []
            for bound in sides:
                if any(analyzer.can_prove(compare(other, bound)) for other in kept):
                    continue
                kept = [other for other in kept if not analyzer.can_prove(compare(bound, other))]
                kept.append(bound)
            conditions += [compare(scaled, bound) for bound in kept]
    found = [
        simplified
        for condition in (*conditions, *others)
        if not isinstance(simplified := _decided(condition), IntImm) or not simplified.value
    ]
    return [FALSE] if any(isinstance(one, IntImm) for one in found) else found


def _decided(condition: PrimExpr) -> PrimExpr:
    """True or false where that is known without the bounds of the variables; otherwise the condition as it is."""
    simplified = AnalyzerCore().simplify(condition)
    return simplified if isinstance(simplified, IntImm) else condition


def _to_ranges(source: IntConstraints) -> IntConstraints:
    analyzer = AnalyzerCore()
    linear, others = _read(source, analyzer)
    bounds, remaining = _eliminate(linear, source.variables, analyzer)
    relations: list[PrimExpr] = []
    for _, rest in remaining:
        condition = analyzer.simplify(operators.less_equal(rest, 0))
        if isinstance(condition, IntImm):
            if not condition.value:
                return IntConstraints((), {}, [FALSE])
        else:
            relations.append(condition)
    ranges: dict[Var, Range] = {}
    for variable in reversed(source.variables):
        group = bounds[variable]
        found = group.find_best_range(analyzer=analyzer)
        if found is not None:
            if isinstance(found.extent, IntImm) and found.extent.value <= 0:
                return IntConstraints((), {}, [FALSE])
            ranges[variable] = found
        relations += _unproved(variable, group, found, analyzer)
        if found is not None and analyzer.const_int_bound(found.extent).min_value > 0:
            if is_const(found.extent, 1) and isinstance(found.min, IntImm):
                analyzer.bind(variable, found.min)
            elif is_const(found.extent, 1):
                low = analyzer.const_int_bound(found.min).pair()
                analyzer.bounds.variables[variable] = low
            else:
                analyzer.bind(variable, found)
        elif found is not None:
            _bind_loosely(analyzer, variable, found)
    for relation in others:
        simplified = analyzer.simplify(relation)
        if not isinstance(simplified, IntImm):
            relations.append(simplified)
        elif not simplified.value:
            return IntConstraints((), {}, [FALSE])
    ordered = {variable: ranges[variable] for variable in source.variables if variable in ranges}
    return IntConstraints(source.variables, ordered, relations)


def _bind_loosely(analyzer: AnalyzerCore, variable: Var, known: Range) -> None:
    """Let the analyzer know the bounds of a variable whose range may be empty for some values of the others."""
    low = analyzer.const_int_bound(known.min).pair()[0]
    last = operators.subtract(operators.add(known.min, known.extent), 1)
    high = analyzer.const_int_bound(last).pair()[1]
    analyzer.bounds.variables[variable] = low, high


def _read(source: IntConstraints, analyzer: AnalyzerCore) -> tuple[list[Inequality], list[PrimExpr]]:
    """The relations and ranges as inequalities, and the relations that are not linear."""
    linear: list[Inequality] = []
    others: list[PrimExpr] = []
    stack: list[Any] = list(reversed(source.relations))
    for variable in source.variables:
        known = source.ranges.get(variable)
        if known is not None:
            stack.append(GE(variable, known.min))
            stack.append(LT(variable, operators.add(known.min, known.extent)))
    while stack:
        relation = stack.pop()
        kind = type(relation)
        if kind is And:
            stack += (relation.b, relation.a)
            continue
        made = None
        if kind in (LT, LE, GT, GE, EQ) and relation.a.dtype.is_int:
            made = _inequality(relation, kind, source.variables, analyzer)
        if made is None:
            others.append(relation)
        else:
            linear += made
    return linear, others


def _inequality(
    relation: Any, kind: type, variables: Sequence[Var], analyzer: AnalyzerCore
) -> list[Inequality] | None:
    difference = operators.subtract(relation.a, relation.b)
    if kind in (GT, GE):
        difference = operators.subtract(relation.b, relation.a)
    if kind in (LT, GT):
        difference = operators.add(difference, 1)
    found = integer_coefficients(difference, variables)
    if found is None:
        return None
    factors = {variable: factor for variable, factor in zip(variables, found[0], strict=True) if factor}
    made = [(factors, found[1])]
    if kind is EQ:
        made.append(
            ({variable: -factor for variable, factor in factors.items()}, operators.negative(found[1]))
        )
    return [(factors, analyzer.simplify(rest)) for factors, rest in made]


def _eliminate(
    linear: list[Inequality], variables: Sequence[Var], analyzer: AnalyzerCore
) -> tuple[dict[Var, IntGroupBounds], list[Inequality]]:
    """The bounds of each variable in terms of the ones after it, and the inequalities without variables."""
    bounds: dict[Var, IntGroupBounds] = {}
    current = _reduced(linear, analyzer)
    for variable in variables:
        lower = [item for item in current if item[0].get(variable, 0) < 0]
        upper = [item for item in current if item[0].get(variable, 0) > 0]
        rest = [item for item in current if variable not in item[0]]
        bounds[variable] = _group(variable, lower, upper, analyzer)
        combined: list[Inequality] = []
        for below in lower:
            for above in upper:
                if len(rest) + len(combined) < _MAX_INEQUALITIES:
                    combined.append(_combine(variable, below, above))
        current = _reduced(rest + combined, analyzer)
    return bounds, current


def _combine(variable: Var, below: Inequality, above: Inequality) -> Inequality:
    """The inequality that follows from a lower and an upper bound when the variable is taken out."""
    low, high = -below[0][variable], above[0][variable]
    factors: dict[Var, int] = {}
    for source, scale in ((below[0], high), (above[0], low)):
        for name, factor in source.items():
            factors[name] = factors.get(name, 0) + factor * scale
    rest = operators.add(operators.multiply(below[1], high), operators.multiply(above[1], low))
    return {name: factor for name, factor in factors.items() if factor}, rest


def _reduced(items: list[Inequality], analyzer: AnalyzerCore) -> list[Inequality]:
    """The inequalities divided by common factors, without repetitions and those that are always true."""
    found: dict[Any, Inequality] = {}
    for factors, rest in items:
        rest = analyzer.simplify(rest)
        if not factors and isinstance(rest, IntImm) and rest.value <= 0:
            continue
        if isinstance(rest, IntImm) and factors:
            common = gcd(*factors.values())
            # The sum is a multiple of the common factor, so the constant may be rounded up.
            rest = IntImm(rest.dtype, -((-rest.value) // common))
            factors = {name: factor // common for name, factor in factors.items()}
            key: Any = tuple(sorted((id(name), factor) for name, factor in factors.items()))
            known = found.get(key)
            if known is not None and isinstance(known[1], IntImm) and known[1].value >= rest.value:
                continue
        else:
            key = (tuple(sorted((id(name), factor) for name, factor in factors.items())), rest)
        found[key] = factors, rest
    return list(found.values())


def _group(
    variable: Var, lower: list[Inequality], upper: list[Inequality], analyzer: AnalyzerCore
) -> IntGroupBounds:
    """Bounds of ``coefficient * variable`` with the least common coefficient."""
    scale = lcm(*[abs(item[0][variable]) for item in (*lower, *upper)]) if lower or upper else 1

    def side(item: Inequality, sign: int) -> PrimExpr:
        factor = scale // abs(item[0][variable])
        total: PrimExpr = operators.multiply(item[1], -sign * factor)
        for name, coefficient in item[0].items():
            if name is not variable:
                total = operators.add(total, operators.multiply(name, -sign * factor * coefficient))
        return analyzer.simplify(total)

    lows = [side(item, -1) for item in lower]
    highs = [side(item, 1) for item in upper]
    equal = [low for low in lows if any(low is high for high in highs)]
    lows = [low for low in lows if not any(low is point for point in equal)]
    highs = [high for high in highs if not any(high is point for point in equal)]
    return IntGroupBounds(operators.const(scale, variable.dtype), lows, equal, highs)


def _unproved(
    variable: Var, group: IntGroupBounds, found: Range | None, analyzer: AnalyzerCore
) -> list[PrimExpr]:
    """The bounds of a variable that its range does not imply, as relations."""
    scaled = operators.multiply(variable, group.coef)
    relations: list[PrimExpr] = []
    first = last = None
    if found is not None:
        first = operators.multiply(found.min, group.coef)
        last = operators.multiply(operators.subtract(operators.add(found.min, found.extent), 1), group.coef)
    for bound in (*group.equal, *group.lower):
        if first is None or not analyzer.can_prove(operators.greater_equal(first, bound)):
            relations.append(operators.greater_equal(scaled, bound))
    for bound in (*group.equal, *group.upper):
        if last is None or not analyzer.can_prove(operators.less_equal(last, bound)):
            relations.append(operators.less_equal(scaled, bound))
    return [analyzer.simplify(relation) for relation in relations]


def _deskew(source: IntConstraints, solved: IntConstraints) -> IntConstraintsTransform:
    """New variables that start at zero, with constant lengths where those are known."""
    if any(isinstance(relation, IntImm) and not relation.value for relation in solved.relations):
        return IntConstraintsTransform(source, IntConstraints((), {}, [FALSE]), {}, {})
    analyzer = AnalyzerCore()
    src_to_dst: dict[Var, PrimExpr] = {}
    dst_to_src: dict[Var, PrimExpr] = {}
    variables: list[Var] = []
    ranges: dict[Var, Range] = {}
    relations: list[PrimExpr] = []
    for variable in reversed(solved.variables):
        known = solved.ranges.get(variable)
        if known is None:
            src_to_dst[variable] = variable
            dst_to_src[variable] = variable
            variables.append(variable)
            continue
        start = analyzer.simplify(substitute_expr(known.min, src_to_dst))
        extent = analyzer.simplify(substitute_expr(known.extent, src_to_dst))
        if isinstance(extent, IntImm) and extent.value == 1:
            src_to_dst[variable] = start
            continue
        shifted = Var(f"{variable.name}.shifted", variable.dtype)
        src_to_dst[variable] = shifted if is_const(start, 0) else Add(shifted, start)
        dst_to_src[shifted] = analyzer.simplify(operators.subtract(variable, known.min))
        longest = eval_int_set(extent, ranges, analyzer)
        length = longest.max_value if longest.has_upper_bound else extent
        if not isinstance(extent, IntImm) and not uses_var(length, list(ranges)):
            relations.append(analyzer.simplify(operators.less_equal(shifted, operators.subtract(extent, 1))))
        ranges[shifted] = Range.from_min_extent(operators.const(0, variable.dtype), length)
        _bind_loosely(analyzer, shifted, ranges[shifted])
        variables.append(shifted)
    relations += [substitute_expr(relation, src_to_dst) for relation in solved.relations]
    kept: list[PrimExpr] = []
    for relation in relations:
        simplified = analyzer.simplify(relation)
        if not isinstance(simplified, IntImm):
            kept.append(simplified)
        elif not simplified.value:
            return IntConstraintsTransform(source, IntConstraints((), {}, [FALSE]), {}, {})
    variables.reverse()
    ordered = {variable: ranges[variable] for variable in variables if variable in ranges}
    return IntConstraintsTransform(source, IntConstraints(variables, ordered, kept), src_to_dst, dst_to_src)
