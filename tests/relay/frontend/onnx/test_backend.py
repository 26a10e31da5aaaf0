"""The adapter: what ``onnx.backend`` asks of a backend."""

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx.models import node_model

from tilewright.relay.frontend.onnx import backend
from tilewright.support.errors import ModelError, TargetError

DATA = np.asarray([[1.0, -2.0], [3.0, -4.0]], "float32")


def test_prepare_and_run():
    """Inputs by position and by name; a static model is compiled for the graph executor."""
    prepared = backend.prepare(node_model("Abs", {"x": DATA}))
    assert prepared.chosen == "graph"
    for inputs in ([DATA], {"x": DATA}, DATA):
        (found,) = prepared.run(inputs)
        np.testing.assert_array_equal(found, np.abs(DATA))


def test_models_in_files(tmp_path):
    """A path, or the bytes."""
    model = node_model("Abs", {"x": DATA})
    onnx.save(model, tmp_path / "model.onnx")
    for source in (tmp_path / "model.onnx", model.SerializeToString()):
        (found,) = backend.prepare(source, executor="debug").run([DATA])
        np.testing.assert_array_equal(found, np.abs(DATA))


def test_unknown_sizes_run_on_the_machine():
    """One program for all sizes."""
    prepared = backend.prepare(node_model("Abs", {"x": DATA}, unknown=True))
    assert prepared.chosen == "vm"
    for data in (DATA, np.ones((1, 5), "float32") * -3):
        np.testing.assert_array_equal(prepared.run([data])[0], np.abs(data))


def test_run_model_and_node():
    """Without preparing."""
    assert backend.run_model(node_model("Neg", {"x": DATA}), [DATA], executor="debug")[0][0, 0] == -1
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    (found,) = backend.run_node(node, [DATA, DATA], executor="debug", opset_version=14)
    np.testing.assert_array_equal(found, DATA * 2)


def test_values_that_have_to_be_known():
    """An axis that is an input: a program for each that comes."""
    axis = np.asarray(0, "int64")
    prepared = backend.prepare(node_model("CumSum", {"x": DATA, "a": axis}), executor="debug")
    for number in (0, 1):
        np.testing.assert_array_equal(prepared.run([DATA, axis + number])[0], DATA.cumsum(number))
    assert len(prepared._programs) == 2


def test_devices_and_mistakes():
    """The CPU alone; numbers of inputs and names of executors are checked."""
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA:0")
    model = node_model("Abs", {"x": DATA})
    with pytest.raises(TargetError, match="not on CUDA"):
        backend.prepare(model, "CUDA")
    with pytest.raises(ModelError, match="executors are"):
        backend.prepare(model, executor="fast")
    prepared = backend.prepare(model, executor="debug")
    with pytest.raises(ModelError, match="has 1 inputs, 2 were given"):
        prepared.run([DATA, DATA])
    with pytest.raises(ModelError, match="no value for the inputs x"):
        prepared.run({})
