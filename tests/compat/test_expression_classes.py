"""The classes of ``tir.expr``: made by hand, expressions have operands and a type, and compute what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import ExpressionError
from tilewright.tir import buffer, expr

LEFT = np.array([7, 7, -7, -7, 0, 5], "int32")
RIGHT = np.array([2, -2, 2, -2, 3, 5], "int32")

ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    expr.Add: np.add,
    expr.Sub: np.subtract,
    expr.Mul: np.multiply,
    expr.Div: lambda a, b: np.trunc(a / b),
    expr.Mod: np.fmod,
    expr.FloorDiv: np.floor_divide,
    expr.FloorMod: np.mod,
    expr.Min: np.minimum,
    expr.Max: np.maximum,
}
COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    expr.EQ: np.equal,
    expr.NE: np.not_equal,
    expr.LT: np.less,
    expr.LE: np.less_equal,
    expr.GT: np.greater,
    expr.GE: np.greater_equal,
}
LOGIC: dict[type, Callable[[Any, Any], Any]] = {expr.And: np.logical_and, expr.Or: np.logical_or}


def computed(make: Callable[[Any, Any], Any], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """What compiled code gives for each pair of elements."""
    a, b = (te.placeholder(one.shape, str(one.dtype)) for one in (left, right))
    out = te.compute(left.shape, lambda i: make(a[i], b[i]).astype("int32"))
    function = tvm.build(te.create_schedule(out.op), [a, b, out], "llvm")
    found = tvm.nd.empty(left.shape, "int32")
    function(tvm.nd.array(left), tvm.nd.array(right), found)
    return found.numpy()


@pytest.mark.parametrize("kind", [*ARITHMETIC, *COMPARISONS])
def test_two_numbers(kind: type) -> None:
    """Both operands have one type, which is the result's, or that of a comparison bool; numbers of Python become
    constants. Quotients round as the class says, whatever the signs."""
    x = te.var("x")
    made: Any = kind(x, 2)
    assert type(made) is kind and isinstance(made, (expr.BinaryOpExpr, expr.CmpExpr))
    assert made.a.same_as(x) and made.b.value == 2
    assert made.dtype == ("int32" if kind in ARITHMETIC else "bool")
    with pytest.raises(ExpressionError, match=f"operands of {kind.__name__} have types int32 and float32"):
        kind(x, tir.const(1, "float32"))
    expected = {**ARITHMETIC, **COMPARISONS}[kind](LEFT, RIGHT).astype("int32")
    np.testing.assert_array_equal(computed(kind, LEFT, RIGHT), expected)


@pytest.mark.parametrize("kind", LOGIC)
def test_two_conditions(kind: type) -> None:
    """Operands and result are bool; anything else is refused."""
    x = te.var("x")
    made: Any = kind(x > 0, x < 5)
    assert isinstance(made, expr.LogicalExpr) and made.dtype == "bool"
    assert tvm.ir.structural_equal(made.a, x > 0)
    with pytest.raises(ExpressionError, match="both must be bool"):
        kind(x, x < 5)
    truth = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], "bool")
    found = computed(kind, truth[:, 0], truth[:, 1])
    np.testing.assert_array_equal(found, LOGIC[kind](truth[:, 0], truth[:, 1]))


def test_bases() -> None:
    """Constants and conditions are told from other expressions by their bases."""
    x = te.var("x")
    constants = [tir.IntImm("int32", 3), tir.FloatImm("float32", 3), tir.StringImm("3")]
    assert all(isinstance(one, expr.ConstExpr) for one in constants)
    assert [one.value for one in constants] == [3, 3.0, "3"]
    assert not isinstance(x, expr.ConstExpr) and not isinstance(x + 1, expr.ConstExpr)
    assert isinstance(expr.Not(x > 1), expr.LogicalExpr) and not isinstance(x > 1, expr.LogicalExpr)


def test_what_gives_elements() -> None:
    """A tensor is one such; a class of one's own is read by index as well, under the name that it gives or has."""
    tensor = te.placeholder((2, 3), name="t")
    assert isinstance(tensor, buffer.DataProducer) and tensor.name_hint == "t"

    class Rows(buffer.DataProducer):
        """Elements that come from elsewhere."""

        def __init__(self) -> None:
            self.shape, self.dtype = (4,), tvm.DataType("int16")

    rows = Rows()
    element = tir.ProducerLoad(rows, [te.var("i")])
    assert element.producer is rows and element.dtype == "int16"
    assert rows.name_hint == "producer" and str(element) == "producer[i]"
