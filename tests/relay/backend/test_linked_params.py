"""Linked parameters: constants of the library, which nobody has to set."""

import ctypes
import json

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.backend.linked_params import LOOKUP, links_params, lookup_function
from tilewright.target import Target

WEIGHT = np.arange(12, dtype="float32").reshape(3, 4) / 7 - 0.5
BIAS = np.array([0.5, np.inf, -1.25], "float32")
DATA = np.linspace(0.25, 1, 8, dtype="float32").reshape(2, 4)
PARAMS = {"w": WEIGHT, "b": BIAS}


def dense() -> tvm.IRModule:
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    b = relay.var("b", shape=(3,))
    return tvm.IRModule.from_expr(
        relay.Function([x, w, b], relay.nn.bias_add(relay.nn.dense(x, w), b, axis=-1))
    )


def run(executor) -> np.ndarray:
    executor.set_input("x", DATA)
    executor.run()
    return executor.get_output(0).numpy()


def storage_of(graph_json: str, name: str) -> int:
    graph = json.loads(graph_json)
    numbers = [node["name"] for node in graph["nodes"]]
    return int(graph["attrs"]["storage_id"][1][graph["node_row_ptr"][numbers.index(name)]])


@pytest.mark.parametrize("target", ["llvm -link-params", "c --link-params"])
def test_a_library_without_saved_parameters_has_them(target, tmp_path):
    """What ``remove_params`` gives runs as it is, and its function finds each parameter in memory."""
    factory = relay.build(dense(), target, params=PARAMS)
    assert set(factory.params) == {"p0", "p1"}
    factory["remove_params"]().export_library(tmp_path / "linked.so")
    library = tvm.runtime.load_module(tmp_path / "linked.so")
    found = run(graph_executor.GraphModule(library["default"](tvm.cpu())))
    np.testing.assert_allclose(found, DATA @ WEIGHT.T + BIAS, rtol=1e-5)
    for name, value in factory.params.items():
        address = library[LOOKUP](storage_of(factory.graph_json, name)).value
        content = ctypes.string_at(address, value.numpy().nbytes)
        np.testing.assert_array_equal(np.frombuffer(content, "float32").reshape(value.shape), value.numpy())
    assert library[LOOKUP](99).value is None


def test_an_executor_of_the_graph_and_the_library_needs_no_parameters():
    """``graph_executor.create`` finds them, says that nothing but the input is to be set, and takes another value."""
    factory = relay.build(dense(), "llvm -link-params", params=PARAMS)
    executor = graph_executor.create(factory.graph_json, factory.lib, tvm.cpu())
    np.testing.assert_allclose(run(executor), DATA @ WEIGHT.T + BIAS, rtol=1e-5)
    assert executor.module.inputs_without_value() == []
    executor.set_input("p1", np.zeros(3, "float32"))
    np.testing.assert_allclose(run(executor), DATA @ WEIGHT.T, rtol=1e-5)
    assert factory.session().input_names == ("x",)


def test_linked_parameters_are_read_only():
    """They are in the library's constants: writing there is an error, and not a crash."""
    executor = relay.build(dense(), "llvm -link-params", params=PARAMS)["default"](tvm.cpu())
    with pytest.raises(ValueError, match="read-only"):
        executor.get_input("p1").copyfrom(np.zeros(3, "float32"))


def test_parameters_are_saved_once(tmp_path):
    """An exported library has them as constants and not in the saved model as well."""
    linked = relay.build(dense(), "llvm -link-params", params=PARAMS)
    plain = relay.build(dense(), "llvm", params=PARAMS)
    assert WEIGHT.tobytes() not in linked.module.save_to_bytes()
    assert WEIGHT.tobytes() in plain.module.save_to_bytes()
    linked.export_library(tmp_path / "linked.so")
    library = tvm.runtime.load_module(tmp_path / "linked.so")
    np.testing.assert_allclose(
        run(graph_executor.GraphModule(library["default"](tvm.cpu()))), DATA @ WEIGHT.T + BIAS, rtol=1e-5
    )


def test_without_the_option_parameters_can_be_removed_and_loaded(tmp_path):
    """``remove_params`` of a model whose parameters are not linked leaves them to ``load_params``."""
    factory = relay.build(dense(), "llvm", params=PARAMS)
    factory["remove_params"]().export_library(tmp_path / "bare.so")
    library = tvm.runtime.load_module(tmp_path / "bare.so")
    assert library["get_graph_json"]() == factory.graph_json
    executor = library["default"](tvm.cpu())
    assert executor.inputs_without_value() == ["x", "p0", "p1"]
    executor["load_params"](bytearray(tvm.runtime.save_param_dict(factory.get_params())))
    np.testing.assert_allclose(run(executor), DATA @ WEIGHT.T + BIAS, rtol=1e-5)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (np.array([-128, 127], "int8"), "-0x80, +0x7f,"),
        (np.array([1, 65535], "uint16"), "0x0001, 0xffff,"),
        (np.array([0.1, -np.inf, np.nan], "float32"), "0x1.99999ap-4, -INFINITY, NAN,"),
        (np.array([1.5, -0.0], "float64"), "0x1.8p+0, -0x0.p+0,"),
        (np.array([True, False]), "0x01, 0x00,"),
        (np.array([1.0], "float16"), "0x3c00,"),
    ],
)
def test_c_source_has_the_exact_values(value, line):
    """Numbers are written in base 16; types that C lacks as their bits."""
    made = lookup_function({"p0": 4}, {"p0": tvm.nd.array(value)}, Target("c -link-params"))
    assert f"    {line}\n" in made[LOOKUP].attrs["c_source"]


def test_only_hosts_link_parameters():
    """The option counts for C and LLVM, where it is set."""
    assert links_params(Target("llvm -link-params=1")) and links_params(Target("c --link-params"))
    assert not links_params(Target("llvm")) and not links_params(Target("llvm -link-params=0"))
