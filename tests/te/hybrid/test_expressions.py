"""Expressions of a script: what is known now is computed now, the rest becomes expressions."""

# ruff: noqa: F821

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.te.hybrid.checks import check_everywhere
from tests.te.hybrid.test_statements import parse

import tilewright as tvm
from tilewright import te
from tilewright.support.errors import ParseError


def stored(body: str, **names: object) -> object:
    """The value that a script with this expression stores."""
    text = f"c = output_tensor((4,))\nfor i in range(4):\n    c[i] = {body}\nreturn c"
    return parse(text, **names).op.body.body.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 // 2 + 2 ** 3 - (1 << 4)", -5),
        ("7 / 2", 3.5),
        ("len(a) * 10 + len(a[0]) + a.ndim", 48),
        ("a.shape[1] % 4", 2),
        ("(a.shape + (9,))[-1]", 9),
        ("len(a.shape[1:])", 1),
        ("1 if a.dtype == 'float32' and b.dtype == 'int32' else 0", 1),
        ("1 if 1 < 2 < 3 else 0", 1),
        ("1 if not (3 <= 2 or 2 != 2) else 0", 1),
        ("1 if None is None else 0", 1),
        ("min(3, 1, 2) + max(3, 1, 2)", 4),
        ("ceil_div(7, 2) + abs(-3)", 7),
        ("table[1][0] + array[0, 1]", 32),
        ("math.pi", math.pi),
        ("~5 & 6", 2),
        ("1 if False and a[i, i, i] else 2", 2),
        ("1 if True or missing else 2", 1),
    ],
)
def test_known_now(text: str, value: float) -> None:
    """Arithmetic on constants leaves a constant."""
    found = stored(text, table=[[1], (2, 3)], array=np.array([[1, 30]]), math=math)
    assert isinstance(found, tvm.tir.FloatImm)
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b[i] / 2", "'/' on integers is ambiguous"),
        ("1 // 0", "by zero"),
        ("b[i] // 0", "by zero"),
        ("b[4]", "index 4 is outside the dimension's 4 elements"),
        ("b[-5]", "index -5 is outside"),
        ("b[i, i]", "b has 1 dimensions, 2 indices were given"),
        ("a[i]", "a has 2 dimensions and 1 indices here"),
        ("b[1.5]", "an index is an integer, not float32"),
        ("b[0:2]", "slices of tensors cannot be used"),
        ("table[i]", "constants are indexed with what is known now"),
        ("table[7]", "index 7 is outside 2 constants"),
        ("i[0]", "cannot be indexed"),
        ("a + 1", "a has 2 dimensions and 0 indices"),
        ("'text' * b[i]", "a number is needed here, not 'text'"),
        ("b[i] < 'text'", "a number is needed here, not 'text'"),
        ("b[i] in table", "In cannot be used"),
        ("b[i] @ 2", "MatMult cannot be used"),
        ("(lambda x: x)(1)", "Lambda cannot be used"),
        ("[x for x in b]", "ListComp cannot be used"),
        ("a.T", "tensor a has no T in a hybrid script"),
        ("a.sum()", "has no sum"),
        ("open('file')", "open is neither a built-in function of hybrid script nor another hybrid script"),
        ("helper(1)", "a function cannot be used in a hybrid script"),
        ("math.cos(1)", "cannot be used in a hybrid script"),
        ("math.missing", "module math has no missing"),
        ("exp(b[i])", "exp takes a floating-point number"),
        ("exp()", "exp cannot be called with 0 arguments"),
        ("exp(x=1.0)", "exp takes no named arguments"),
        ("len(3)", "3 has no length"),
        ("max_num_threads()", "needs a target"),
        ("b''", "a bytes cannot be used"),
    ],
)
def test_expressions_that_cannot_be(text: str, message: str) -> None:
    """Each says what is wrong, and shows it."""
    with pytest.raises(ParseError) as raised:
        stored(text, table=(1, 2), math=math, helper=stored)
    assert message in str(raised.value) and "^" in str(raised.value)


def test_intrinsics() -> None:
    """The functions of the language give what NumPy gives."""

    @te.hybrid.script
    def functions(a):
        b = output_tensor((24,), "float32")
        b[0] = sqrt(a[0])
        b[1] = log(a[1])
        b[2] = exp(a[2])
        b[3] = tanh(a[3])
        b[4] = power(a[4], a[5])
        b[5] = min(a[4], a[5])
        b[6] = max(a[5], a[6])
        b[7] = rsqrt(a[7])
        b[8] = sigmoid(a[8])
        b[9] = erf(a[0])
        b[10] = round(a[1] * 10.0)
        b[11] = floor(a[2] * 10.0) + ceil(a[3] * 10.0) + trunc(-a[4] * 10.0)
        b[12] = abs(-a[5])
        b[13] = sin(a[6]) + cos(a[7]) + tan(a[8])
        b[14] = atan2(a[0], a[1]) + fmod(a[2] * 7.0, a[3])
        b[15] = a[4] ** 2 - a[5] ** 0.5
        b[16] = 1.0 if isnan(a[0]) else 2.0
        b[17] = float32(int32(a[1] * 100.0))
        b[18] = float32(uint8(a[2] * 100.0)) + float64(a[3])
        b[19] = 1e999
        b[20] = float32(a[0] > 0.5)
        b[21] = log2(a[6]) + log10(a[7]) + exp2(a[8])
        b[22] = asin(a[0]) + acos(a[1]) + atan(a[2])
        b[23] = -(-a[3] if a[3] > 0.1 else a[3])
        return b

    a = te.placeholder((9,), name="a")
    values = np.linspace(0.125, 0.96, 9, dtype="float32")
    b = functions(a)
    found = np.zeros(24, "float32")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(values, found)
    np.testing.assert_allclose(found, functions(values), rtol=2e-5)
    printed = te.hybrid.build(te.create_schedule(b.op), [a], [b])
    np.testing.assert_allclose(printed(values), functions(values), rtol=1e-6)


def test_integer_functions() -> None:
    """Bits, shifts, division that rounds down and towards zero."""

    @te.hybrid.script
    def functions(a, b):
        c = output_tensor((12,), "int32")
        c[0] = popcount(a[0])
        c[1] = a[1] // 3 + a[1] % 3
        c[2] = truncdiv(a[1], 3) + truncmod(a[1], 3)
        c[3] = (a[2] << 2) | (a[3] & 5) ^ (a[0] >> 1)
        c[4] = ~a[4]
        c[5] = a[5] ** 3
        c[6] = a[0] // b[0] + a[1] % b[1]
        c[7] = int32(int64(a[0]) * 3)
        c[8] = int32(int8(a[0] + 300))
        c[9] = abs(a[1]) + clz(a[0])
        c[10] = 5 if a[0] else 6
        c[11] = floordiv(a[1], 2) + floormod(a[1], 2)
        return c

    a, b = te.placeholder((6,), "int32", name="a"), te.placeholder((2,), "int32", name="b")
    values, divisors = np.array([7, -8, 3, 13, 5, -4], "int32"), np.array([-2, 3], "int32")
    c = functions(a, b)
    found = np.zeros(12, "int32")
    tvm.build(te.create_schedule(c.op), [a, b, c], "llvm")(values, divisors, found)
    assert found.tolist() == functions(values, divisors).tolist()
    assert te.hybrid.build(te.create_schedule(c.op), [a, b], [c])(values, divisors).tolist() == found.tolist()


def test_negative_constants_count_from_the_end() -> None:
    """As in Python, also where the size is not known."""

    @te.hybrid.script
    def ends(a):
        b = output_tensor((2,), a.dtype)
        b[0] = a[-1]
        b[-1] = a[0]
        return b

    n = te.var("n")
    check_everywhere(ends, [te.placeholder((n,), name="a")], {n: 5})
