"""Small models in ONNX, for the tests of the command line and of tvmc."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


def write_model(path, batch=2):
    """A dense layer with a ReLU and its softmax: x[batch, 4] gives two outputs of [batch, 3]."""
    generator = np.random.default_rng(7)
    weight = numpy_helper.from_array(generator.standard_normal((4, 3)).astype("float32"), "weight")
    bias = numpy_helper.from_array(generator.standard_normal(3).astype("float32"), "bias")
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["product"], name="multiply"),
        helper.make_node("Add", ["product", "bias"], ["sum"], name="shift"),
        helper.make_node("Relu", ["sum"], ["y"], name="clamp"),
        helper.make_node("Softmax", ["y"], ["p"], name="normalise", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 4])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 3]) for name in ("y", "p")],
        [weight, bias],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return str(path)


def expected_outputs(x):
    """What the model gives, by NumPy."""
    generator = np.random.default_rng(7)
    weight = generator.standard_normal((4, 3)).astype("float32")
    bias = generator.standard_normal(3).astype("float32")
    y = np.maximum(x @ weight + bias, 0)
    powers = np.exp(y - y.max(axis=1, keepdims=True))
    return y, powers / powers.sum(axis=1, keepdims=True)


def write_image_model(path, shape=(1, 3, 4, 6)):
    """A model that gives its image back, times two."""
    two = numpy_helper.from_array(np.float32(2), "two")
    graph = helper.make_graph(
        [helper.make_node("Mul", ["image", "two"], ["y"])],
        "twice",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [two],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return str(path)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder for what tests share."""
    return tmp_path_factory.mktemp("driver")


@pytest.fixture(scope="session")
def small_onnx(folder):
    """The path of a small model."""
    return write_model(folder / "small.onnx")


@pytest.fixture(scope="session")
def open_onnx(folder):
    """The path of a small model that leaves its batch open."""
    return write_model(folder / "open.onnx", "n")


@pytest.fixture(scope="session")
def image_onnx(folder):
    """The path of a model of images."""
    return write_image_model(folder / "image.onnx")


@pytest.fixture(scope="session")
def expected():
    """The small model in NumPy."""
    return expected_outputs


@pytest.fixture(scope="session")
def small_package(small_onnx, folder):
    """The small model compiled, as objects: no linker is needed."""
    from tilewright.driver import tvmc

    path = str(folder / "small.tar")
    return tvmc.compile(tvmc.load(small_onnx), "llvm", package_path=path, output_format="tar").package_path
