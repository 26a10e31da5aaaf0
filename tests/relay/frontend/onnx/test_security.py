"""What a model from anywhere may not do: read other files, allocate without end, crash or hang."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.relay.frontend.onnx import fuzz
from tests.relay.frontend.onnx.test_files import floats, model_of, product, store_outside

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.support.errors import ModelError


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, onnx.ModelProto]:
    """A model in a folder of its own, with a weight in a file beside it; a secret lies outside."""
    folder = tmp_path / "model"
    folder.mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * (128 + 64 * 64 * 4))
    (tmp_path / "model2").mkdir()
    (tmp_path / "model2" / "secret.bin").write_bytes(secret.read_bytes())
    path = store_outside(product(), folder, "weights.bin")
    return path, onnx.load(str(path), load_external_data=False)


def relocated(path: Path, model: onnx.ModelProto, **entries: str) -> Path:
    """The model with other entries about its external data."""
    tensor = model.graph.initializer[0]
    for entry in tensor.external_data:
        if entry.key in entries:
            entry.value = entries[entry.key]
    path.write_bytes(model.SerializeToString())
    return path


PLAIN = "not a plain path below the model's folder"


@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "a/../../secret.bin", "..\\secret.bin", "", "weights.bin\0", "./../model/weights.bin"],
)
def test_a_path_that_leaves_the_folder(location: str, stored: tuple[Path, onnx.ModelProto]) -> None:
    """Two dots, backslashes, nothing and zero bytes are refused as they are written."""
    with pytest.raises(ModelError, match=PLAIN):
        from_onnx(relocated(*stored, location=location))


def test_an_absolute_path(stored: tuple[Path, onnx.ModelProto]) -> None:
    """Even one into the model's own folder."""
    for target in (stored[0].parent.parent / "secret.bin", stored[0].parent / "weights.bin"):
        with pytest.raises(ModelError, match=PLAIN):
            from_onnx(relocated(*stored, location=str(target)))


def test_a_symbolic_link_to_a_file_elsewhere(stored: tuple[Path, onnx.ModelProto]) -> None:
    """A link in the folder does not make what it names part of it."""
    folder = stored[0].parent
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    with pytest.raises(ModelError, match="a link out of the model's folder"):
        from_onnx(relocated(*stored, location="link.bin"))


def test_a_symbolic_link_to_a_folder_elsewhere(stored: tuple[Path, onnx.ModelProto]) -> None:
    """A link on the way to the file, to a folder whose name begins like the model's."""
    folder = stored[0].parent
    (folder / "data").symlink_to(folder.parent / "model2")
    with pytest.raises(ModelError, match="a link out of the model's folder"):
        from_onnx(relocated(*stored, location="data/secret.bin"))


def test_a_link_to_itself(stored: tuple[Path, onnx.ModelProto]) -> None:
    """Links that go round are an error, not a hang."""
    folder = stored[0].parent
    (folder / "loop.bin").symlink_to(folder / "loop.bin")
    with pytest.raises(ModelError, match="cannot be read|link out"):
        from_onnx(relocated(*stored, location="loop.bin"))


def test_a_second_name_of_a_file_elsewhere(stored: tuple[Path, onnx.ModelProto]) -> None:
    """A hard link looks like an ordinary file, but has another name."""
    folder = stored[0].parent
    os.link(folder.parent / "secret.bin", folder / "hard.bin")
    with pytest.raises(ModelError, match="has another hard link"):
        from_onnx(relocated(*stored, location="hard.bin"))


def test_what_is_no_file(stored: tuple[Path, onnx.ModelProto]) -> None:
    """A folder, and a pipe, which would wait for ever."""
    folder = stored[0].parent
    (folder / "inner").mkdir()
    os.mkfifo(folder / "pipe")
    for location in ("inner", "pipe"):
        with pytest.raises(ModelError, match="not a regular file"):
            from_onnx(relocated(*stored, location=location))


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        ({"offset": "-1"}, "from -1"),
        ({"offset": "many"}, "not a number"),
        ({"length": "12"}, "make 16384 bytes"),
        ({"offset": "4096"}, "but the file has"),
        ({"offset": str(1 << 70)}, "but the file has"),
        ({"location": "missing.bin"}, "cannot be read"),
    ],
)
def test_offsets_and_lengths(
    entries: dict[str, str], complaint: str, stored: tuple[Path, onnx.ModelProto]
) -> None:
    """They have to be numbers, fit the tensor, and lie in the file."""
    with pytest.raises(ModelError, match=complaint):
        from_onnx(relocated(*stored, **entries))


def test_bytes_have_no_folder(stored: tuple[Path, onnx.ModelProto], monkeypatch: pytest.MonkeyPatch) -> None:
    """A model given as bytes or as a proto reads no file, not even in the current folder."""
    monkeypatch.chdir(stored[0].parent)
    for given in (stored[1], stored[1].SerializeToString()):
        with pytest.raises(ModelError, match="load the model by its path"):
            from_onnx(given)


def external(tensor: Any, location: str) -> None:
    """A tensor with its data elsewhere."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)


def test_tensors_in_every_corner(tmp_path: Path) -> None:
    """Attributes, branches, functions and sparse tensors are confined like initializers."""
    constant = helper.make_node(
        "Constant", [], ["c"], value=numpy_helper.from_array(np.ones(4, "float32"), "c")
    )
    use = helper.make_node("Add", ["x", "c"], ["y"])
    plain = model_of([constant, use], [floats("x", [4])], ["y"])
    external(plain.graph.node[0].attribute[0].t, "../secret.bin")

    inner = helper.make_graph([constant], "g", [], [onnx.ValueInfoProto(name="c")])
    branch = helper.make_node("If", ["b"], ["c"], then_branch=inner, else_branch=inner)
    nested = model_of(
        [branch, use], [floats("x", [4]), helper.make_tensor_value_info("b", TensorProto.BOOL, [])], ["y"]
    )
    external(nested.graph.node[0].attribute[0].g.node[0].attribute[0].t, "../secret.bin")

    function = helper.make_function("own", "F", ["x"], ["y"], [constant, use], [helper.make_opsetid("", 21)])
    called = model_of([helper.make_node("F", ["x"], ["y"], domain="own")], [floats("x", [4])], ["y"])
    called.opset_import.append(helper.make_opsetid("own", 1))
    called.functions.append(function)
    external(called.functions[0].node[0].attribute[0].t, "../secret.bin")

    sparse = model_of([use], [floats("x", [4])], ["y"])
    values = numpy_helper.from_array(np.ones(1, "float32"), "c")
    indices = numpy_helper.from_array(np.zeros(1, "int64"), "i")
    sparse.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    external(sparse.graph.sparse_initializer[0].indices, "../secret.bin")

    (tmp_path / "secret.bin").write_bytes(b"\0" * 64)
    (tmp_path / "inner").mkdir()
    for model in (plain, nested, called, sparse):
        path = tmp_path / "inner" / "model.onnx"
        path.write_bytes(model.SerializeToString())
        with pytest.raises(ModelError, match=PLAIN):
            from_onnx(path)


# Sizes


@pytest.mark.parametrize("dims", [[1 << 40], [1 << 31, 1 << 31, 1 << 31], [-1], [3], [2, 2, 2], [0]])
def test_a_shape_that_the_data_do_not_fill(dims: Sequence[int]) -> None:
    """Raw data, and lists of numbers, have to be as many as the shape says: nothing is allocated before."""
    raw = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"\0" * 16)
    listed = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, float_data=[0.0] * 4)
    for tensor in (raw, listed):
        model = model_of([helper.make_node("Identity", ["w"], ["y"])], [], ["y"], [tensor])
        with pytest.raises(ModelError, match="tensor 'w'"):
            from_onnx(model)


def test_large_raw_data_are_checked_too() -> None:
    """Those that are not parsed but read from their place."""
    model = product()
    model.graph.initializer[0].dims[:] = [1 << 20, 1 << 20]
    with pytest.raises(ModelError, match="needs 4398046511104 bytes, and has 16384"):
        from_onnx(model.SerializeToString())


def ints(name: str, values: Sequence[int]) -> Any:
    """A constant vector."""
    return numpy_helper.from_array(np.asarray(values, "int64"), name)


ABSURD: list[tuple[str, list[Any], list[Any]]] = [
    ("ConstantOfShape", [ints("n", [1 << 40])], [helper.make_node("ConstantOfShape", ["n"], ["v"])]),
    (
        "Expand",
        [ints("n", [1 << 20, 1 << 20]), ints("one", [1])],
        [helper.make_node("Expand", ["one", "n"], ["v"])],
    ),
    ("Tile", [ints("n", [1 << 50]), ints("one", [1])], [helper.make_node("Tile", ["one", "n"], ["v"])]),
    (
        "Range",
        [ints("zero", []), ints("n", []), ints("one", [])],
        [
            helper.make_node("Constant", [], ["a"], value_int=0),
            helper.make_node("Constant", [], ["b"], value_int=1 << 50),
            helper.make_node("Constant", [], ["c"], value_int=1),
            helper.make_node("Range", ["a", "b", "c"], ["v"]),
        ],
    ),
    (
        "Pad",
        [ints("n", [0, 1 << 50]), ints("one", [1])],
        [helper.make_node("Pad", ["one", "n"], ["v"])],
    ),
]


@pytest.mark.parametrize(
    ("weights", "nodes"), [case[1:] for case in ABSURD], ids=[case[0] for case in ABSURD]
)
def test_absurd_sizes(weights: list[Any], nodes: list[Any]) -> None:
    """A tensor of terabytes is refused before anything is allocated, even where only its sum is used."""
    final = helper.make_node("ReduceSum", ["v"], ["y"], keepdims=0)
    started = time.monotonic()
    with pytest.raises(ModelError, match="bytes|too large|larger"):
        from_onnx(model_of([*nodes, final], [], ["y"], weights))
    assert time.monotonic() - started < 5


def test_a_large_constant_is_not_computed() -> None:
    """Some megabytes are left to the program, and so is what is made of them."""
    nodes = [
        helper.make_node("ConstantOfShape", ["n"], ["v"]),
        helper.make_node("ReduceSum", ["v"], ["y"], keepdims=0),
    ]
    module, _ = from_onnx(model_of(nodes, [], ["y"], [ints("n", [1 << 26])]))
    assert "full" in str(module) and "sum" in str(module)


# Mutations


def test_mutated_models() -> None:
    """Ten thousand damaged files, or as many as fit half a minute: each is read or refused with an error of ours."""
    record = fuzz.run(cases=10_000, seconds=30, seed=20_261_115)
    assert not record.failures, "\n".join(record.failures)
    assert record.cases >= 200
    assert record.grown < 256 << 20
