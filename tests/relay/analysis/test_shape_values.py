"""Elements of tensors that are computed from shapes."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.analysis.program_shapes import ProgramShapes

X = relay.var("x", shape=(relay.Any(), 3, relay.Any()))
SHAPE = relay.shape_of(X, "int64")


def _values(body) -> list[str] | None:
    """The values of an expression, with the open dimensions of X called a and b."""
    function = tvm.relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([X], body)))["main"]
    shapes = ProgramShapes(function)
    found = shapes.values_of(function.body)
    first, _, second = shapes.type_of(function.params[0]).shape
    names = {first: tvm.tir.Var("a", "int32"), second: tvm.tir.Var("b", "int32")}
    if found is None:
        return None
    return [str(tvm.arith.Analyzer().simplify(tvm.tir.stmt_functor.substitute(one, names))) for one in found]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (SHAPE, ["a", "3", "b"]),
        (relay.take(SHAPE, relay.const(2, "int64"), axis=0), ["b"]),
        (relay.take(SHAPE, relay.const([2, 0], "int64"), axis=0), ["b", "a"]),
        (relay.strided_slice(SHAPE, [1], [3]), ["3", "b"]),
        (relay.strided_slice(SHAPE, [0], [-1]), ["a", "3"]),
        (relay.concatenate([SHAPE, relay.const([7], "int64")], 0), ["a", "3", "b", "7"]),
        (
            relay.cast(relay.multiply(SHAPE, relay.const([2, 2, 2], "int64")), "int32"),
            ["a * 2", "6", "b * 2"],
        ),
        (relay.subtract(SHAPE, relay.const(1, "int64")), ["a - 1", "2", "b - 1"]),
    ],
)
def test_values(body, values):
    """Taken, cut, put together, converted and computed with."""
    assert _values(body) == values


@pytest.mark.parametrize(
    "body",
    [
        relay.take(SHAPE, relay.const(-1, "int64"), axis=0),
        relay.maximum(SHAPE, relay.const(1, "int64")),
        relay.concatenate([SHAPE, relay.cast(relay.take(X, relay.const([0])), "int64")], 0),
        relay.add(SHAPE, relay.const(np.array([2**40] * 3), "int64")),
    ],
)
def test_nothing_is_said_of_the_rest(body):
    """An index that counts from the end, an operator that is not followed, data, and a number that no size has."""
    assert _values(body) is None
