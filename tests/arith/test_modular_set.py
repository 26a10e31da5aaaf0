"""Congruences, node by node."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.arith import Analyzer, ConstIntBound, ModularSet
from tilewright.arith.modular_set import intersect
from tilewright.ir.expr import Cast, Ramp, Select, Var
from tilewright.ir.operators import (
    bitwise_and,
    const,
    equal,
    floordiv,
    floormod,
    left_shift,
    maximum,
    minimum,
    right_shift,
    truncdiv,
    truncmod,
)

x, y = Var("x"), Var("y")


@pytest.mark.parametrize(
    ("expr", "coeff", "base"),
    [
        (x, 1, 0),
        (const(3), 0, 3),
        (x * 6 + y * 4, 2, 0),
        (1 - x * 4, 4, 1),
        ((x * 4 + 2) * (y * 6 + 1), 4, 2),
        (floordiv(x * 8 + 4, 4), 2, 1),
        (floordiv(x * 8 + 5, 4), 2, 1),
        (truncdiv(x * 8 + 4, 4), 2, 1),
        (truncdiv(x * 8 + 5, 4), 1, 0),
        (floormod(x * 12 + 5, 8), 4, 1),
        (truncmod(x * 12 + 5, 8), 4, 1),
        (floormod(const(11), 4), 0, 3),
        (minimum(x * 3, y * 9), 3, 0),
        (maximum(x * 3 + 1, y * 9 + 4), 3, 1),
        (Select(x > 0, x * 5, y * 10), 5, 0),
        (Ramp(x * 6, const(4), 3), 2, 0),
        (Cast("int64", x * 6), 6, 0),
        (left_shift(x * 3, const(2)), 12, 0),
        (right_shift(x * 12 + 5, const(2)), 3, 1),
        (bitwise_and(x * 12 + 5, const(7)), 4, 1),
        (Var("u", "uint8") * const(2, "uint8"), 1, 0),
    ],
    ids=str,
)
def test_congruence(expr: Any, coeff: int, base: int) -> None:
    """``coeff`` and ``base`` of each expression, nothing known of the variables."""
    assert Analyzer().modular_set(expr) == ModularSet(coeff, base)


def test_truncation_of_what_is_not_negative_is_the_floor() -> None:
    """With a known sign the truncated quotient has a congruence, too."""
    analyzer = Analyzer()
    analyzer.update(x, ConstIntBound(0, 100))
    assert analyzer.modular_set(truncdiv(x * 8 + 5, 4)) == ModularSet(2, 1)


def test_a_condition_refines_the_congruence() -> None:
    """``x % 3 == 2`` holds within the scope, joins with ``x % 2 == 1``, and is gone after it."""
    analyzer = Analyzer()
    with analyzer.constraint_scope(equal(floormod(x, 3), 2)):
        assert analyzer.modular_set(x) == ModularSet(3, 2)
        with analyzer.constraint_scope(equal(floormod(x, 2), 1)):
            assert analyzer.modular_set(x) == ModularSet(6, 5)
            assert analyzer.can_prove(equal(floormod(x, 6), 5))
    assert analyzer.modular_set(x) == ModularSet(1, 0)


def test_intersection_is_the_chinese_remainder() -> None:
    """Both congruences hold of exactly the values of the intersection; contradictions keep the first."""
    for first in ((4, 3), (6, 1), (9, 4)):
        for second in ((6, 1), (10, 3), (4, 3)):
            found = intersect(first, second)
            values = {
                value
                for value in range(360)
                if value % first[0] == first[1] and value % second[0] == second[1]
            }
            if values:
                assert values == {value for value in range(360) if value % found[0] == found[1]}
            else:
                assert found == first
