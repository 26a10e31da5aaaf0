"""Arithmetic by name."""

from tilewright.ir.expr import Var
from tilewright.tir import generic

x, f = Var("x"), Var("f", "float32")


def test_arithmetic_by_name() -> None:
    """Each function is its operator; dividing integers truncates."""
    assert str(generic.add(x, 1)) == "x + 1" and str(generic.subtract(x, 1)) == "x - 1"
    assert str(generic.multiply(x, 2)) == "x * 2" and str(generic.floordiv(x, 2)) == "x // 2"
    assert str(generic.divide(x, 2)) == "T.truncdiv(x, 2)" and str(generic.divide(f, 2)) == "f / 2.0"


def test_cast_takes_the_value_first() -> None:
    """The value comes before the type."""
    assert generic.cast(x, "float32").dtype == "float32"
