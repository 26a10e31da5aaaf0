"""Systems of linear equations over the integers, solved by the Smith normal form.

``A x = b`` with integer ``A`` becomes ``S y = U b``, where ``S = U A V`` is diagonal and ``x = V y``. A ``y``
with a nonzero diagonal entry is determined (the entry must divide the right-hand side: a relation that stays
if it cannot be proved); the others are the free variables of the solution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arith.core import AnalyzerCore
from tilewright.arith.int_constraints import IntConstraints, IntConstraintsTransform
from tilewright.arith.int_set_eval import eval_int_set
from tilewright.arith.pattern import integer_coefficients
from tilewright.arith.pool import FALSE
from tilewright.ir import operators
from tilewright.ir.expr import EQ, ExprLike, IntImm, PrimExpr, Range, Var
from tilewright.ir.functor import substitute_expr, uses_var

Matrix = list[list[int]]


def solve_linear_equations(
    equations: IntConstraints | Sequence[ExprLike],
    variables: Sequence[Var] | None = None,
    ranges: Mapping[Var, Range] | None = None,
) -> IntConstraintsTransform:
    """The solutions of a system of equations: the variables in terms of free ones, with ranges and what else must hold.

    Relations that are not linear equations with constant coefficients stay relations.
    """
    source = (
        equations
        if isinstance(equations, IntConstraints)
        else IntConstraints(variables or (), ranges, equations)
    )
    if not source.variables:
        return IntConstraintsTransform(source, source, {}, {})
    analyzer = AnalyzerCore()
    for variable, known in source.ranges.items():
        analyzer.bind(variable, known)
    rows: Matrix = []
    right: list[PrimExpr] = []
    rest: list[PrimExpr] = []
    for relation in source.relations:
        row = _row(relation, source.variables, analyzer)
        if row is None:
            rest.append(relation)
        else:
            rows.append(row[0])
            right.append(row[1])
    forward = diagonalize(rows, right, len(source.variables))
    return _solution(source, rows, right, rest, forward, AnalyzerCore())


def _row(
    relation: Any, variables: Sequence[Var], analyzer: AnalyzerCore
) -> tuple[list[int], PrimExpr] | None:
    """Coefficients and right-hand side of an equation; None if it is not linear with constant coefficients."""
    if type(relation) is not EQ:
        return None
    found = integer_coefficients(operators.subtract(relation.a, relation.b), variables)
    return None if found is None else (found[0], analyzer.simplify(operators.negative(found[1])))


def diagonalize(rows: Matrix, right: list[PrimExpr], width: int) -> tuple[Matrix, Matrix]:
    """Make the rows diagonal, in place, and the right-hand sides with them; gives ``V`` and its inverse."""
    forward = [[int(i == j) for j in range(width)] for i in range(width)]
    backward = [[int(i == j) for j in range(width)] for i in range(width)]

    def combine_rows(target: int, source: int, factor: int) -> None:
        rows[target] = [a - factor * b for a, b in zip(rows[target], rows[source], strict=True)]
        right[target] = operators.subtract(right[target], operators.multiply(right[source], factor))

    def combine_columns(target: int, source: int, factor: int) -> None:
        for row in (*rows, *forward):
            row[target] -= factor * row[source]
        backward[source] = [a + factor * b for a, b in zip(backward[source], backward[target], strict=True)]

    def swap_columns(first: int, second: int) -> None:
        for row in (*rows, *forward):
            row[first], row[second] = row[second], row[first]
        backward[first], backward[second] = backward[second], backward[first]

    for step in range(min(len(rows), width)):
        candidates = [
            (abs(rows[i][j]), i, j) for i in range(step, len(rows)) for j in range(step, width) if rows[i][j]
        ]
        if not candidates:
            break
        _, i, j = min(candidates)
        rows[step], rows[i] = rows[i], rows[step]
        right[step], right[i] = right[i], right[step]
        if j != step:
            swap_columns(step, j)
        while True:
            for i in range(step + 1, len(rows)):
                if rows[i][step]:
                    combine_rows(i, step, rows[i][step] // rows[step][step])
            below = [i for i in range(step + 1, len(rows)) if rows[i][step]]
            if below:
                # A smaller remainder becomes the pivot.
                rows[step], rows[below[0]] = rows[below[0]], rows[step]
                right[step], right[below[0]] = right[below[0]], right[step]
                continue
            for j in range(step + 1, width):
                if rows[step][j]:
                    combine_columns(j, step, rows[step][j] // rows[step][step])
            beside = [j for j in range(step + 1, width) if rows[step][j]]
            if not beside:
                break
            swap_columns(step, beside[0])
    return forward, backward


def _solution(
    source: IntConstraints,
    rows: Matrix,
    right: list[PrimExpr],
    rest: list[PrimExpr],
    bases: tuple[Matrix, Matrix],
    analyzer: AnalyzerCore,
) -> IntConstraintsTransform:
    forward, backward = bases
    width = len(source.variables)
    dtype = source.variables[0].dtype if source.variables else "int32"
    relations: list[PrimExpr] = []
    values: list[PrimExpr | None] = [None] * width
    for i, (row, value) in enumerate(zip(rows, right, strict=True)):
        pivot = row[i] if i < width else 0
        simplified = analyzer.simplify(value)
        if pivot == 0:
            relations.append(analyzer.simplify(operators.equal(simplified, 0)))
            continue
        if abs(pivot) != 1:
            relations.append(
                analyzer.simplify(operators.equal(operators.floormod(simplified, abs(pivot)), 0))
            )
        values[i] = analyzer.simplify(operators.floordiv(simplified, pivot))
    relations = [relation for relation in relations if not (isinstance(relation, IntImm) and relation.value)]
    if any(isinstance(relation, IntImm) for relation in relations):
        return IntConstraintsTransform(source, IntConstraints((), {}, [FALSE]), {}, {})
    # Named for their order; the sign is such that the first variable that depends on one grows with it.
    free: list[Var] = []
    dst_to_src: dict[Var, PrimExpr] = {}
    for j in range(width):
        if values[j] is None:
            variable = Var(f"n{len(free)}", dtype)
            sign = next((1 if line[j] > 0 else -1 for line in forward if line[j]), 1)
            values[j] = variable if sign > 0 else operators.negative(variable)
            terms = [(source.variables[i], sign * backward[j][i]) for i in range(width)]
            dst_to_src[variable] = analyzer.simplify(_combination(terms, dtype))
            free.append(variable)
    src_to_dst = {
        variable: analyzer.simplify(_combination(zip(values, line, strict=True), dtype))
        for variable, line in zip(source.variables, forward, strict=True)
    }
    ranges, more = _translate_ranges(source, free, src_to_dst, dst_to_src)
    relations += more
    relations += [analyzer.simplify(substitute_expr(relation, src_to_dst)) for relation in rest]
    return IntConstraintsTransform(source, IntConstraints(free, ranges, relations), src_to_dst, dst_to_src)


def _combination(terms: Any, dtype: str) -> PrimExpr:
    total: PrimExpr = operators.const(0, dtype)
    for term, factor in terms:
        if factor:
            total = operators.add(total, operators.multiply(term, factor))
    return total


def _translate_ranges(
    source: IntConstraints,
    free: Sequence[Var],
    src_to_dst: Mapping[Var, PrimExpr],
    dst_to_src: Mapping[Var, PrimExpr],
) -> tuple[dict[Var, Range], list[PrimExpr]]:
    """Ranges of the free variables, and what the old ranges say beyond them."""
    analyzer = AnalyzerCore()
    ranges: dict[Var, Range] = {}
    for variable in free:
        found = eval_int_set(dst_to_src[variable], source.ranges, analyzer)
        ends = found.min_value, found.max_value
        if found.is_bounded and not any(uses_var(end, source.variables) for end in ends):
            ranges[variable] = found.cover_range(Range(0, 1), analyzer)
    for variable, known in ranges.items():
        analyzer.bind(variable, known)
    relations = []
    for variable in source.variables:
        known_range = source.ranges.get(variable)
        if known_range is None:
            continue
        value = src_to_dst[variable]
        last = operators.add(known_range.min, known_range.extent)
        for condition in (operators.less_equal(known_range.min, value), operators.less(value, last)):
            if not analyzer.can_prove(condition):
                relations.append(analyzer.simplify(condition))
    return ranges, relations
