"""Reshapes to computed shapes that follow from the dimensions of the argument."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.transform import InferType, ResolveReshapes


def _calls(function) -> list[relay.Call]:
    found = []
    relay.analysis.post_order_visit(
        function.body, lambda node: found.append(node) if isinstance(node, relay.Call) else None
    )
    return found


def _resolved(function) -> relay.Function:
    passes = tvm.transform.Sequential([InferType(), ResolveReshapes(), InferType()])
    return passes(tvm.IRModule.from_expr(function))["main"]


def _dimension(x, place: int):
    """One dimension of a tensor as a vector, as ONNX exporters write it."""
    return relay.expand_dims(relay.take(relay.shape_of(x, "int64"), relay.const(place, "int64"), axis=0), 0)


def _view(x, like, *sizes):
    """``x`` in a shape of dimensions of ``like`` (given as strings of their places) and constants."""
    parts = [
        _dimension(like, int(size)) if isinstance(size, str) else relay.const([size], "int64")
        for size in sizes
    ]
    return relay.reshape(x, relay.concatenate(parts, 0))


@pytest.mark.parametrize(
    ("sizes", "codes", "shape"),
    [
        (("0", "1", 3, 4), (0, 0, 3, 4), (2, 5, 3, 4)),
        (("0", "1", -1), (0, 0, -1), (2, 5, 12)),
        (("0", 0, 2, -1), (0, 0, 2, -1), (2, 5, 2, 6)),
    ],
)
def test_dimensions_in_their_place_and_constants(sizes, codes, shape):
    """The codes of reshape say the same, the types are precise, and the numbers are those of NumPy."""
    x = relay.var("x", shape=(relay.Any(), relay.Any(), 12))
    function = relay.Function([x], _view(relay.nn.relu(x), x, *sizes))
    made = _resolved(function)
    (found,) = [one for one in _calls(made) if "reshape" in one.op.name]
    assert found.op.name == "reshape" and tuple(found.attrs.newshape) == codes
    given = np.random.default_rng(0).standard_normal((2, 5, 12)).astype("float32")
    (result,) = relay.vm.compile(made, "llvm").session().run({"x": given}).values()
    np.testing.assert_array_equal(result, np.maximum(given, 0).reshape(shape))


def test_a_product_of_dimensions_is_what_is_left():
    """Batch times length, computed, is -1."""
    x = relay.var("x", shape=(relay.Any(), relay.Any(), 12))
    rows = relay.multiply(_dimension(x, 0), _dimension(x, 1))
    shape = relay.concatenate([rows, relay.const([12], "int64")], 0)
    (found,) = [one for one in _calls(_resolved(relay.Function([x], relay.reshape(x, shape)))) if one.attrs]
    assert tuple(found.attrs.newshape) == (-1, 12)


def test_the_shape_of_a_result_is_followed():
    """Reshaped twice by dimensions of the first tensor: the second also has a static form."""
    x = relay.var("x", shape=(relay.Any(), relay.Any(), 12))
    heads = relay.transpose(_view(x, x, "0", "1", 3, 4), axes=[0, 2, 1, 3])
    back = _view(relay.transpose(heads, axes=[0, 2, 1, 3]), x, "0", "1", 12)
    made = _resolved(relay.Function([x], back))
    assert not [one for one in _calls(made) if one.op.name == "dyn.reshape"]
    assert str(made.ret_type) == "Tensor[(?, ?, 12), float32]"


def test_what_does_not_follow_stays():
    """Dimensions of another input, dimensions elsewhere, and values that are data."""
    x = relay.var("x", shape=(relay.Any(), relay.Any(), 12))
    y = relay.var("y", shape=(relay.Any(), relay.Any()))
    sizes = relay.var("sizes", shape=(2,), dtype="int64")
    for inputs, body in (
        ([x, y], _view(x, y, "0", "1", 12)),
        ([x], _view(x, x, "1", "0", 12)),
        ([x, sizes], relay.reshape(x, sizes)),
    ):
        assert [
            one for one in _calls(_resolved(relay.Function(inputs, body))) if one.op.name == "dyn.reshape"
        ]
