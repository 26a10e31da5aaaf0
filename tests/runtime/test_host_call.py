"""The quick way that sessions call graphs with NumPy arrays."""

from __future__ import annotations

import gc
import json
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.runtime.graph_executor import GraphExecutor

GENERATOR = np.random.default_rng(0)


def executor_of(*results: relay.Expr) -> GraphExecutor:
    """An executor of a function of all variables in some expressions."""
    body = results[0] if len(results) == 1 else relay.Tuple(list(results))
    function = relay.Function(relay.analysis.free_vars(body), body)
    made: GraphExecutor = relay.build(tvm.IRModule.from_expr(function), "llvm")["default"](tvm.cpu(0))
    return made


@pytest.fixture(scope="module")
def executor() -> GraphExecutor:
    """Of several types: ``mask`` selects from ``a`` and ``b``, and counts."""
    mask = relay.var("mask", shape=(3, 4), dtype="bool")
    a, b = relay.var("a", shape=(3, 4)), relay.var("b", shape=())
    return executor_of(relay.where(mask, a, b), relay.sum(relay.cast(mask, "int64")))


def values() -> dict[str, Any]:
    """Inputs of the executor."""
    return {
        "mask": GENERATOR.random((3, 4)) < 0.5,
        "a": GENERATOR.standard_normal((3, 4)).astype("float32"),
        "b": np.array(7, "float32"),
    }


def test_it_computes_what_the_steps_do(executor: GraphExecutor) -> None:
    """With inputs in any order, and with new arrays as outputs."""
    call = executor.host_call(["a", "mask", "b"], ["chosen", "count"])
    assert call is not None
    given = [values(), values()]
    made = [call(one) for one in given]
    for one, outputs in zip(given, made, strict=True):
        assert outputs is not None and list(outputs) == ["chosen", "count"]
        np.testing.assert_array_equal(outputs["chosen"], np.where(one["mask"], one["a"], one["b"]))
        assert outputs["count"] == one["mask"].sum()
        assert (outputs["chosen"].dtype, outputs["count"].dtype) == (np.float32, np.int64)


@pytest.mark.parametrize(
    "changed",
    [
        {"a": np.ones((3, 4))},
        {"a": np.ones((4, 3), "float32").T},
        {"a": np.ones((3, 5), "float32")},
        {"a": np.ones((3, 4), ">f4")},
        {"a": [[1.0] * 4] * 3},
        {"b": np.float32(3)},
        {"mask": np.ones((3, 4), "uint8")},
    ],
)
def test_other_values_are_left_to_the_steps(executor: GraphExecutor, changed: dict[str, Any]) -> None:
    """They convert values, copy strides and name the input in errors."""
    call = executor.host_call(["a", "mask", "b"], ["chosen", "count"])
    assert call is not None and call({**values(), **changed}) is None


def test_a_call_during_a_call() -> None:
    """Leaves the first one's arrays as they are: it is left to the steps, which say that the graph is in use."""
    inner: list[Any] = []

    @tvm.register_func("test_host_call.again", override=True)
    def again(source: tvm.nd.NDArray, target: tvm.nd.NDArray) -> None:
        inner.append(call({"x": np.ones(2, "float32")}))
        with pytest.raises(RuntimeError, match="the graph is in use"):
            executor.set_input("x", np.ones(2, "float32"))
        source.copyto(target)

    given = te.placeholder((2,), name="x")
    copied = te.extern(
        (2,), [given], lambda ins, outs: tvm.tir.call_packed("test_host_call.again", ins[0], outs[0])
    )
    library = tvm.build(te.create_schedule(copied.op), [given, copied], "llvm", name="copied")
    x = relay.var("x", shape=(2,))
    graph = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm").get_graph_json()
    (kernel,) = [node["attrs"]["func_name"] for node in json.loads(graph)["nodes"] if "attrs" in node]
    executor = GraphExecutor(graph.replace(kernel, "copied"), library)
    call = executor.host_call(["x"], ["y"])
    assert call is not None
    outputs = call({"x": np.array([3, 4], "float32")})
    assert outputs is not None and outputs["y"].tolist() == [3, 4] and inner == [None]


def test_it_keeps_the_graph() -> None:
    """The executor that it was asked of may be gone."""
    x = relay.var("x", shape=(1024,))
    call = executor_of(relay.exp(x)).host_call(["x"], ["y"])
    gc.collect()
    assert call is not None
    outputs = call({"x": np.zeros(1024, "float32")})
    assert outputs is not None and (outputs["y"] == 1).all()


def test_types_that_numpy_lacks() -> None:
    """Have no quick way."""
    x = relay.var("x", shape=(8,), dtype="int4")
    assert executor_of(x + x).host_call(["x"], ["y"]) is None
