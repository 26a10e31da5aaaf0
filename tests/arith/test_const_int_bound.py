"""Constant bounds, node by node."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.arith import Analyzer, ConstIntBound
from tilewright.arith.const_int_bound import product
from tilewright.ir.expr import Broadcast, Cast, Let, Ramp, Select, SizeVar, Var
from tilewright.ir.operators import (
    bitwise_and,
    call,
    const,
    floordiv,
    floormod,
    left_shift,
    maximum,
    minimum,
    right_shift,
    truncdiv,
    truncmod,
)

INF = ConstIntBound.POS_INF
x, y = Var("x", "int64"), Var("y", "int64")


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int64", -INF, INF),
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("bool", 0, 1),
        ("int32", -(2**31), 2**31 - 1),
    ],
)
def test_the_range_of_a_type(dtype: str, low: int, high: int) -> None:
    """Nothing is known of a variable but its type."""
    assert Analyzer().const_int_bound(Var("v", dtype)) == ConstIntBound(low, high)


@pytest.mark.parametrize(
    ("make", "x_bound", "y_bound", "low", "high"),
    [
        (lambda: x + y, (0, 4), (1, 10), 1, 14),
        (lambda: x - y, (0, 4), (1, 10), -10, 3),
        (lambda: x + 20 - y, (0, INF), (1, 10), 10, INF),
        (lambda: x * y + 20, (-2, 4), (4, 10), 0, 60),
        (lambda: x * y, (-3, 4), (-8, 2), -32, 24),
        (lambda: x * y, (-INF, 4), (-8, 2), -INF, INF),
        (lambda: x * x, (-3, 2), (0, 0), 0, 9),
        (lambda: truncdiv(x, y), (-9, 4), (4, 10), -2, 1),
        (lambda: truncdiv(x, y), (-9, 4), (-2, 0), -4, 9),
        (lambda: truncdiv(x, y), (-INF, 4), (-2, 1), -INF, INF),
        (lambda: truncdiv(x, y), (-9, 4), (0, 12), -9, 4),
        (lambda: truncmod(x, y), (-9, 4), (4, 10), -9, 4),
        (lambda: truncmod(x, y), (-INF, INF), (4, 10), -9, 9),
        (lambda: truncmod(x, y), (1, INF), (4, INF), 0, INF),
        (lambda: floordiv(x, y), (-9, 4), (4, 10), -3, 1),
        (lambda: floordiv(x, y), (-9, 4), (-2, 0), -4, 9),
        (lambda: floordiv(x, y), (-9, 9), (-5, 5), -9, 9),
        (lambda: floormod(x, y), (-9, 4), (4, 10), 0, 9),
        (lambda: floormod(x, y), (0, 3), (4, 10), 0, 3),
        (lambda: floormod(x, y), (1, INF), (1, INF), 0, INF),
        (lambda: floormod(x, 8), (9, 14), (0, 0), 1, 6),
        (lambda: minimum(x, y), (-9, 11), (4, 10), -9, 10),
        (lambda: maximum(x, y), (-9, 11), (4, 10), 4, 11),
        (lambda: Select(x > 1, (y < 0).astype("int64"), y + 1), (-9, 11), (4, 10), 0, 11),
        (lambda: right_shift(x, y), (2, 10), (0, 10), 0, 10),
        (lambda: right_shift(x, y), (-9, 10), (1, 2), -5, 5),
        (lambda: left_shift(x, const(2, "int64")), (-3, 5), (0, 0), -12, 20),
        (lambda: bitwise_and(x, y), (10, 11), (0, INF), 0, 11),
        (lambda: bitwise_and(x, y), (-9, 11), (1, 8), 0, 8),
        (lambda: Ramp(x, const(2, "int64"), 4), (0, 3), (0, 0), 0, 9),
        (lambda: Ramp(x, const(-2, "int64"), 4), (0, 3), (0, 0), -6, 3),
        (lambda: Broadcast(x, 4), (0, 3), (0, 0), 0, 3),
        (lambda: call("likely", "bool", [x > 1]), (0, 3), (0, 0), 0, 1),
        (lambda: call("if_then_else", "int64", [x > 1, x, y]), (0, 3), (5, 6), 0, 6),
    ],
)  # fmt: skip
def test_bounds_of_an_operation(make: Any, x_bound: Any, y_bound: Any, low: int, high: int) -> None:
    """What follows from the bounds of the operands."""
    analyzer = Analyzer()
    analyzer.update(x, ConstIntBound(*x_bound))
    analyzer.update(y, ConstIntBound(*y_bound))
    assert analyzer.const_int_bound(make()) == ConstIntBound(low, high)


def test_a_size_is_not_negative() -> None:
    """A SizeVar starts at zero."""
    assert Analyzer().const_int_bound(SizeVar("n", "int64")) == ConstIntBound(0, INF)


def test_narrow_arithmetic_that_may_wrap_has_the_range_of_its_type() -> None:
    """The sum of two bytes may be any byte; one that cannot wrap keeps its bounds."""
    a = Var("a", "uint8")
    analyzer = Analyzer()
    assert analyzer.const_int_bound(a + const(1, "uint8")) == ConstIntBound(0, 255)
    analyzer.update(a, ConstIntBound(0, 100))
    assert analyzer.const_int_bound(a + const(1, "uint8")) == ConstIntBound(1, 101)
    assert analyzer.const_int_bound(a - const(1, "uint8")) == ConstIntBound(0, 255)


def test_a_narrowing_cast_may_wrap() -> None:
    """A cast keeps bounds that fit the new type, and forgets others."""
    analyzer = Analyzer()
    analyzer.update(x, ConstIntBound(0, 100))
    assert analyzer.const_int_bound(Cast("int8", x)) == ConstIntBound(0, 100)
    analyzer.update(x, ConstIntBound(0, 300), override=True)
    assert analyzer.const_int_bound(Cast("int8", x)) == ConstIntBound(-128, 127)
    assert analyzer.const_int_bound(Cast("int32", Var("f", "float32"))) == ConstIntBound(-(2**31), 2**31 - 1)


def test_a_cast_of_64_bits_may_become_negative() -> None:
    """From unsigned to signed numbers, unless the number is known to be small."""
    wide = Var("x", "uint64")
    assert Analyzer().const_int_bound(Cast("int64", wide)).min_value == ConstIntBound.NEG_INF
    small = floormod(wide, const(8, "uint64"))
    assert Analyzer().const_int_bound(Cast("int64", small)) == ConstIntBound(0, 7)


def test_let_binds_its_variable() -> None:
    """The body is seen with the bounds of the value."""
    analyzer = Analyzer()
    analyzer.update(x, ConstIntBound(0, 3))
    assert analyzer.const_int_bound(Let(y, x + 1, y * 2)) == ConstIntBound(2, 8)


def test_products_of_huge_bounds_and_unknown_ones() -> None:
    """An end that is too large for a float meets one that is infinite."""
    huge, unknown = (1, 10**400), (float("-inf"), float("inf"))
    assert product(huge, unknown) == unknown
    assert product((0, 0), unknown) == (0, 0)
