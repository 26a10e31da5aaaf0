"""Functions that programs look up by TVM's names."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor

WEIGHT = np.arange(6, dtype="float32").reshape(2, 3)
DATA = np.array([[1, -1, 2]], "float32")


@pytest.fixture(scope="module")
def built():
    x, w = relay.var("x", shape=(1, 3)), relay.var("w", shape=(2, 3))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return relay.build(module, "llvm", params={"w": WEIGHT})


def run(executor) -> np.ndarray:
    graph = graph_executor.GraphModule(executor)
    graph.set_input("x", DATA)
    graph.run()
    return graph.get_output(0).numpy()


@pytest.mark.parametrize("name", ["tvm.graph_executor.create", "tvm.graph_executor_debug.create"])
@pytest.mark.parametrize("device", [(1, 0), (tvm.cpu(),)])
def test_an_executor_of_a_graph(built, name, device):
    """Its device is given as one value, or as type and number."""
    executor = tvm.get_global_func(name)(built.graph_json, built.lib, *device)
    for key, value in built.params.items():
        executor["set_input"](key, value)
    np.testing.assert_allclose(run(executor), DATA @ WEIGHT.T)


def test_a_model_of_a_graph_and_a_library(built, tmp_path):
    """It has the parameters that it was given, in this process and in a file, and the first model stays as it is."""
    make = tvm.get_global_func("tvm.graph_executor_factory.create")
    pairs = [part for pair in built.params.items() for part in pair]
    model = make(built.graph_json, built.lib, "other", *pairs)
    np.testing.assert_allclose(run(model["other"](tvm.cpu())), DATA @ WEIGHT.T)
    model.export_library(tmp_path / "other.so")
    loaded = tvm.get_global_func("runtime.ModuleLoadFromFile")(str(tmp_path / "other.so"), "so")
    np.testing.assert_allclose(run(loaded["other"](tvm.cpu())), DATA @ WEIGHT.T)
    np.testing.assert_allclose(run(built["default"](tvm.cpu())), DATA @ WEIGHT.T)


def test_what_can_be_run_here():
    """As ``tvm.runtime.enabled`` says."""
    enabled = tvm.get_global_func("runtime.RuntimeEnabled")
    assert enabled("llvm") and not enabled("nonesuch")
    assert tvm.get_global_func("runtime.SystemLib")().type_key == "system_lib"
