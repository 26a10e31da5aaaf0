"""The names of a model's outputs, from the file to every executor."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.backend.graph_read import read_graph
from tilewright.relay.output_names import OUTPUT_NAMES, output_names, with_output_names
from tilewright.runtime.vm_program import VMProgram
from tilewright.support.errors import ModelError
from tilewright.target import Target

NAMES = ["probabilities", "hidden/relu:0"]
X = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)


def onnx_model(rows: int | str = 2) -> onnx.ModelProto:
    """Two outputs, the second of a name that is no identifier."""
    nodes = [
        helper.make_node("Relu", ["x"], [NAMES[1]]),
        helper.make_node("Softmax", [NAMES[1]], [NAMES[0]], axis=1),
    ]
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 4]) for name in ("x", *NAMES)]
    graph = helper.make_graph(nodes, "named", tensors[:1], tensors[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def module() -> tvm.IRModule:
    """The imported model."""
    return relay.frontend.from_onnx(onnx_model())[0]


def test_the_importer_keeps_them(module: tvm.IRModule) -> None:
    """They are an attribute of main, which texts, saved modules and passes keep."""
    assert output_names(module["main"], 2) == NAMES
    assert output_names(tvm.parser.fromtext(module.astext())["main"], 2) == NAMES
    assert output_names(tvm.ir.load_json(tvm.ir.save_json(module))["main"], 2) == NAMES
    for level in range(4):
        with tvm.transform.PassContext(opt_level=level):
            optimized, _ = relay.optimize(module, "llvm")
        assert output_names(optimized["main"], 2) == NAMES


def test_the_elements_of_a_sequence_are_numbered() -> None:
    """A sequence has a name, its tensors have that name and a number."""
    node = helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph([node], "sequence", [x], [parts])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    main = relay.frontend.from_onnx(made)[0]["main"]
    assert output_names(main, 2) == ["parts_0", "parts_1"]


@pytest.mark.parametrize("names", [["one"], ["a", "a"], ["a", ""], "ab"])
def test_names_that_do_not_fit_are_none(names: Any) -> None:
    """Not one for each output, or not different: the outputs have no names."""
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], relay.Tuple([x, relay.exp(x)]), attrs={OUTPUT_NAMES: names})
    assert output_names(function, 2) == []
    session = relay.build(tvm.IRModule.from_expr(function), "llvm").session()
    assert session.output_names == ("output_0", "output_1")


def built(executor: str, module: tvm.IRModule) -> Any:
    """The module, compiled for an executor."""
    if executor == "vm":
        return relay.vm.compile(module, "llvm")
    target = Target("llvm -interface-api=packed") if executor == "aot" else "llvm"
    return relay.build(module, target, executor=executor)


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_sessions_have_them(executor: str, module: tvm.IRModule) -> None:
    """Whatever runs the model; and other names where the caller gives some."""
    session = built(executor, module).session()
    made = session.run({"x": X})
    assert list(made) == NAMES
    np.testing.assert_allclose(made["hidden/relu:0"], np.maximum(X, 0), rtol=1e-6)
    np.testing.assert_allclose(made["probabilities"].sum(axis=1), [1, 1], rtol=1e-6)
    renamed = built(executor, module).session(output_names=["a", "b"])
    np.testing.assert_array_equal(renamed.run({"x": X})["a"], made["probabilities"])


def test_the_graph_has_them_where_tvm_does_not_look(module: tvm.IRModule) -> None:
    """They are in the last member, at which TVM's reader stops; all of TVM's members are before it."""
    text = relay.build(module, "llvm").get_graph_json()
    members = list(json.loads(text))
    assert members == ["nodes", "arg_nodes", "heads", "attrs", "node_row_ptr", "metadata"]
    assert read_graph(text).output_names == NAMES
    changed = json.loads(text)
    for wrong in (["one"], ["a", "a"], [1, 2], "ab"):
        changed["metadata"]["output_names"] = wrong
        with pytest.raises(ModelError, match="names"):
            read_graph(json.dumps(changed))
    changed["metadata"]["output_names"] = ["one"]
    library = relay.build(module, "llvm").get_lib()
    with pytest.raises(ValueError, match="does not have a name for each output"):
        graph_executor.create(json.dumps(changed), library, tvm.cpu())


def test_the_graph_executor_finds_them(module: tvm.IRModule) -> None:
    """By name and by position."""
    library = relay.build(module, "llvm")
    model = graph_executor.GraphModule(library["default"](tvm.cpu()))
    model.run(x=X)
    assert model.get_output_names() == NAMES
    assert model.get_output_index("hidden/relu:0") == 1 and model.get_output_index("nothing") == -1
    np.testing.assert_array_equal(model.get_output("probabilities").numpy(), model.get_output(0).numpy())
    with pytest.raises(ValueError, match="no output 'nothing'; it has probabilities, hidden/relu:0"):
        model.get_output("nothing")


def test_programs_carry_them() -> None:
    """With types and shapes, and after they were stored; programs of before have none."""
    program = relay.vm.compile(relay.frontend.from_onnx(onnx_model("rows"))[0], "llvm").program
    again = VMProgram.from_bytes(program.to_bytes())
    assert [(one.name, str(one.dtype), one.shape) for one in again.outputs] == [
        (name, "float32", (None, 4)) for name in NAMES
    ]
    program.outputs.clear()
    program.dimension_names.clear()
    old = program.to_bytes()[:-8]
    assert VMProgram.from_bytes(old).outputs == []


def test_c_structures_have_them(module: tvm.IRModule) -> None:
    """As far as a name of C can be the model's."""
    model = relay.build(module, Target("c -interface-api=c"), executor="aot").lib
    header = model.header()
    assert "float* probabilities; /* float32, shape 2 x 4 */" in header
    assert "float* hidden_relu_0;" in header
    assert "#define TILEWRIGHT_DEFAULT_OUTPUT_probabilities_SIZE 32" in header


def test_names_can_be_given(module: tvm.IRModule) -> None:
    """Also to a model that was not imported."""
    x = relay.var("x", shape=(2,))
    function = with_output_names(relay.Function([x], relay.exp(x)), ["powers"])
    assert relay.build(tvm.IRModule.from_expr(function), "llvm").session().output_names == ("powers",)
