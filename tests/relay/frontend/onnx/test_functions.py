"""Functions of a model: those that call each other, and those that call themselves."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest
from onnx import helper

from tilewright.relay.frontend import from_onnx
from tilewright.relay.frontend.onnx import backend
from tilewright.support.errors import ModelError

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def function(name: str, calls: list[str]) -> onnx.FunctionProto:
    """y = the last of these, one after the other, of x."""
    values = ["x", *(f"v{number}" for number in range(len(calls) - 1)), "y"]
    nodes = [
        helper.make_node(
            called, [values[number]], [values[number + 1]], domain="" if called == "Neg" else "own"
        )
        for number, called in enumerate(calls)
    ]
    return helper.make_function("own", name, ["x"], ["y"], nodes, OPSETS)


def model(functions: list[onnx.FunctionProto], called: str) -> onnx.ModelProto:
    """A model that calls one of them."""
    info = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(called, ["x"], ["y"], domain="own")], "g", info[:1], info[1:])
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=9)


def doubling(depth: int) -> onnx.ModelProto:
    """Each function calls the one before it twice."""
    made = [function("f0", ["Neg"])]
    made += [function(f"f{number}", [f"f{number - 1}"] * 2) for number in range(1, depth + 1)]
    return model(made, f"f{depth}")


def test_functions_that_call_functions() -> None:
    """They are expanded."""
    x = np.float32([1, -2])
    np.testing.assert_array_equal(backend.prepare(doubling(3), executor="debug").run([x])[0], x)


def test_functions_that_expand_to_too_much_are_refused_at_once() -> None:
    """Counting is linear: each function is looked at once, whatever it would expand to."""
    started = time.perf_counter()
    with pytest.raises(ModelError, match="expand to 1099511627776 nodes.*'f40' is the largest"):
        from_onnx(doubling(40))
    with pytest.raises(ModelError, match="expand to"):
        from_onnx(doubling(500))
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("length", [1, 3])
def test_functions_that_call_themselves_are_refused(length: int) -> None:
    """The message names the cycle."""
    made = [function(f"f{number}", [f"f{(number + 1) % length}"]) for number in range(length)]
    cycle = " -> ".join([*(f"f{number}" for number in range(length)), "f0"])
    with pytest.raises(ModelError, match=f"calls itself: {cycle}"):
        from_onnx(model(made, "f0"))
