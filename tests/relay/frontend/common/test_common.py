"""What frontends share."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.frontend.common import (
    ModelNode,
    ShapeNeeded,
    UnsupportedOperators,
    ValueNeeded,
    check_input_names,
    check_size,
    collect_unsupported,
    input_type,
    require_supported,
    tensor_bytes,
)
from tilewright.support.errors import ModelError, OpNotImplemented


@pytest.fixture
def node():
    """A node with attributes."""
    return ModelNode("Concat", "join", {"axis": -1, "mode": "fast"}, tvm.IRModule())


def test_one_error_lists_every_unsupported_operator():
    """Grouped by operator in the order in which they are met, with the first four nodes of each."""
    missing = collect_unsupported([("Fold", "a"), ("Warp", "b"), *(("Fold", f"n{i}") for i in range(5))])
    with pytest.raises(UnsupportedOperators) as raised:
        require_supported(missing)
    assert str(raised.value) == (
        "2 operators of the model (7 nodes) are not supported:\n  Fold, 6: a, n0, n1, n2 and 2 more\n  Warp, 1: b"
    )
    assert isinstance(raised.value, ModelError) and isinstance(raised.value, OpNotImplemented)
    assert [one.as_json() for one in raised.value.operators][1] == {
        "operator": "Warp",
        "count": 1,
        "nodes": ["b"],
    }
    require_supported(collect_unsupported([]))


def test_attributes_are_checked(node):
    """A missing one, and an axis that is out of range, are errors about the node."""
    assert node.attr("mode") == "fast" and node.attr("nothing", 3) == 3
    assert node.axis(0, 3) == 2
    with pytest.raises(ModelError, match=r"node 'join' \(Concat\): the attribute 'size' is missing"):
        node.attr("size")
    assert (node.from_front(-1, 3), node.from_front(0, 1)) == (2, 0)
    with pytest.raises(ModelError, match="dim -4 is out of range for 3 dimensions"):
        node.from_front(-4, 3, "dim")
    with pytest.raises(ModelError, match="axis 4 is out of range for 3 dimensions"):
        ModelNode("Concat", "join", {"axis": 4}, tvm.IRModule()).axis(0, 3)


def test_calls_carry_the_node(node):
    """Spans name the model's node; errors of any kind become errors about it, the frontend's own stay."""
    with node.conversion():
        made = relay.nn.relu(relay.var("x", shape=(2,)))
    assert made.span.source_name.name == "Concat join"
    with (
        pytest.raises(ModelError, match=r"node 'join' \(Concat\): two are needed") as raised,
        node.conversion(),
    ):
        raise ValueError("two are needed")
    assert isinstance(raised.value.__cause__, ValueError)
    own = ShapeNeeded("which shape?")
    with pytest.raises(ShapeNeeded) as raised, node.conversion():
        raise own
    assert raised.value is own


def test_shapes_and_values(node):
    """Unknown dimensions are None; what has to be known and is not says what it is computed from."""
    x = relay.var("x", shape=(2, relay.Any()), dtype="int64")
    assert node.shape(x) == (2, None) and node.rank(x) == 2 and node.dtype(x) == "int64"
    with pytest.raises(ShapeNeeded, match="all of it must be known"):
        node.static_shape(x)
    assert node.ints(relay.const(np.array([3, 4])), "sizes") == [3, 4]
    with pytest.raises(ValueNeeded, match="sizes has to be a constant; it is computed from x"):
        node.ints(x, "sizes")
    with pytest.raises(ModelError, match="sizes is missing"):
        node.ints(None, "sizes")
    assert node.dtype(node.constant(1, x)) == "int64"


def test_inputs_are_checked():
    """Dimensions of None stay unknown; an input that is too large, or that the model does not have, is refused."""
    kind = input_type("x", [2, None], "float16")
    assert isinstance(kind.shape[1], relay.Any) and tensor_bytes(kind) == 0
    assert tensor_bytes(relay.TupleType([relay.TensorType((2, 3), "float16")] * 2)) == 24
    with pytest.raises(ModelError, match=f"the input 'x' has 2 dimensions and {1 << 42} bytes"):
        input_type("x", [1 << 20, 1 << 20], "float32")
    with pytest.raises(ModelError, match="a result has 65 dimensions"):
        check_size("a result", relay.TensorType((1,) * 65))
    with pytest.raises(ModelError, match="the model has no input 'z'; it has x, y"):
        check_input_names({"x": [1], "z": [1]}, ["x", "y", "w"], ["y", "x"])
    with pytest.raises(AssertionError, match="the model has no input 'z'"):
        check_input_names({"z": [1]}, ["x"], ["x"])
