"""Big and awkward files: how a model may be given, and what it may leave out, repeat or hide."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.relay.frontend.onnx.models import run

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.onnx.wire import Bytes, without_weights
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ModelError

FLOAT = TensorProto.FLOAT


def model_of(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[str], weights: Sequence[Any] = ()
) -> onnx.ModelProto:
    """A model from its parts; outputs have no type."""
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(list(nodes), "model", list(inputs), infos, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def floats(name: str, shape: Sequence[Any]) -> Any:
    """An input of float32."""
    return helper.make_tensor_value_info(name, FLOAT, shape)


WEIGHT = np.arange(64 * 64, dtype="float32").reshape(64, 64) / 1000


def product() -> onnx.ModelProto:
    """x @ w, with a weight that is large enough to be left in the file."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model_of([node], [floats("x", [1, 64])], ["y"], [numpy_helper.from_array(WEIGHT, "w")])


def result(model: Any, x: Any) -> Any:
    """What a model that was read makes of one input."""
    module, params = from_onnx(model)
    rest = [params[one.name_hint].numpy() for one in module["main"].params[1:]]
    return Interpreter(module).run(module["main"], [x, *rest])


@pytest.mark.parametrize("form", ["proto", "bytes", "path", "text"])
def test_a_model_is_a_proto_bytes_or_a_path(form: str, tmp_path: Path) -> None:
    """All give the same module, with the same weights."""
    model, path = product(), tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    given = {"proto": model, "bytes": model.SerializeToString(), "path": path, "text": str(path)}[form]
    x = np.ones((1, 64), "float32")
    np.testing.assert_allclose(result(given, x), x @ WEIGHT, rtol=1e-5)


def test_what_is_no_model_is_said(tmp_path: Path) -> None:
    """A file that is not there, one that is empty, one of something else, and an object of another type."""
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "text.onnx").write_bytes(b"\x89PNG\r\n\x1a\nno model at all")
    for given, complaint in (
        (tmp_path / "missing.onnx", "cannot be read"),
        (tmp_path, "cannot be read"),
        (tmp_path / "empty.onnx", "is not an ONNX model"),
        (tmp_path / "text.onnx", "is not an ONNX model"),
        (b"\x00\x01\x02", "is not an ONNX model"),
        (12, "not int"),
    ):
        with pytest.raises(ModelError, match=complaint):
            from_onnx(given)


def test_large_weights_stay_where_they_are() -> None:
    """What is parsed has no raw data of large initializers; where they lie is known to the byte."""
    content = product().SerializeToString()
    small, places = without_weights(Bytes(content))
    assert len(small) < 300
    assert onnx.ModelProto.FromString(small).graph.initializer[0].name == "w"
    place = places[0]
    assert content[place.offset : place.offset + place.length] == WEIGHT.tobytes()


def test_parsing_without_weights_loses_nothing_else() -> None:
    """A model without large weights comes back byte by byte."""
    model = product()
    del model.graph.initializer[:]
    model.metadata_props.add(key="author", value="nobody")
    content = model.SerializeToString()
    assert without_weights(Bytes(content)) == (content, {})


def store_outside(model: onnx.ModelProto, folder: Path, location: str) -> Path:
    """The model in a folder, with its first initializer in a file of its own."""
    tensor = model.graph.initializer[0]
    (folder / location).parent.mkdir(parents=True, exist_ok=True)
    (folder / location).write_bytes(b"\0" * 128 + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "128"), ("length", str(WEIGHT.nbytes))):
        tensor.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("location", ["weights.bin", "data/part one.bin"])
def test_weights_in_a_file_beside_the_model(location: str, tmp_path: Path) -> None:
    """At an offset, in the model's folder or below it."""
    path = store_outside(product(), tmp_path, location)
    x = np.ones((1, 64), "float32")
    np.testing.assert_allclose(result(path, x), x @ WEIGHT, rtol=1e-5)


def test_a_constant_in_a_file_beside_the_model(tmp_path: Path) -> None:
    """Tensors of attributes are found as well, beside the model and not in the current folder."""
    value = numpy_helper.from_array(np.arange(4, dtype="float32"), "c")
    node = helper.make_node("Constant", [], ["c"], value=value)
    model = model_of([node, helper.make_node("Add", ["x", "c"], ["y"])], [floats("x", [4])], ["y"])
    stored = model.graph.node[0].attribute[0].t
    (tmp_path / "c.bin").write_bytes(stored.raw_data)
    stored.ClearField("raw_data")
    stored.data_location = TensorProto.EXTERNAL
    stored.external_data.add(key="location", value="c.bin")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    made = result(tmp_path / "model.onnx", np.ones(4, "float32"))
    np.testing.assert_array_equal(made, [1, 2, 3, 4])


MEASURE = """
import resource, sys
from tilewright.relay.frontend.onnx import from_onnx
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
module, params = from_onnx(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, params["w"].shape)
"""


def grown(path: Path) -> tuple[int, str]:
    """By how many bytes a process grows that reads a model, and the shape of the weight."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    kilobytes, shape = done.stdout.strip().split(" ", 1)
    return int(kilobytes) * 1024, shape


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True], ids=["in a file of its own", "in the model"])
def test_more_than_two_gigabytes(inside: bool, tmp_path: Path) -> None:
    """A weight of more than protobuf can parse is read, and takes its own size of memory once."""
    size = (1 << 31) + (1 << 20)
    rows = size // 4096
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [floats("x", [1, rows])],
        ["y"],
        [TensorProto(name="w", data_type=FLOAT, dims=[rows, 1024])],
    )
    tensor = model.graph.initializer[0]
    path = tmp_path / "model.onnx"
    if inside:
        write_sparse(path, model, size)
    else:
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights.bin")
        with (tmp_path / "weights.bin").open("wb") as file:
            file.truncate(size)
        path.write_bytes(model.SerializeToString())
    available = resource.sysconf("SC_AVPHYS_PAGES") * 4096 if hasattr(resource, "sysconf") else size * 2
    if available < size * 3 // 2:
        pytest.skip("there is not enough memory")
    memory, shape = grown(path)
    assert shape == f"({rows}, 1024)"
    assert memory < size * 1.25


def write_sparse(path: Path, model: onnx.ModelProto, size: int) -> None:
    """The model with raw data of zeros for its initializer, which take no room on the disk."""

    def number(value: int) -> bytes:
        made = b""
        while value >= 0x80:
            made += bytes([value & 0x7F | 0x80])
            value >>= 7
        return made + bytes([value])

    tensor = model.graph.initializer[0].SerializeToString() + b"\x4a" + number(size)
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString() + b"\x2a" + number(len(tensor) + size) + tensor
    model.ClearField("graph")
    with path.open("wb") as file:
        file.write(model.SerializeToString() + b"\x3a" + number(len(graph) + size) + graph)
        file.truncate(file.tell() + size)


# What a model may leave out, repeat or hide


def test_initializers_among_the_inputs() -> None:
    """Old models list them there: they are not inputs of the program."""
    model = product()
    model.graph.input.append(floats("w", [64, 64]))
    module, params = from_onnx(model)
    assert [one.name_hint for one in module["main"].params] == ["x", "w"]
    assert list(params) == ["w"]


def test_inputs_that_nothing_uses() -> None:
    """They stay inputs, in their place; initializers that nothing uses are not parameters."""
    model = product()
    model.graph.input.insert(0, floats("unused", [3]))
    model.graph.initializer.append(numpy_helper.from_array(WEIGHT, "spare"))
    module, params = from_onnx(model)
    assert [one.name_hint for one in module["main"].params] == ["unused", "x", "w"]
    assert list(params) == ["w"]


def branch(name: str, nodes: Sequence[Any]) -> Any:
    """A graph without inputs."""
    return helper.make_graph(list(nodes), name, [], [onnx.ValueInfoProto(name=nodes[-1].output[0])])


def test_a_name_that_a_branch_hides() -> None:
    """Inside a branch the inner meaning of a name counts, after it the outer one."""
    inner = [helper.make_node("Neg", ["x"], ["v"]), helper.make_node("Abs", ["v"], ["r"])]
    outer = [helper.make_node("Identity", ["v"], ["r"])]
    nodes = [
        helper.make_node("Add", ["x", "x"], ["v"]),
        helper.make_node("If", ["c"], ["b"], then_branch=branch("t", inner), else_branch=branch("e", outer)),
        helper.make_node("Add", ["b", "v"], ["y"]),
    ]
    inputs = [floats("x", [2]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    model = model_of(nodes, inputs, ["y"])
    x = np.array([1.0, -2.0], "float32")
    taken = run(model, {"x": x, "c": np.array(True)})[0]
    np.testing.assert_array_equal(taken, np.abs(x) + 2 * x)
    other = run(model, {"x": x, "c": np.array(False)})[0]
    np.testing.assert_array_equal(other, 4 * x)


def test_an_optional_input_left_empty() -> None:
    """An empty name is an input that is not given."""
    model = model_of(
        [helper.make_node("Clip", ["x", "", "high"], ["y"])],
        [floats("x", [3])],
        ["y"],
        [numpy_helper.from_array(np.array(1.0, "float32"), "high")],
    )
    found = run(model, {"x": np.array([-5.0, 0.5, 2.0], "float32")})[0]
    np.testing.assert_array_equal(found, np.array([-5.0, 0.5, 1.0], "float32"))


def test_dimensions_of_size_zero() -> None:
    """Nothing goes in, and what is joined to it comes out."""
    model = model_of(
        [helper.make_node("Concat", ["x", "z"], ["y"], axis=0)],
        [floats("x", [0, 3]), floats("z", [2, 3])],
        ["y"],
    )
    z = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(run(model, {"x": np.zeros((0, 3), "float32"), "z": z})[0], z)


def test_scalars() -> None:
    """A scalar is not a vector of one element."""
    model = model_of([helper.make_node("Mul", ["x", "x"], ["y"])], [floats("x", [])], ["y"])
    found = run(model, {"x": np.array(3.0, "float32")})[0]
    assert found.shape == () and float(found) == 9.0


def test_an_input_that_is_an_output() -> None:
    """A model may pass an input through, and give one value twice."""
    model = model_of([helper.make_node("Neg", ["x"], ["y"])], [floats("x", [2])], ["x", "y", "y"])
    x = np.array([1.0, 2.0], "float32")
    first, second, third = run(model, {"x": x})
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, -x)
    np.testing.assert_array_equal(third, -x)


def test_a_sparse_initializer() -> None:
    """Its elements are put in their places."""
    model = model_of([helper.make_node("Add", ["x", "s"], ["y"])], [floats("x", [2, 3])], ["y"])
    values = numpy_helper.from_array(np.array([5.0, 7.0], "float32"), "s")
    indices = numpy_helper.from_array(np.array([1, 5], "int64"), "i")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    found = run(model, {"x": np.zeros((2, 3), "float32")})[0]
    np.testing.assert_array_equal(found, [[0, 5, 0], [0, 0, 7]])
