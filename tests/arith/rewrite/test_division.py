"""Quotients and remainders by symbols: what a range keeps below the divisor."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.arith import Analyzer
from tilewright.ir.expr import Add, Div, FloorDiv, FloorMod, IntImm, Mod, Mul, Range, SizeVar, Sub, Var
from tilewright.ir.operators import const, floordiv, floormod, truncdiv, truncmod

N, M, K = SizeVar("n"), SizeVar("m"), SizeVar("k")
X, Y, F = Var("x"), Var("y"), Var("f")


def analyzer() -> Analyzer:
    """With x below n, y below m, and f below the number of pairs of both."""
    made = Analyzer()
    for variable, extent in ((X, N), (Y, M), (F, N * M)):
        made.bind(variable, Range.from_min_extent(0, extent))
    return made


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (floormod(X, N), X),
        (floordiv(X, N), const(0)),
        (truncmod(X, N), X),
        (truncdiv(X, N), const(0)),
        (floormod(X, N + 2), X),
        (floormod(X, M), floormod(X, M)),
        (floordiv(X, N - 1), floordiv(X, N + (-1))),
        (floormod(X + 1, N), floormod(X + 1, N)),
        (floormod(X - 1, N), floormod(X + (-1), N)),
        (floormod(X * M + Y, M), Y),
        (floordiv(X * M + Y, M), X),
        (floormod(X * M + Y, N * M), X * M + Y),
        (floordiv(X * M + Y, M * N), const(0)),
        (floordiv(Y * N + X, M), floordiv(Y * N + X, M)),
        (floormod(floordiv(F, M), N), floordiv(F, M)),
        (floordiv(floordiv(F, M), N), const(0)),
        (floormod(floormod(K, N), N), floormod(K, N)),
        (floordiv(floormod(K, N), N), const(0)),
    ],
    ids=lambda expr: str(expr),
)
def test_by_a_symbol(data: Any, expected: Any, same: Any) -> None:
    """What is known to lie between zero and the divisor is its own remainder; what is not stays."""
    found = analyzer().rewrite_simplify(data)
    assert same(found, expected), f"{data} became {found}, not {expected}"


def test_a_range_that_does_not_begin_at_zero(same: Any) -> None:
    """Its end counts, and that no value is negative."""
    made = Analyzer()
    made.bind(X, Range.from_min_extent(2, N))
    made.bind(Y, Range.from_min_extent(-1, N))
    assert same(made.simplify(floordiv(X, N + 2)), const(0))
    assert same(made.simplify(floordiv(X, N + 1)), floordiv(X, N + 1))
    assert same(made.simplify(floordiv(Y, N)), floordiv(Y, N))


LEAVES = st.one_of(
    st.sampled_from([X, Y, F, N, M]), st.integers(-3, 3).map(lambda value: IntImm("int32", value))
)
DIVISORS = st.sampled_from([N, M, N * M, M * N, N + 1, IntImm("int32", 2)])


def _grow(inner: Any) -> Any:
    sums, divisions = st.sampled_from([Add, Sub, Mul]), st.sampled_from([FloorDiv, FloorMod, Div, Mod])
    return st.one_of(
        st.builds(lambda kind, a, b: kind(a, b), sums, inner, inner),
        st.builds(lambda kind, a, b: kind(a, b), divisions, inner, DIVISORS),
        st.builds(lambda a, b: Add(Mul(a, b), b - 1), inner, DIVISORS),
    )


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(expr=st.recursive(LEAVES, _grow, max_leaves=8))
def test_values_are_kept(expr: Any, evaluate: Any) -> None:
    """At every point of the ranges, for several sizes."""
    made = analyzer().simplify(expr)
    for n, m in ((1, 1), (1, 3), (2, 1), (2, 3), (3, 2)):
        for x in range(n):
            for y in range(m):
                for f in {0, x * m + y, n * m - 1}:
                    values = {X: x, Y: y, F: f, N: n, M: m}
                    assert evaluate(made, values) == evaluate(expr, values), (expr, made, values)
