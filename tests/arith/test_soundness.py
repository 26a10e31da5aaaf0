"""Whatever the analyzer says of an expression is true: random expressions against evaluation on a small box."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.arith import Analyzer, ConstIntBound, IntervalSet, ModularSet, eval_int_set
from tilewright.ir import operators
from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Range,
    Select,
    Sub,
    Var,
)  # fmt: skip

X, Y, Z = (Var(name) for name in "xyz")
VARIABLES = (X, Y, Z)
BOX = range(-6, 7, 2), range(-3, 4), range(-1, 3)

SUMS = st.sampled_from([Add, Sub, Mul, Min, Max])
DIVISIONS = st.sampled_from([FloorDiv, FloorMod, Div, Mod])
COMPARISONS = st.sampled_from([EQ, NE, LT, LE, GT, GE])
SMALL = st.integers(-9, 9).map(lambda value: IntImm("int32", value))
DIVISORS = st.sampled_from([1, 2, 3, 4, 6, 8, -1, -2, -3]).map(lambda value: IntImm("int32", value))
LEAVES = st.one_of(st.sampled_from(VARIABLES), st.sampled_from(VARIABLES), SMALL)


def _grow(inner: Any) -> Any:
    conditions = st.builds(lambda kind, a, b: kind(a, b), COMPARISONS, inner, inner)
    return st.one_of(
        st.builds(lambda kind, a, b: kind(a, b), SUMS, inner, inner),
        st.builds(lambda a, b: Mul(a, b), inner, SMALL),
        st.builds(lambda kind, a, b: kind(a, b), DIVISIONS, inner, DIVISORS),
        st.builds(lambda kind, a, b: kind(a, b), DIVISIONS, inner, inner),
        st.builds(Select, conditions, inner, inner),
    )


INTEGERS = st.recursive(LEAVES, _grow, max_leaves=10)
ATOMS = st.builds(lambda kind, a, b: kind(a, b), COMPARISONS, INTEGERS, INTEGERS)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(lambda kind, a, b: kind(a, b), st.sampled_from([And, Or]), inner, inner),
        st.builds(Not, inner),
    ),
    max_leaves=3,
)
EXAMPLES = settings(max_examples=80, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="session")
def points(evaluate: Any, undefined: Any) -> Any:
    """The values of an expression at every point of a box where it is defined, as ``(assignment, value)``."""

    def found(expr: Any, box: Any = BOX) -> Any:
        for values in product(*box):
            assignment = dict(zip(VARIABLES, values, strict=True))
            try:
                yield assignment, evaluate(expr, assignment)
            except undefined:
                continue

    return found


def _simplifiers(analyzer: Analyzer) -> Any:
    return analyzer.rewrite_simplify, analyzer.canonical_simplify, analyzer.simplify


@EXAMPLES
@given(expr=st.one_of(INTEGERS, CONDITIONS))
def test_simplified_expressions_keep_their_value(expr: Any, points: Any, evaluate: Any) -> None:
    """Nothing known: each simplifier gives an expression with the same value wherever the original is defined."""
    for simplify in _simplifiers(Analyzer()):
        made = simplify(expr)
        for assignment, value in points(expr):
            assert evaluate(made, assignment) == value, (simplify.__name__, expr, made, assignment)


@EXAMPLES
@given(expr=st.one_of(INTEGERS, CONDITIONS), starts=st.tuples(*[st.integers(-4, 8)] * 3), data=st.data())
def test_simplification_under_ranges(expr: Any, starts: Any, data: Any, points: Any, evaluate: Any) -> None:
    """Variables bound to ranges: values are kept within the ranges, bounds contain them, congruences hold."""
    lengths = data.draw(st.tuples(*[st.integers(1, 9)] * 3))
    analyzer = Analyzer()
    box = [range(start, start + length) for start, length in zip(starts, lengths, strict=True)]
    for variable, values in zip(VARIABLES, box, strict=True):
        analyzer.bind(variable, Range(values.start, values.stop))
    bound, modular = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
    made = [simplify(expr) for simplify in _simplifiers(analyzer)]
    interval = analyzer.int_set(expr)
    for assignment, value in points(expr, box):
        for simplified in made:
            assert evaluate(simplified, assignment) == value, (expr, simplified, assignment)
        assert bound.min_value <= value <= bound.max_value, (expr, bound, assignment)
        assert (value - modular.base) % modular.coeff == 0 if modular.coeff else value == modular.base, (
            expr,
            modular,
        )
        assert not isinstance(interval.min_value, IntImm) or interval.min_value.value <= value, (
            expr,
            interval,
        )
        assert not isinstance(interval.max_value, IntImm) or interval.max_value.value >= value, (
            expr,
            interval,
        )


@EXAMPLES
@given(expr=st.one_of(INTEGERS, CONDITIONS), condition=CONDITIONS)
def test_simplification_under_a_condition(
    expr: Any, condition: Any, points: Any, evaluate: Any, undefined: Any
) -> None:
    """Within a constraint scope values are kept where the condition holds, and after it everywhere."""
    analyzer = Analyzer()
    for variable, values in zip(VARIABLES, BOX, strict=True):
        analyzer.update(variable, ConstIntBound(values.start, values.stop - 1))
    analyzer.update(X, ModularSet(2, 0))
    with analyzer.constraint_scope(condition):
        bound, modular = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
        inside = [simplify(expr) for simplify in _simplifiers(analyzer)]
        proved = analyzer.can_prove(expr) if expr.dtype.is_bool else False
    outside = analyzer.simplify(expr)
    for assignment, value in points(expr):
        assert evaluate(outside, assignment) == value, (expr, outside, assignment)
        try:
            if not evaluate(condition, assignment):
                continue
        except undefined:
            continue
        for made in inside:
            assert evaluate(made, assignment) == value, (condition, expr, made, assignment)
        assert bound.min_value <= value <= bound.max_value, (condition, expr, bound)
        assert (value - modular.base) % modular.coeff == 0 if modular.coeff else value == modular.base
        assert value or not proved, (condition, expr, assignment)


@EXAMPLES
@given(expr=INTEGERS, data=st.data())
def test_sets_with_symbolic_ends_contain_the_values(
    expr: Any, data: Any, evaluate: Any, undefined: Any
) -> None:
    """``x`` runs between ends that depend on ``z``, ``y`` between constants: the set contains every value."""
    scale, offset, length = data.draw(st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(0, 7)))
    low = operators.add(operators.multiply(Z, scale), offset)
    found = eval_int_set(expr, {X: IntervalSet(low, operators.add(low, length)), Y: Range(-2, 5)})
    for z in range(-3, 4):
        for x, y in product(range(scale * z + offset, scale * z + offset + length + 1), range(-2, 5)):
            try:
                value = evaluate(expr, {X: x, Y: y, Z: z})
                if found.has_lower_bound:
                    assert evaluate(found.min_value, {Z: z}) <= value, (expr, found, x, y, z)
                if found.has_upper_bound:
                    assert evaluate(found.max_value, {Z: z}) >= value, (expr, found, x, y, z)
            except undefined:
                continue


NARROW = (Var("a", "uint8"), Var("b", "uint8"))


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(
    expr=st.recursive(
        st.one_of(st.sampled_from(NARROW), st.integers(0, 255).map(lambda value: IntImm("uint8", value))),
        lambda inner: st.one_of(
            st.builds(lambda kind, a, b: kind(a, b), SUMS, inner, inner),
            st.builds(
                lambda kind, a, b: kind(a, IntImm("uint8", b)),
                st.sampled_from([FloorDiv, FloorMod]),
                inner,
                st.integers(1, 200),
            ),
        ),
        max_leaves=6,
    ),
    other=st.integers(0, 255),
)
def test_narrow_types_wrap(expr: Any, other: int, evaluate: Any) -> None:
    """Arithmetic of a type that wraps is simplified only in ways that hold when it does, comparisons included."""
    analyzer = Analyzer()
    condition = LT(expr, IntImm("uint8", other))
    made, decided, bound = (
        analyzer.simplify(expr),
        analyzer.simplify(condition),
        analyzer.const_int_bound(expr),
    )
    for a, b in product((0, 1, 2, 100, 127, 128, 200, 254, 255), repeat=2):
        values = dict(zip(NARROW, (a, b), strict=True))
        value = evaluate(expr, values)
        assert evaluate(made, values) == value, (expr, made, a, b)
        assert bound.min_value <= value <= bound.max_value, (expr, bound, a, b)
        assert evaluate(decided, values) == evaluate(condition, values), (condition, decided, a, b)
