"""Statements as hybrid script: names that Python takes, numbers and operators that come back the same."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.support.errors import LoweringError
from tilewright.te.hybrid import build


def printed(value: object) -> tuple[str, object]:
    """The text of one expression of ``A[i]``, and the module that computes it."""
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: value(a[i], i), name="B")  # type: ignore[operator]
    module = build(te.create_schedule(b.op), [a], [b])
    (line,) = [line.strip() for line in module.get_source().splitlines() if "B[i] =" in line]
    return line.removeprefix("B[i] = "), module


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (lambda a, i: a * 0.5 - (a - 1.0), "A[i] * 0.5 - (A[i] - 1.0)"),
        (lambda a, i: te.if_then_else(i < 2, a, -1.0), "(A[i] if (i < 2) else (-1.0))"),
        (lambda a, i: tvm.tir.Select(i < 2, a + 1.0, a), "((A[i] + 1.0) if (i < 2) else A[i])"),
        (lambda a, i: te.exp(a) + te.power(a, 2.0), "exp(A[i]) + power(A[i], 2.0)"),
        (lambda a, i: a.astype("float64") * 2.0, "float64(A[i]) * float64(2.0)"),
        (lambda a, i: te.max_value("float32") * a, "3.4028234663852886e+38 * A[i]"),
        (lambda a, i: tvm.tir.const(float("-inf"), "float32"), "-1e999"),
        (lambda a, i: tvm.tir.const(float("nan"), "float32"), "(1e999 - 1e999)"),
        (lambda a, i: (i << 2) | (i & 1), "((i << 2) | (i & 1))"),
        (lambda a, i: ~i, "~i"),
        (
            lambda a, i: te.truncdiv(i - 3, 2) + te.truncmod(i - 3, 2),
            "truncdiv(i - 3, 2) + truncmod(i - 3, 2)",
        ),
        (lambda a, i: (i + 1) // 2 % 3, "(i + 1) // 2 % 3"),
        (lambda a, i: te.all(i > 0, a > 0.0), "i > 0 and A[i] > 0.0"),
        (lambda a, i: te.all(te.any(i > 0, i < 3), tvm.tir.Not(i == 2)), "(i > 0 or i < 3) and not i == 2"),
        (lambda a, i: i.astype("int64") + 5, "int64(i) + int64(5)"),
    ],
)
def test_expressions(value: object, text: str) -> None:
    """The text is what the language says for it, and computes what machine code does."""
    found, module = printed(value)
    assert found == text
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: value(a[i], i), name="B")  # type: ignore[operator]
    values = np.array([0.5, -0.25, 0.75, 0.125], "float32")
    expected = np.zeros(4, b.dtype)
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(values, expected)
    np.testing.assert_allclose(module(values), expected, rtol=1e-6)  # type: ignore[operator]


def test_names() -> None:
    """Words of Python and of the language, dots, and names that stand twice get names of their own."""
    a = te.placeholder((4,), name="lambda")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="exp")
    c = te.compute((4,), lambda i: b[i] * 2.0, name="same.name")
    d = te.compute((4,), lambda i: c[i] - 1.0, name="same.name")
    module = build(te.create_schedule(d.op), [a], [d])
    source = module.get_source()
    assert "def hybrid_func(lambda_1):" in source
    assert (
        "exp_1 = allocate(" in source and "same_name_1 = allocate(" in source and "return same_name" in source
    )
    np.testing.assert_allclose(module(np.ones(4, "float32")), np.full(4, 3.0))


def test_what_has_no_words() -> None:
    """A call of an outside function cannot be written."""
    with pytest.raises(LoweringError, match="call_pure_extern cannot be written in hybrid script"):
        printed(lambda a, i: tvm.tir.call_pure_extern("float32", "sinf", a))
