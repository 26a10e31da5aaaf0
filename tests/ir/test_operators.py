"""Building expressions: conversion, promotion, folding, division."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ir import operators
from tilewright.ir.expr import (
    Add,
    Broadcast,
    Call,
    Cast,
    FloatImm,
    FloorDiv,
    IntImm,
    IterVar,
    Mul,
    PrimExpr,
    StringImm,
    Sub,
    Var,
)
from tilewright.support.errors import ExpressionError


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("bool", "int32", "int32"),
        ("int32", "float32", "float32"),
        ("int32", "int64", "int64"),
        ("uint32", "int8", "uint32"),
        ("uint32", "int32", "uint32"),
        ("int64", "float32", "float32"),
        ("float16", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("float64", "int8", "float64"),
        ("int32", "int32x4", "int32x4"),
        ("float32x4", "int32", "float32x4"),
    ],
)
def test_promotion(left: str, right: str, result: str) -> None:
    """Two operands of different types meet in one type, whichever side they stand on."""
    a, b = Var("a", left), Var("b", right)
    for made in (a + b, b + a, a * b, operators.maximum(a, b)):
        assert made.dtype == result
    assert (a < b).dtype.is_bool


def test_handles_have_no_common_type() -> None:
    """A pointer and a number cannot be added."""
    with pytest.raises(ExpressionError, match="no common type for handle and int32"):
        Var("p", "handle") + 1
    with pytest.raises(ExpressionError, match="needs numbers"):
        Var("p", "handle") + Var("q", "handle")


def test_vectors_of_different_lengths() -> None:
    """Vectors of four and eight lanes do not meet."""
    with pytest.raises(ExpressionError, match="4 and 8 lanes"):
        Var("a", "int32x4") + Var("b", "int32x8")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (2**31, "int64"),
        (-(2**31), "int32"),
        (1.5, "float32"),
        (1e300, "float64"),
        (math.inf, "float32"),
        (True, "bool"),
        (np.float64(2), "float64"),
        (np.int8(3), "int8"),
        (np.bool_(True), "bool"),
        (np.array(4, "uint16"), "uint16"),
    ],
)
def test_type_of_python_values(value: object, dtype: str) -> None:
    """Python integers are int32 where they fit, floats float32; NumPy scalars keep their type."""
    assert operators.as_expr(value).dtype == dtype


def test_as_expr() -> None:
    """Strings, axes and comparisons stand for expressions, other objects do not."""
    assert isinstance(operators.as_expr("text"), StringImm)
    axis = IterVar((0, 4), "i", 0)
    assert operators.as_expr(axis) is axis.var
    x = Var("x")
    assert operators.as_expr(x == 1).dtype == "bool"
    with pytest.raises(ExpressionError, match="cannot be converted to an expression"):
        operators.as_expr(object())
    with pytest.raises(ExpressionError, match="cannot be converted to an expression"):
        operators.as_expr(None)


def test_constants() -> None:
    """Constants wrap to their type, and vectors are broadcast."""
    wrapped = operators.const(300, "uint8")
    assert isinstance(wrapped, IntImm) and wrapped.value == 44
    negative = operators.const(200, "int8")
    assert isinstance(negative, IntImm) and negative.value == -56
    vector = operators.const(2, "float32x4")
    assert isinstance(vector, Broadcast) and vector.lanes == 4 and isinstance(vector.value, FloatImm)
    with pytest.raises(ExpressionError, match="cannot be a constant of type int32"):
        operators.const(math.nan, "int32")


def test_identities_fold() -> None:
    """Adding zero and multiplying by one give the operand back, multiplying an integer by zero gives zero."""
    x, f = Var("x"), Var("f", "float32")
    assert x + 0 is x and 0 + x is x and x - 0 is x
    assert x * 1 is x and 1 * x is x and x // 1 is x
    zero = x * 0
    assert isinstance(zero, IntImm) and zero.value == 0
    assert isinstance(f * 0, Mul), "a NaN times zero is not a zero"
    rest = x % 1
    assert isinstance(rest, IntImm) and rest.value == 0


integers = st.integers(-(2**31), 2**31 - 1)


@given(integers, integers)
def test_integer_folding_wraps(a: int, b: int) -> None:
    """Arithmetic on constants is that of 32-bit machines."""
    with np.errstate(over="ignore"):
        for made, expected in (
            (operators.const(a) + operators.const(b), np.int32(a) + np.int32(b)),
            (operators.const(a) - operators.const(b), np.int32(a) - np.int32(b)),
            (operators.const(a) * operators.const(b), np.int32(a) * np.int32(b)),
        ):
            assert isinstance(made, IntImm) and made.value == int(expected)


@given(st.integers(-1000, 1000), st.integers(-50, 50).filter(bool))
def test_division_folds_as_it_runs(a: int, b: int) -> None:
    """Truncating division rounds towards zero, floor division down; each has its remainder."""
    assert operators.truncdiv(a, b).value == math.trunc(a / b)  # type: ignore[attr-defined]
    assert operators.truncmod(a, b).value == int(math.fmod(a, b))  # type: ignore[attr-defined]
    assert operators.floordiv(a, b).value == a // b  # type: ignore[attr-defined]
    assert operators.floormod(a, b).value == a % b  # type: ignore[attr-defined]


def test_division_of_integers_is_ambiguous() -> None:
    """``/`` on integers is an error that names the alternatives; on floats it divides."""
    x = Var("x")
    with pytest.raises(ExpressionError, match=r"use truncdiv or floordiv"):
        x / 2
    with pytest.raises(ExpressionError, match="ambiguous"):
        3 / x
    assert (Var("f", "float32") / 2).dtype == "float32"


@pytest.mark.parametrize(
    "divide", [operators.truncdiv, operators.truncmod, operators.floordiv, operators.floormod]
)
def test_division_by_zero(divide: object) -> None:
    """Dividing an integer by the constant zero is an error when it is written."""
    with pytest.raises(ExpressionError, match="by zero"):
        divide(Var("x"), 0)  # type: ignore[operator]


def test_floor_division_of_floats() -> None:
    """``//`` on floats is the floor of the quotient."""
    made = Var("f", "float32") // 2
    assert made.dtype == "float32" and "floor" in str(made)


def test_float_division_by_zero_is_left_to_run() -> None:
    """The quotient of a float by zero is what the machine says, also by a number that is zero in its type."""
    assert not isinstance(operators.div(operators.const(1.0), operators.const(0.0)), FloatImm)
    tiny = FloatImm("float16", -1e-30)
    assert not isinstance(operators.div(FloatImm("float16", 1.0), tiny), FloatImm)


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (lambda: operators.const(6) & 3, 2),
        (lambda: operators.const(6) | 3, 7),
        (lambda: operators.const(6) ^ 3, 5),
        (lambda: ~operators.const(6), -7),
        (lambda: operators.const(6) << 2, 24),
        (lambda: operators.const(-6) >> 1, -3),
        (lambda: -operators.const(6), -6),
        (lambda: operators.const(1 << 30) << 1, -(1 << 31)),
    ],
)
def test_bitwise_folding(made: object, value: int) -> None:
    """Bitwise operators fold constants."""
    found = made()  # type: ignore[operator]
    assert isinstance(found, IntImm) and found.value == value


def test_bitwise_needs_integers() -> None:
    """A float has no bits to combine."""
    with pytest.raises(ExpressionError, match="bitwise_and is for integers"):
        Var("f", "float32") & 1


def test_shifts_out_of_range() -> None:
    """A count below zero, or of all bits and more, moves all bits out, whether or not the number is known."""
    assert isinstance(Var("x") << 32, Call)
    for count in (32, 100, -1):
        assert operators.left_shift(5, count).value == 0
        assert operators.right_shift(5, count).value == 0 and operators.right_shift(-5, count).value == -1
    assert operators.right_shift(operators.const(255, "uint8"), operators.const(8, "uint8")).value == 0


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (math.nan, "int32", 0),
        (math.inf, "int32", 2**31 - 1),
        (-math.inf, "int64", -(2**63)),
        (300.7, "int8", 127),
        (-1.5, "uint8", 0),
        (255.9, "uint8", 255),
        (-0.9, "int32", 0),
        (math.nan, "bool", True),
        (1e-50, "bool", False),
    ],
)
def test_cast_of_float_constants(value: float, dtype: str, expected: int) -> None:
    """Floats truncate and end where the integer type does, NaN is zero, and what float32 does not hold is zero."""
    made = operators.cast(dtype, operators.const(value, "float32"))
    assert isinstance(made, IntImm) and made.value == expected


def test_large_integers_round_once() -> None:
    """An integer that a double does not hold becomes the nearest float32, not the one nearest to the nearest double."""
    value = 2**62 + 2**38 + 1
    assert operators.cast("float32", operators.const(value, "int64")).value == float(
        np.int64(value).astype(np.float32)
    )


def test_floats_fold_in_their_type() -> None:
    """Every operation on constants rounds to the type, as compiled code does."""
    tenth = operators.const(0.1, "float32")
    total = operators.subtract(
        operators.add(operators.add(tenth, tenth), tenth), operators.const(0.3, "float32")
    )
    expected = np.float32(0.1) + np.float32(0.1) + np.float32(0.1) - np.float32(0.3)
    assert total.value == float(expected) != 0.1 + 0.1 + 0.1 - 0.3
    assert (
        operators.multiply(operators.const(1e30, "float32"), operators.const(1e30, "float32")).value
        == math.inf
    )
    assert (
        operators.equal(
            operators.const(0.1, "float32"), operators.const(float(np.float32(0.1)), "float32")
        ).value
        == 1
    )


def test_signs_of_zeros() -> None:
    """Only what keeps minus zero folds; Python's own zero, which ``sum`` starts from, adds nothing."""
    f = Var("f", "float32")
    assert isinstance(f + 0.0, Add) and isinstance(0.0 + f, Add) and isinstance(f - (-0.0), Sub)
    assert f + (-0.0) is f and f - 0.0 is f and 0 + f is f and sum([f]) is f
    zero = operators.negative(operators.const(0.0, "float32"))
    assert math.copysign(1, zero.value) == -1
    turned = operators.negative(f)
    assert isinstance(turned, Sub) and math.copysign(1, turned.a.value) == -1


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [(1.0, 2.0, 1.0, 2.0), (0.0, -0.0, 0.0, 0.0), (-0.0, 0.0, -0.0, -0.0), (math.inf, 1.0, 1.0, math.inf)],
)
def test_extremes_of_constants(a: float, b: float, low: float, high: float) -> None:
    """Of equal operands the first, which shows in the sign of a zero."""
    left, right = operators.const(a, "float32"), operators.const(b, "float32")
    for made, expected in ((operators.minimum(left, right), low), (operators.maximum(left, right), high)):
        assert made.value == expected and math.copysign(1, made.value) == math.copysign(1, expected)


def test_extremes_of_nan() -> None:
    """NaN wins on either side."""
    nan, one = operators.const(math.nan, "float32"), operators.const(1.0, "float32")
    for pair in ((nan, one), (one, nan)):
        assert math.isnan(operators.minimum(*pair).value) and math.isnan(operators.maximum(*pair).value)


def test_cast() -> None:
    """Casting to the same type is the value itself; constants convert at once; handles do not cast."""
    x = Var("x")
    assert x.astype("int32") is x
    made = x.astype("int64")
    assert isinstance(made, Cast) and made.dtype == "int64"
    folded = operators.cast("int32", 2.9)
    assert isinstance(folded, IntImm) and folded.value == 2
    truth = operators.cast("bool", 0.5)
    assert isinstance(truth, IntImm) and truth.value == 1
    assert operators.cast("float32x4", x).dtype == "float32x4"
    with pytest.raises(ExpressionError, match="reinterpret"):
        operators.cast("int64", Var("p", "handle"))


def test_limits_of_types() -> None:
    """The least and greatest values of types."""
    assert operators.min_value("int8").value == -128  # type: ignore[attr-defined]
    assert operators.max_value("uint16").value == 65535  # type: ignore[attr-defined]
    assert operators.max_value("float16").value == 65504.0  # type: ignore[attr-defined]
    assert operators.min_value("float32").value == -float(np.finfo("float32").max)  # type: ignore[attr-defined]
    assert operators.max_value("int64").value == 2**63 - 1  # type: ignore[attr-defined]
    with pytest.raises(ExpressionError):
        operators.max_value("handle")


def test_logic_folds_one_constant() -> None:
    """A constant side of a logical operator decides or disappears; double negation goes away."""
    condition = Var("x") < 1
    assert operators.logical_and(condition, True) is condition
    assert operators.logical_and(condition, False).value == 0  # type: ignore[attr-defined]
    assert operators.logical_or(False, condition) is condition
    assert operators.logical_or(condition, True).value == 1  # type: ignore[attr-defined]
    assert operators.logical_not(operators.logical_not(condition)) is condition


def test_operators_of_python() -> None:
    """Every operator symbol gives its node."""
    x, y = Var("x"), Var("y")
    assert isinstance(x + y, Add) and isinstance(x - y, Sub) and isinstance(x // y, FloorDiv)
    assert [str(made) for made in (x + 1, 1 - x, x * y, x // 2, x % 2, -x)] == [
        "x + 1",
        "1 - x",
        "x * y",
        "x // 2",
        "x % 2",
        "0 - x",
    ]
    assert [str(made) for made in (x < y, x <= y, x > y, x >= 1)] == ["x < y", "x <= y", "x > y", "x >= 1"]
    assert [str(made) for made in (x & y, x << 1, ~x)] == [
        "T.bitwise_and(x, y)",
        "T.shift_left(x, 1)",
        "T.bitwise_not(x)",
    ]


def test_deep_expressions_build_quickly() -> None:
    """A chain of 100,000 sums is built without recursion."""
    total: PrimExpr = Var("x")
    step = Var("y")
    for _ in range(100_000):
        total = total + step
    assert isinstance(total, Add) and total.b is step
