"""Derivatives of expressions, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import te, tir
from tilewright.ir.expr import ProducerLoad
from tilewright.support.errors import ExpressionError
from tilewright.te.derivative import RULES, derivative, reads_of, same_element
from tilewright.tir.interpreter import interpret

A = te.placeholder((2,), name="A", dtype="float64")
X, Y = A(0), A(1)


def value(expr: Any, x: float, y: float) -> float:
    """An expression of two numbers, by interpretation."""
    result = te.compute((1,), lambda i: expr, name="R")
    function = te.create_prim_func([A, result])
    out = np.zeros(1)
    interpret(function, np.array([x, y]), out)
    return float(out[0])


def check(expr: Any, x: float, y: float) -> None:
    """Both partial derivatives are what differences give."""
    step = 1e-6
    for element, ahead, behind in ((X, (x + step, y), (x - step, y)), (Y, (x, y + step), (x, y - step))):
        found = derivative(expr, element)
        wanted = (value(expr, *ahead) - value(expr, *behind)) / (2 * step)
        got = 0.0 if found is None else value(found, x, y)
        assert got == pytest.approx(wanted, rel=1e-5, abs=1e-6), found


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule(name: str) -> None:
    """Each function's derivative, inside its domain."""
    functions: dict[str, Any] = {
        "fabs": lambda x: tir.abs(x),
        "pow": te.power,
        "acosh": lambda x: te.acosh(x + 1.5),
    }
    function = functions.get(name, getattr(tir, name, None))
    two = name in ("pow", "atan2", "hypot")
    check(function(X * 0.7, Y) if two else function(X * Y), 0.6, 0.8)


@pytest.mark.parametrize(
    "expr",
    [
        X + Y * X,
        X - Y,
        X / Y + Y / X,
        -X * X * X,
        tir.max(X, Y) * 2.0,
        tir.min(X * 2.0, Y),
        tir.Select(X > 0.5, X * Y, Y),
        te.if_then_else(X > 0.5, Y * Y, X),
        X.astype("float32").astype("float64") * Y,
        te.floor(X) * Y + te.ceil(Y) * X,
        tir.Let(te.var("t", "float64"), X * Y, X),
    ],
    ids=lambda expr: str(expr)[:40],
)
def test_arithmetic(expr: Any) -> None:
    """Sums, products, quotients, choices, casts and steps."""
    if "astype" in str(expr) or "float32" in str(expr):
        found = derivative(expr, Y)
        assert value(found, 0.6, 0.8) == pytest.approx(0.6, rel=1e-6)
        return
    check(expr, 0.6, 0.8)


def test_a_let_is_looked_into() -> None:
    """What is bound is part of the expression."""
    t = te.var("t", "float64")
    check(tir.Let(t, X * Y, t * t), 0.6, 0.8)


def test_nothing_depends() -> None:
    """A constant, another element and an index have no derivative."""
    assert derivative(tir.const(3.0, "float64"), X) is None
    assert derivative(Y * 2.0, X) is None
    assert derivative((X > 0.0).astype("float64"), X) is None


def test_elements_are_told_by_their_indices() -> None:
    """The same indices, written twice, are one element; different ones are two."""
    i, j = te.var("i"), te.var("j")
    b = te.placeholder((4, 4), name="B")
    one, two, three = b(i, j + 1), b(i, j + 1), b(i, 1 + j)
    assert isinstance(one, ProducerLoad)
    assert (
        same_element(one, two) and not same_element(one, b(j, j + 1)) and not same_element(one, b(i, j + 2))
    )
    assert len(reads_of(one + two * b(j, i), b)) == 2
    assert len(reads_of(one + three, A)) == 0


def test_functions_without_a_rule() -> None:
    """The message names the function."""
    with pytest.raises(ExpressionError, match="derivative of nextafter"):
        derivative(tir.nextafter(X, Y), X)
