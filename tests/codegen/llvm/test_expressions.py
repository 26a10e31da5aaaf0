"""Expressions compute what the semantics at the head of ``ir/expr.py`` say."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.llvm.build import module_text
from tilewright.codegen.llvm.machine import machine_for, parse
from tilewright.ir import operators as op
from tilewright.ir.expr import (
    Add,
    Broadcast,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    PrimExpr,
    Ramp,
    Select,
    Shuffle,
    Sub,
    Var,
)
from tilewright.support.recursion import recursion_room
from tilewright.target.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Store

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def extremes(dtype: str, count: int = 64) -> np.ndarray:
    """Numbers of a type with its smallest, largest, zero, one and minus one among them."""
    info = np.iinfo(dtype)
    random = np.random.default_rng(7).integers(info.min, info.max, count - 5, dtype=dtype, endpoint=True)
    special = np.array([info.min, info.max, 0, 1, info.max if info.min == 0 else -1], dtype)
    return np.concatenate([special, random])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_integer_arithmetic_wraps(kit, dtype, lanes):
    """Sums, differences and products wrap around, as NumPy's do, in every integer type."""
    a, b = extremes(dtype), extremes(dtype)[::-1].copy()
    results = kit.elementwise([Add, Sub, Mul], [a, b], dtype, lanes=lanes)
    np.testing.assert_array_equal(results, [a + b, a - b, a * b])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_division_rounds_as_said(kit, dtype, lanes):
    """Div and Mod truncate, FloorDiv and FloorMod round down, for every sign of the operands."""
    rng = np.random.default_rng(3)
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, 256, dtype=dtype, endpoint=True)
    b = rng.integers(max(info.min, -20), 20, 256, dtype=dtype)
    b[b == 0] = 3
    b[(a == info.min) & (b == info.max)] = 1
    wide_a, wide_b = a.astype(object), b.astype(object)
    floor = np.array([x // y for x, y in zip(wide_a, wide_b, strict=True)], object)
    truncated = np.array(
        [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(wide_a, wide_b, strict=True)]
    )
    wanted = [floor, wide_a - floor * wide_b, truncated, wide_a - truncated * wide_b]
    results = kit.elementwise([FloorDiv, FloorMod, Div, Mod], [a, b], dtype, lanes=lanes)
    for result, expected in zip(results, wanted, strict=True):
        wrapped = np.array([int(x) & (2**info.bits - 1) for x in expected], f"uint{info.bits}").view(dtype)
        np.testing.assert_array_equal(result, wrapped)


def test_division_by_a_constant(kit):
    """Constants are divided by without a division instruction, and just as exactly."""
    a = extremes("int32")
    a[0] += 1
    divisors = [1, 2, 7, 8, 64, -3, -1]
    by = lambda node, divisor: lambda x: node(x, IntImm("int32", divisor))
    quotients = kit.elementwise([by(FloorDiv, divisor) for divisor in divisors], [a], "int32")
    remainders = kit.elementwise([by(FloorMod, divisor) for divisor in divisors], [a], "int32")
    np.testing.assert_array_equal(quotients, [a // divisor for divisor in divisors])
    np.testing.assert_array_equal(remainders, [a % divisor for divisor in divisors])


def test_division_never_traps(kit):
    """A zero divisor counts as one, and the smallest number divided by -1 wraps; the process goes on."""
    least = np.iinfo("int32").min
    a, b = np.array([7, -7, least, 5], "int32"), np.array([0, 0, -1, -1], "int32")
    results = kit.elementwise([Div, FloorDiv, Mod, FloorMod], [a, b], "int32")
    quotient = [7, -7, least, -5]
    np.testing.assert_array_equal(results, [quotient, quotient, [0] * 4, [0] * 4])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_float_arithmetic(kit, dtype, lanes):
    """Each operation is rounded once, as NumPy rounds it; infinities and NaN pass through."""
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=64).astype(dtype) for _ in range(2))
    a[:4], b[:4] = [np.inf, np.nan, 0, -0.0], [np.inf, 1, 0, 5]
    results = kit.elementwise([Add, Sub, Mul, Div], [a, b], dtype, lanes=lanes)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(results, [a + b, a - b, a * b, a / b])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_minimum_and_maximum(kit, dtype, lanes):
    """NaN where one operand is; of equal operands, which zeros of different sign are, the first."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0, 100, 16).astype(dtype) for _ in range(2))
    if "float" in dtype:
        a[0], b[1], a[2], b[2], a[3], b[3] = np.nan, np.nan, -0.0, 0.0, 0.0, -0.0
    results = kit.elementwise([Min, Max], [a, b], dtype, lanes=lanes)
    expected = [np.where((a <= b) | (a != a), a, b), np.where((a >= b) | (a != a), a, b)]
    np.testing.assert_array_equal(results, expected)
    np.testing.assert_array_equal(np.signbit(results), np.signbit(expected))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("bound", [0.0, -0.0, 1.5])
def test_extremes_with_a_constant(kit, lanes, bound):
    """A constant on either side obeys the same rule."""
    a = np.resize(np.array([np.nan, -0.0, 0.0, 1.5, -2, 3, np.inf, -np.inf], "float32"), 16)
    b = np.full(16, bound, "float32")
    number = FloatImm("float32", bound)
    makers = [
        lambda x: Max(x, _like(number, x)),
        lambda x: Min(x, _like(number, x)),
        lambda x: Max(_like(number, x), x),
        lambda x: Min(_like(number, x), x),
    ]
    results = kit.elementwise(makers, [a], "float32", lanes=lanes)
    expected = [
        np.where((a >= b) | (a != a), a, b),
        np.where((a <= b) | (a != a), a, b),
        np.where(b >= a, b, a),
        np.where(b <= a, b, a),
    ]
    np.testing.assert_array_equal(results, expected)
    np.testing.assert_array_equal(np.signbit(results)[:, 1:], np.signbit(expected)[:, 1:])


def _like(number, x):
    return number if x.dtype.lanes == 1 else Broadcast(number, x.dtype.lanes)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "uint32"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_shifts_out_of_range(kit, dtype, lanes):
    """A count below zero, or of all bits and more, moves all bits out; of a signed number the sign is left."""
    bits = np.dtype(dtype).itemsize * 8
    a = np.resize(np.array([-5, 7, 1, -1], "int64").astype(dtype), 16)
    b = np.repeat(np.array([0, 1, bits - 1, bits], dtype), 4)
    b[-1] = np.array(-1).astype(dtype)
    makers = [
        lambda x, y: op.call("shift_left", x.dtype, [x, y]),
        lambda x, y: op.call("shift_right", x.dtype, [x, y]),
    ]
    results = kit.elementwise(makers, [a, b], dtype, lanes=lanes)
    within = (b >= 0) & (b < bits)
    count = np.where(within, b, 0).astype(dtype)
    sign = np.where(a < 0, -1, 0).astype(dtype)
    np.testing.assert_array_equal(results[0], np.where(within, a << count, 0).astype(dtype))
    np.testing.assert_array_equal(results[1], np.where(within, a >> count, sign))


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float32", 1), ("float32", 8), ("float16", 8), ("int32", 8), ("uint32", 8)]
)
def test_comparisons_and_logic(kit, dtype, lanes):
    """Comparisons give bool, signed or unsigned as the type says; NaN equals nothing; logic combines them."""
    rng = np.random.default_rng(5)
    low = 0 if dtype == "uint32" else -3
    a, b = (rng.integers(low, 3, 64).astype(dtype) for _ in range(2))
    if dtype == "uint32":
        a[3] = 2**32 - 1
    if "float" in dtype:
        a[0], b[1] = np.nan, np.nan
    cases = {
        op.equal: a == b, op.not_equal: a != b, op.less: a < b, op.less_equal: a <= b,
        op.greater: a > b, op.greater_equal: a >= b,
    }  # fmt: skip
    mixed = lambda x, y: Not(op.logical_and(x < y, op.logical_or(x > y, x <= y)))
    results = kit.elementwise([*cases, mixed], [a, b], "bool", lanes=lanes)
    np.testing.assert_array_equal(results, [*cases.values(), ~((a < b) & ((a > b) | (a <= b)))])


CASTS = [
    ("int32", "int8"), ("int8", "int64"), ("uint8", "int32"), ("int32", "uint16"), ("int64", "int32"),
    ("bool", "int32"), ("int32", "float32"), ("uint32", "float64"), ("uint8", "float16"), ("float32", "float64"),
    ("float64", "float32"), ("float64", "float16"), ("float16", "float64"), ("float16", "int32"),
    ("int32", "bool"), ("float32", "bool"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "result"), CASTS)
def test_casts_between_types(kit, source, result):
    """Numbers that fit keep their value; integers that do not fit wrap; bool is a test for zero."""
    rng = np.random.default_rng(9)
    a = rng.integers(0 if source.startswith(("u", "b")) else -100, 100, 32).astype(source)
    a[0] = 0
    got = kit.elementwise(lambda x: Cast(f"{result}x4", x), [a], result, lanes=4)
    np.testing.assert_array_equal(got, a.astype(result if result != "bool" else np.bool_))


@pytest.mark.parametrize("lanes", [1, 8])
def test_floats_saturate_when_they_become_integers(kit, lanes):
    """Truncation towards zero, the ends of the range beyond it, zero for NaN."""
    a = np.array([1.9, -1.9, 300.0, -300.0, np.nan, np.inf, -np.inf, 127.5], "float32")
    got = kit.elementwise(
        lambda x: Cast(f"int8x{lanes}" if lanes > 1 else "int8", x), [a], "int8", lanes=lanes
    )
    np.testing.assert_array_equal(got, [1, -1, 127, -128, 0, 127, -128, 127])
    got = kit.elementwise(
        lambda x: Cast(f"uint8x{lanes}" if lanes > 1 else "uint8", x), [a], "uint8", lanes=lanes
    )
    np.testing.assert_array_equal(got, [1, 0, 255, 0, 0, 255, 0, 127])


def test_select_and_let(kit):
    """Select takes one of two values; Let names a value for the rest of the expression."""
    a = np.arange(-8, 8, dtype="int32")
    v = Var("v")
    got = kit.elementwise(lambda x: Let(v, x * 2, Select(v > 0, v, v - 100)), [a], "int32")
    np.testing.assert_array_equal(got, np.where(2 * a > 0, 2 * a, 2 * a - 100))


def test_ramps_broadcasts_and_shuffles(kit):
    """A ramp counts from any base by any stride, a broadcast repeats, a shuffle picks lanes of several vectors."""
    a = np.arange(16, dtype="int32")

    def reordered(x):
        other = Ramp(IntImm("int32", 100), IntImm("int32", -3), 4)
        picked = Shuffle([x, other], [IntImm("int32", k) for k in (7, 0, 5, 2)])
        return picked + Broadcast(IntImm("int32", 1000), 4)

    got = kit.elementwise(reordered, [a], "int32", lanes=4)
    expected = [[1000 + k for k in (91, base, 97, base + 2)] for base in range(0, 16, 4)]
    np.testing.assert_array_equal(got.reshape(4, 4), expected)
    single = kit.elementwise(
        lambda x: Shuffle([x, x], [IntImm("int32", k) for k in (3, 3, 0, 1)]), [a], "int32", lanes=4
    )
    np.testing.assert_array_equal(single.reshape(4, 4)[1], [7, 7, 4, 5])


def test_shared_subexpressions_are_emitted_once():
    """A sum of a sum of a sum ... of one node, 200 levels deep, is 200 additions and not 2**200."""
    x, pointer = Var("x"), Var("pointer", "handle")
    total: PrimExpr = x
    for _ in range(200):
        total = Add(total, total)
    value = Select(total > 5, total, Add(total, total))
    function = PrimFunc([x, pointer], Store(pointer, value, total))
    with recursion_room():
        text, *_ = module_text([("f", function)], machine_for(Target("llvm")), [], ())
    assert 400 <= text.count(" = add ") <= 610
    parse(text, "f")


def test_deep_expressions_do_not_overflow(kit):
    """A chain of five thousand additions compiles."""

    def chain(x):
        total = x
        for _ in range(5000):
            total = Add(total, x)
        return total

    a = np.arange(4, dtype="int32")
    np.testing.assert_array_equal(kit.elementwise(chain, [a], "int32"), a * 5001)
