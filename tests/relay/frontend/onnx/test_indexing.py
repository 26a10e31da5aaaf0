"""Gathering, scattering and ordering."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import node_model, run

from tilewright.relay.frontend import from_onnx
from tilewright.support.errors import ModelError

RANDOM = np.random.default_rng(3)
DATA = RANDOM.normal(size=(4, 3, 5)).astype("float32")


def _reference(model, inputs):
    return ReferenceEvaluator(model).run(None, dict(inputs))


@pytest.mark.parametrize("unknown", [False, True])
def test_gather_counts_from_the_back(unknown):
    """Negative indices on an axis whose size may not be known."""
    inputs = {"x": DATA, "i": np.asarray([[0, -1], [2, -3]], "int64")}
    (found,) = run(node_model("Gather", inputs, unknown=unknown, axis=1), inputs)
    np.testing.assert_array_equal(found, np.take(DATA, inputs["i"], 1))


def test_gather_nd_with_batches():
    """Leading dimensions that go together."""
    places = np.asarray([[1], [0], [2], [-1]], "int64")
    inputs = {"x": DATA, "i": places}
    model = node_model("GatherND", inputs, batch_dims=1)
    np.testing.assert_array_equal(run(model, inputs)[0], _reference(model, inputs)[0])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction):
    """Every reduction, by elements and by slices; a place that is named twice counts twice."""
    places = np.asarray([[[1] * 5], [[3] * 5], [[1] * 5]], "int64").reshape(3, 1, 5)
    updates = RANDOM.normal(size=(3, 1, 5)).astype("float32")
    inputs = {"x": DATA, "i": places, "u": updates}
    model = node_model("ScatterElements", inputs, axis=0, reduction=reduction)
    np.testing.assert_allclose(run(model, inputs)[0], _reference(model, inputs)[0], rtol=1e-6)
    rows = np.asarray([[2], [0], [2]], "int64")
    inputs = {"x": DATA, "i": rows, "u": RANDOM.normal(size=(3, 3, 5)).astype("float32")}
    model = node_model("ScatterND", inputs, reduction=reduction)
    np.testing.assert_allclose(run(model, inputs)[0], _reference(model, inputs)[0], rtol=1e-6)


def test_scatter_compiled():
    """The reductions of compiled code."""
    for reduction in ("mul", "max"):
        inputs = {
            "x": DATA,
            "i": np.asarray([[2], [0], [2]], "int64"),
            "u": RANDOM.normal(size=(3, 3, 5)).astype("float32"),
        }
        model = node_model("ScatterND", inputs, reduction=reduction)
        np.testing.assert_allclose(run(model, inputs, None)[0], _reference(model, inputs)[0], rtol=1e-6)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter(mode):
    """Each member of a batch has its own place in the cache."""
    first = [1, 3] if mode == "circular" else [1, 0]
    inputs = {
        "past": np.zeros((2, 4, 3), "float32"),
        "update": np.arange(12, dtype="float32").reshape(2, 2, 3) + 1,
        "at": np.asarray(first, "int64"),
    }
    expected = inputs["past"].copy()
    for batch in range(2):
        for step in range(2):
            expected[batch, (first[batch] + step) % 4] = inputs["update"][batch, step]
    (found,) = run(node_model("TensorScatter", inputs, opset=24, mode=mode), inputs)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("ordered", [0, 1])
def test_unique(axis, ordered):
    """Of elements and of slices, in ascending order or in that of appearance."""
    data = np.asarray([[2, 1, 1], [0, 0, 0], [2, 1, 1], [0, 0, 1]], "float32")
    settings = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    model = node_model("Unique", {"x": data}, 4, **settings)
    for place, info in enumerate(model.graph.output):
        info.type.tensor_type.elem_type = 7 if place else 1
    expected = reference_runtime.outputs(model, {"x": data})
    for value, wanted in zip(run(model, {"x": data}), expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_top_k():
    """The greatest and the least, of a number that may be computed or zero."""
    inputs = {"x": DATA, "k": np.asarray([2], "int64")}
    for largest in (0, 1):
        values, places = run(node_model("TopK", inputs, 2, axis=1, largest=largest), inputs)
        order = np.argsort(-DATA if largest else DATA, 1, kind="stable")[:, :2]
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(DATA, order, 1))
    none = np.asarray([0], "int64")
    values, places = run(node_model("TopK", inputs, 2, constants={"k": none}), inputs)
    assert values.shape == places.shape == (4, 3, 0)


@pytest.mark.parametrize("settings", [{}, {"reverse": 1}, {"exclusive": 1}, {"reverse": 1, "exclusive": 1}])
def test_running_sums(settings):
    """From either end, with and without the element itself. The axis is an input that is asked for when it is there."""
    inputs = {"x": DATA, "a": np.asarray(-1, "int32")}
    model = node_model("CumSum", inputs, **settings)
    np.testing.assert_allclose(run(model, inputs)[0], _reference(model, inputs)[0], rtol=1e-5, atol=1e-6)


def test_determinants():
    """Of a batch, a singular one included."""
    data = RANDOM.normal(size=(2, 3, 4, 4)).astype("float32")
    data[0, 1, 2] = data[0, 1, 0]
    (found,) = run(node_model("Det", {"x": data}, opset=22), {"x": data})
    np.testing.assert_allclose(found, np.linalg.det(data), rtol=1e-3, atol=1e-5)


def test_one_hot_out_of_range():
    """Negative indices count from the back, those beyond are off."""
    inputs = {
        "i": np.asarray([0, -1, 7], "int64"),
        "d": np.asarray(3, "int64"),
        "v": np.asarray([2, 5], "float32"),
    }
    (found,) = run(node_model("OneHot", inputs, constants={"d": inputs["d"]}), inputs)
    np.testing.assert_array_equal(found, [[5, 2, 2], [2, 2, 5], [2, 2, 2]])


def test_space_to_depth_and_back():
    """Both orders of a block's places among the channels are undone by their counterparts."""
    data = RANDOM.normal(size=(1, 2, 4, 6)).astype("float32")
    for mode in ("DCR", "CRD"):
        (deep,) = run(node_model("SpaceToDepth", {"x": data}, opset=28, blocksize=2, mode=mode), {"x": data})
        (back,) = run(node_model("DepthToSpace", {"x": deep}, blocksize=2, mode=mode), {"x": deep})
        np.testing.assert_array_equal(back, data)


def test_errors():
    """Indices that can not be, and a reduction that is none."""
    inputs = {"x": DATA, "i": np.zeros((1, 3, 5), "int64"), "u": np.zeros((1, 3, 5), "float32")}
    with pytest.raises(ModelError, match="reduction is one of"):
        from_onnx(node_model("ScatterElements", inputs, reduction="mean"))
    with pytest.raises(ModelError, match="axis 3 is out of range"):
        from_onnx(node_model("Gather", {"x": DATA, "i": np.zeros(1, "int64")}, axis=3))
