"""tvmc's classes of model formats, and TVM's object that converts a graph of TensorFlow's."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from tests.compat.tensorflow_graphs import tensorflow as tensorflow
from tests.compat.tensorflow_graphs import weighted_sum
from tests.relay.frontend.tflite.models import Graph, Op, T, model

from tilewright import relay
from tilewright.driver.tvmc import frontends
from tilewright.driver.tvmc.common import TVMCException
from tilewright.relay.frontend.tensorflow import GraphProto
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ModelError

if importlib.util.find_spec("tensorflow") is None:
    os.environ.setdefault("KERAS_BACKEND", "torch")

PADDLE = Path(__file__).parents[1] / "relay" / "frontend" / "paddle" / "data" / "paddle2"
X = np.float32([[1, -2, 3], [-4, 5, -6]])
W = np.float32([[2, 2, 2], [0.5, 0.5, 0.5]])


def run(loaded: Any, values: dict[str, np.ndarray]) -> np.ndarray:
    """What a module with its parameters computes of named inputs."""
    module, params = loaded
    known = {**values, **{name: array.numpy() for name, array in params.items()}}
    main = module["main"]
    made = Interpreter(module).run(main, [known[one.name_hint] for one in main.params])
    return np.asarray(made[0] if isinstance(made, (list, tuple)) else made)


def test_a_format_of_ones_own() -> None:
    """A frontend has a name, suffixes and a way to load; one that lacks a part cannot be made. The base has none."""

    class Text(frontends.Frontend):
        @staticmethod
        def name() -> str:
            return "text"

        @staticmethod
        def suffixes() -> list[str]:
            return ["txt"]

        def load(self, path: str, shape_dict: dict[str, Any] | None = None, **kwargs: Any) -> Any:
            assert super().load(path, shape_dict, **kwargs) is None  # type: ignore[safe-super]
            return path, shape_dict, kwargs

    assert Text().load("a.txt", {"x": [1]}, more=2) == ("a.txt", {"x": [1]}, {"more": 2})
    assert frontends.Frontend.name() is None and frontends.Frontend.suffixes() is None

    class Unfinished(frontends.Frontend):
        @staticmethod
        def name() -> str:
            return "unfinished"

    with pytest.raises(TypeError, match="abstract"):
        Unfinished()  # type: ignore[abstract]


@pytest.mark.parametrize(
    ("kind", "name", "suffix"),
    [
        (frontends.KerasFrontend, "keras", "h5"),
        (frontends.OnnxFrontend, "onnx", "onnx"),
        (frontends.TensorflowFrontend, "pb", "pb"),
        (frontends.TFLiteFrontend, "tflite", "tflite"),
        (frontends.PyTorchFrontend, "pytorch", "pth"),
        (frontends.PaddleFrontend, "paddle", "pdmodel"),
    ],
)
def test_names_and_suffixes(kind: Any, name: str, suffix: str, tmp_path: Path) -> None:
    """Each class knows its format, with TVM's names; a file that is not there is named in an error of the commands."""
    assert isinstance(kind(), frontends.Frontend)
    assert kind.name() == name and suffix in kind.suffixes() and suffix in kind().suffixes()
    missing = str(tmp_path / f"missing.{suffix}")
    with pytest.raises(ModelError, match=r"missing\.|pip install"):
        kind().load(missing, {"x": [1]})


def test_onnx(tmp_path: Path) -> None:
    """A shape that the file leaves open is given; arguments go to the importer."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "x"], ["y"])],
        "square",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
    )
    path = str(tmp_path / "square.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    loaded = frontends.OnnxFrontend().load(path, {"x": [2, 3]}, dtype="float32")
    assert loaded[0]["main"].params[0].checked_type.concrete_shape == (2, 3)
    np.testing.assert_array_equal(run(loaded, {"x": X}), X * X)


def test_tflite(tmp_path: Path) -> None:
    """A flatbuffer, with the inputs by their names."""
    path = tmp_path / "relu.tflite"
    path.write_bytes(model(Graph([T("x", (2, 3)), T("y", (2, 3))], [Op("RELU", ["x"], ["y"])], ["x"], ["y"])))
    np.testing.assert_array_equal(run(frontends.TFLiteFrontend().load(str(path)), {"x": X}), np.maximum(X, 0))


def test_pytorch(tmp_path: Path) -> None:
    """TorchScript does not say the shapes of inputs: they have to be given."""
    path = str(tmp_path / "linear.pth")
    linear = torch.nn.Linear(3, 2)
    torch.jit.trace(linear, torch.zeros(2, 3)).save(path)
    frontend = frontends.PyTorchFrontend()
    found = run(frontend.load(path, {"x": [2, 3]}), {"x": X})
    np.testing.assert_allclose(found, linear(torch.tensor(X)).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ModelError, match="shape"):
        frontend.load(path)


def test_paddle() -> None:
    """A program with its file of parameters computes what PaddlePaddle computed."""
    expected = np.load(f"{PADDLE}.npz")
    loaded = frontends.PaddleFrontend().load(f"{PADDLE}.pdmodel")
    inputs = {"image": expected["image"], "mask": expected["mask"]}
    np.testing.assert_allclose(run(loaded, inputs), expected["result0"], rtol=1e-4, atol=1e-5)


def test_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored model; with TensorFlow, both packages are what ``import_keras`` gives, and what is missing is named."""
    keras = pytest.importorskip("keras")
    stored = keras.Sequential([keras.layers.Input((3,), name="x"), keras.layers.Dense(2)])
    path = tmp_path / "dense.keras"
    stored.save(path)
    loaded = frontends.KerasFrontend().load(str(path), {"x": [2, 3]})
    expected = keras.ops.convert_to_numpy(stored(X))
    (name,) = [one.name_hint for one in loaded[0]["main"].params if one.name_hint not in loaded[1]]
    np.testing.assert_allclose(run(loaded, {name: X}), expected, rtol=1e-5, atol=1e-6)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ModelError, match="pip install tensorflow-cpu"):
        frontends.import_keras()


def test_both_packages(request: pytest.FixtureRequest) -> None:
    """TensorFlow and Keras."""
    # Keras looks for TensorFlow when it is imported, and must not find what stands in for it.
    keras = pytest.importorskip("keras")
    tensorflow = request.getfixturevalue("tensorflow")
    assert frontends.import_keras() == (tensorflow, keras)


def test_a_frozen_graph(tensorflow: Any, tmp_path: Path) -> None:
    """The last node is the output unless others are named; shapes that are given win over those of the graph."""
    path = tmp_path / "graph.pb"
    path.write_bytes(weighted_sum(tensorflow).SerializeToString())
    frontend = frontends.TensorflowFrontend()
    np.testing.assert_allclose(run(frontend.load(str(path)), {"x": X, "w": W}), np.maximum(X, 0) * W + X)
    named = frontend.load(str(path), {"x": [1, 3], "w": [1, 3]}, outputs=["product"])
    np.testing.assert_allclose(run(named, {"x": X[:1], "w": W[:1]}), np.maximum(X, 0)[:1] * W[:1])
    path.write_bytes(b"text")
    with pytest.raises(ModelError, match="is not a TensorFlow graph"):
        frontend.load(str(path))


def test_the_conversion_as_an_object(tensorflow: Any) -> None:
    """It converts a graph as ``from_tensorflow`` does, one after the other, with a layout, shapes and outputs."""
    graph = weighted_sum(tensorflow, (-1, 3))
    proto = GraphProto()
    module, params = proto.from_tensorflow(graph, "NHWC", {"x": (2, 3), "w": (2, 3)}, ["product", "sum"])
    assert params == {} and [one.name_hint for one in module["main"].params] == ["x", "w"]
    product, total = Interpreter(module).run(module["main"], [X, W])
    np.testing.assert_allclose(product, np.maximum(X, 0) * W)
    np.testing.assert_allclose(total, product + X)
    again, _ = proto.from_tensorflow(graph, outputs=["positive"])
    assert [one.name_hint for one in again["main"].params] == ["x", "w"]
    assert isinstance(again["main"].params[0].checked_type.shape[0], relay.Any)
    np.testing.assert_allclose(Interpreter(again).run(again["main"], [X, W]), np.maximum(X, 0))
    with pytest.raises(ModelError, match="the layout is NHWC or NCHW, not 'NCHW16c'"):
        proto.from_tensorflow(graph, layout="NCHW16c")


def test_unknown_formats() -> None:
    """An error of the commands names those that there are."""
    with pytest.raises(TVMCException, match="no model format 'theano'"):
        frontends.get_frontend_by_name("theano")
