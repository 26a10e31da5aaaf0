"""``tilewright inspect``: models and packages, each number against a computation of its own."""

import json
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.driver import tvmc
from tilewright.driver.cli import main
from tilewright.runtime.loading import load_module
from tilewright.runtime.vm import Executable
from tilewright.support.cbuild import has_compiler


def inspected(capsys, *arguments):
    """The JSON that is printed."""
    assert main(["inspect", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def printed(capsys, *arguments):
    """The text that is printed."""
    assert main(["inspect", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_model(small_onnx, capsys):
    """Inputs, outputs, operators, parameters and work of a model, under the model's own names."""
    found = inspected(capsys, small_onnx)
    assert (found["kind"], found["format"]) == ("model", "ONNX")
    assert found["inputs"] == [{"name": "x", "shape": [2, 4], "dtype": "float32"}]
    assert [one["name"] for one in found["outputs"]] == ["y", "p"]
    assert found["operators"] == {"MatMul": 1, "Add": 1, "Relu": 1, "Softmax": 1}
    assert found["parameters"]["elements"] == 15 and found["parameters"]["bytes"] == 60
    assert found["multiply_accumulates"] == 2 * 4 * 3
    text = printed(capsys, small_onnx)
    assert "24 multiply-accumulates" in text and "IR 8, opset 17" in text and "Softmax" in text


def constant_model(path):
    """Weights in initializers, in Constant nodes of each kind, and in the branches of an If."""
    weight = numpy_helper.from_array(np.ones((64, 10), "float32"), "w")
    branch = numpy_helper.from_array(np.ones((10,), "float16"), "b")
    branches = [
        helper.make_graph(
            [helper.make_node("Constant", [], [name], value=branch)],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [10])],
        )
        for name in ("then_bias", "else_bias")
    ]
    nodes = [
        helper.make_node("Constant", [], ["w"], value=weight),
        helper.make_node("Constant", [], ["axes"], value_ints=[0, 1]),
        helper.make_node("Constant", [], ["scale"], value_float=0.5),
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Mul", ["product", "scale"], ["scaled"]),
        helper.make_node("If", ["flag"], ["bias"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Add", ["scaled", "offset"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "constants",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10]),
            helper.make_tensor_value_info("bias", TensorProto.FLOAT16, [10]),
        ],
        [numpy_helper.from_array(np.zeros((10,), "float32"), "offset")],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        producer_name="pytorch",
        producer_version="2.13.0",
        ir_version=8,
    )
    onnx.save(model, str(path))
    return str(path)


def test_weights_in_constants_are_counted(tmp_path, capsys):
    """As the onnx package counts them; producer, versions and names of open sizes are those of the file."""
    path = constant_model(tmp_path / "constants.onnx")
    found = inspected(capsys, path)
    arrays = [np.zeros(10, "float32")]
    operators = Counter()
    pending = [onnx.load(path).graph]
    while pending:
        for node in pending.pop().node:
            operators[node.op_type] += 1
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                elif node.op_type == "Constant":
                    value = helper.get_attribute_value(attribute)
                    is_tensor = isinstance(value, onnx.TensorProto)
                    dtype = "float32" if isinstance(value, float) else "int64"
                    arrays.append(numpy_helper.to_array(value) if is_tensor else np.asarray(value, dtype))
    parameters = found["parameters"]
    assert parameters["tensors"] == len(arrays) == 6
    assert parameters["elements"] == sum(one.size for one in arrays)
    assert parameters["bytes"] == sum(one.nbytes for one in arrays) == 40 + 2560 + 16 + 4 + 20 + 20
    assert parameters["stored"]["initializers"] == {"tensors": 1, "elements": 10, "bytes": 40}
    assert found["operators"] == dict(operators)
    assert found["producer"] == "pytorch 2.13.0"
    assert found["versions"] == {"IR": 8, "opset": 17, "opset com.microsoft": 1}
    assert found["inputs"][0]["shape"] == ["batch", 64] and found["outputs"][0]["shape"] == ["batch", 10]
    text = printed(capsys, path)
    assert "6 tensors, 673 elements, 2.6 KiB (1 in initializers, 5 in Constant nodes)" in " ".join(
        text.split()
    )
    assert "pytorch 2.13.0" in text and "batch, 64" in text
    assert max(map(len, text.splitlines()[1:])) <= 80  # the first names the file


def test_a_model_that_cannot_be_imported(tmp_path, capsys):
    """It is described as far as its file goes, and the problem is said."""
    node = helper.make_node("Foo", ["x"], ["y"], domain="com.example")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    graph = helper.make_graph([node], "foo", tensors[:1], tensors[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    path = tmp_path / "foo.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    found = inspected(capsys, path)
    assert found["operators"] == {"com.example.Foo": 1} and found["inputs"][0]["shape"] == ["n", 4]
    assert "com.example.Foo" in found["problem"]
    assert "cannot be compiled as it is" in printed(capsys, path)


def test_open_sizes_are_shown(open_onnx, capsys):
    """A size that is open has the model's name for it, or what --input-shapes says."""
    assert inspected(capsys, open_onnx)["inputs"][0]["shape"] == ["n", 4]
    given = inspected(capsys, open_onnx, "--input-shapes", "x:[7,4]")
    assert given["inputs"][0]["shape"] == [7, 4] and given["outputs"][1]["shape"] == [7, 3]


def test_a_package(small_package, capsys):
    """Executor, target, kernels and memory of a package."""
    found = inspected(capsys, small_package)
    assert (found["kind"], found["executor"], found["format"]) == ("package", "graph", "classic")
    assert found["target"].startswith("llvm")
    assert found["kernels"] and all(count == 1 for count in found["kernels"].values())
    assert found["parameters"]["bytes"] >= 60
    assert found["library"] == "mod.tar" and found["library_bytes"] > 0
    package = tvmc.TVMCPackage(small_package)
    assert found["features"] == list(package.load_library().features)
    assert found["workspace_bytes"] == tvmc.runner.make_runnable(package).executor.arena_bytes
    assert "inputs and outputs" in printed(capsys, small_package)


@pytest.mark.skipif(not has_compiler(), reason="a shared library is linked by a C compiler")
def test_a_shared_library(small_onnx, image_onnx, tmp_path, capsys):
    """Memory, weights, target and CPU features of a library are those that it has when it is loaded."""
    for number, model in enumerate((small_onnx, image_onnx)):
        path = str(tmp_path / f"model{number}.so")
        assert main(["compile", model, "-o", path]) == 0
        capsys.readouterr()
        found = inspected(capsys, path)
        library = load_module(path)
        factory = library.imported_modules[0]
        executor = tvmc.runner.make_runnable(tvmc.TVMCPackage(path)).executor
        assert found["workspace_bytes"] == executor.arena_bytes
        assert found["parameters"] == {
            "tensors": len(factory.params),
            "bytes": sum(one.numpy().nbytes for one in factory.params.values()),
        }
        assert found["features"] == list(library.features) and found["target"].startswith("llvm")
        assert found["machine"] in ("x86_64", "aarch64")
    assert max(map(len, printed(capsys, path).splitlines()[1:])) <= 80


@pytest.mark.skipif(not has_compiler(), reason="a shared library is linked by a C compiler")
def test_a_library_compiled_ahead_of_time(small_onnx, tmp_path, capsys):
    """Its parameters and its workspace are inside of the code, and still told; and it runs by itself."""
    path = str(tmp_path / "aot.so")
    assert main(["compile", small_onnx, "--executor", "aot", "-o", path]) == 0
    capsys.readouterr()
    found = inspected(capsys, path)
    assert found["executor"] == "aot" and found["parameters"] == {"tensors": 2, "bytes": 60}
    assert [one["name"] for one in found["outputs"]] == ["y", "p"]
    assert main(["run", path, "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["outputs"]] == ["y", "p"]


@pytest.mark.parametrize("suffix", ["tar", "so"])
def test_a_program_of_the_virtual_machine(suffix, open_onnx, tmp_path, capsys):
    """Its kernels with their calls, its constants, its inputs and outputs with names."""
    if suffix == "so" and not has_compiler():
        pytest.skip("a shared library is linked by a C compiler")
    path = str(tmp_path / f"vm.{suffix}")
    assert main(["compile", open_onnx, "--executor", "vm", "-o", path]) == 0
    capsys.readouterr()
    found = inspected(capsys, path)
    package = tvmc.TVMCPackage(path)
    executable = Executable(package.load_library())
    assert found["executor"] == "vm" and found["workspace_bytes"] is None
    assert sum(found["kernels"].values()) == executable.bytecode.count("invoke_packed")
    assert found["parameters"]["bytes"] == sum(one.numpy().nbytes for one in executable.program.constants)
    assert [one["name"] for one in found["outputs"]] == ["y", "p"]
    assert found["outputs"][0]["shape"] == [None, 3]
    assert found["outputs"][0]["dimensions"] == ["n", ""]
    said = printed(capsys, path)
    assert "as much as the shapes need" in said and "n, 4" in said and "?" not in said


def test_code_for_another_machine(small_onnx, tmp_path, capsys):
    """It is told, though it cannot be loaded here."""
    path = tmp_path / "arm.tar"
    target = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"
    assert main(["compile", small_onnx, "--target", target, "-f", "tar", "-o", str(path)]) == 0
    capsys.readouterr()
    found = inspected(capsys, path)
    assert found["machine"] == "aarch64" and "neon" in found["features"]
    assert "aarch64 with" in printed(capsys, path)


def test_what_is_neither(tmp_path, capsys):
    """A file that is missing or of no known kind is named, with what is wrong."""
    for name in ("missing.onnx", "missing.tar", "missing.so"):
        assert main(["inspect", str(tmp_path / name)]) == 2
        assert f"there is no {'model' if name.endswith('onnx') else ''}" in capsys.readouterr().err
    (tmp_path / "text.xyz").write_text("hello")
    assert main(["inspect", str(tmp_path / "text.xyz")]) == 2
    assert "--model-format" in capsys.readouterr().err
    (tmp_path / "text.so").write_text("hello")
    assert main(["inspect", str(tmp_path / "text.so")]) == 2
    assert "text.so is not a shared library, or it is damaged" in capsys.readouterr().err
    assert main(["inspect", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.skipif(not has_compiler(), reason="a shared library is linked by a C compiler")
def test_damaged_libraries(small_onnx, tmp_path, capsys):
    """A library that was cut short or changed is refused, and nothing of it runs."""
    path = tmp_path / "model.so"
    assert main(["compile", small_onnx, "-o", str(path)]) == 0
    content = path.read_bytes()
    for damaged in (content[:100], content[: len(content) // 2]):
        path.write_bytes(damaged)
        capsys.readouterr()
        assert main(["inspect", str(path)]) == 2
        assert "model.so" in capsys.readouterr().err
    changed = bytearray(content)
    changed[len(content) // 2] ^= 1
    path.write_bytes(changed)
    assert main(["inspect", str(path)]) == 2
    assert "checksum" in capsys.readouterr().err
