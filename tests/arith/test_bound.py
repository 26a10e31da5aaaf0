"""Values of a variable for which a condition holds."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.arith import IntervalSet, deduce_bound
from tilewright.ir.expr import EQ, GE, GT, LE, LT, IntImm, Var
from tilewright.ir.operators import equal, floordiv, maximum

a, b, c, d = (Var(name) for name in "abcd")
HINTS = {b: IntervalSet(2, 3), c: IntervalSet(10, 15), d: IntervalSet(-3, -1)}


@pytest.mark.parametrize(
    ("condition", "relaxed", "low", "high"),
    [
        (d * a + c - d >= 0, [], None, floordiv(d - c, d)),
        (a * 4 + b < c, [], None, floordiv(c - b - 1, 4)),
        (c > a * 4 + b, [], None, floordiv(c - b - 1, 4)),
        (a * 4 + b < c, [b], None, floordiv(c, 4) - 1),
        (a * 3 >= 7, [], 3, None),
        (a * -3 >= 7, [], None, -3),
        (a * -3 <= 7, [], -2, None),
        (7 - a > 3, [], None, 3),
        (equal(a - c, b + d), [], b + d + c, b + d + c),
        (equal(a * 5, -10), [], -2, -2),
        (a + a < c, [], None, floordiv(c - 1, 2)),
    ],
    ids=str,
)
def test_deduced_interval(condition: Any, relaxed: Any, low: Any, high: Any, same: Any) -> None:
    """The end that the condition sets, to the letter; the other end is open."""
    found = deduce_bound(a, condition, HINTS, {variable: HINTS[variable] for variable in relaxed})
    assert found.has_lower_bound is (low is not None) and found.has_upper_bound is (high is not None), str(
        found
    )
    assert low is None or same(found.min_value, low), str(found)
    assert high is None or same(found.max_value, high), str(found)


def test_a_condition_that_never_holds_gives_nothing() -> None:
    """Contradictions, equations without an integer solution, and equations that relaxation breaks."""
    assert deduce_bound(a, maximum(5, a * 4) < 0, HINTS, {}).is_nothing()
    assert deduce_bound(a, equal(a * 5, 17), {}, {}).is_nothing()
    assert deduce_bound(a, equal(a, b), HINTS, {b: HINTS[b]}).is_nothing()


def test_what_cannot_be_solved_gives_nothing() -> None:
    """Never more than what is known to satisfy the condition."""
    assert deduce_bound(a, a * a < 10, {}, {}).is_nothing()
    assert deduce_bound(a, b < c, {}, {}).is_nothing()
    assert deduce_bound(a, a * b < 10, {}, {}).is_nothing()


def test_a_condition_that_always_holds_gives_everything() -> None:
    """The whole line."""
    assert deduce_bound(a, a < a + 1, {}, {}).is_everything()


@settings(max_examples=60)
@given(
    kind=st.sampled_from([LT, LE, GT, GE, EQ]),
    factor=st.integers(-4, 4).filter(bool),
    other=st.integers(-3, 3),
    limit=st.integers(-20, 20),
)
def test_deduced_values_satisfy_the_condition(
    kind: Any, factor: int, other: int, limit: int, evaluate: Any
) -> None:
    """Linear conditions, ``b`` relaxed: exactly the values for which the condition holds for each ``b``."""
    condition = kind(a * factor + b * other, IntImm("int32", limit))
    found = deduce_bound(a, condition, {b: HINTS[b]}, {b: HINTS[b]})
    for value in range(-60, 61):
        holds = all(evaluate(condition, {a: value, b: other_value}) for other_value in (2, 3))
        inside = not found.is_nothing()
        inside = inside and (not found.has_lower_bound or evaluate(found.min_value, {}) <= value)
        inside = inside and (not found.has_upper_bound or value <= evaluate(found.max_value, {}))
        assert inside is holds, (condition, found, value)


def test_symbolic_factors_of_known_sign(evaluate: Any) -> None:
    """Dividing by a factor whose sign the hints give never admits a value that breaks the condition."""
    for condition in (a * b + c >= 0, a * d + c >= 0, a * b + c <= 0, c - a * b > 3):
        found = deduce_bound(a, condition, HINTS, {})
        assert not found.is_nothing() and not found.is_everything()
        for vb, vc, vd in product((2, 3), range(10, 16), (-3, -2, -1)):
            values = {b: vb, c: vc, d: vd}
            for value in range(-20, 21):
                inside = not found.has_lower_bound or evaluate(found.min_value, values) <= value
                inside = inside and (not found.has_upper_bound or value <= evaluate(found.max_value, values))
                assert not inside or evaluate(condition, {**values, a: value}), (
                    condition,
                    found,
                    values,
                    value,
                )
