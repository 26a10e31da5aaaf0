"""Slices, padding and joining, of known and of computed bounds."""

import numpy as np
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import node_model, run

from tilewright.relay.frontend import from_onnx
from tilewright.support.errors import ModelError

DATA = np.arange(60, dtype="float32").reshape(3, 4, 5)


def _ints(*values):
    return np.asarray(values, "int64")


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "expected"),
    [
        ([1], [3], [1], [1], DATA[:, 1:3]),
        ([-2], [2**62], [-1], [1], DATA[..., -2:]),
        ([3], [-(2**62)], [1], [-2], DATA[:, 3::-2]),
        ([0, 1], [2, -1], [0, 2], [1, 2], DATA[:2, :, 1:-1:2]),
    ],
)
@pytest.mark.parametrize(
    "known", [(), ("a", "t"), ("s", "e", "a", "t")], ids=["computed", "bounds", "constant"]
)
def test_slice(starts, ends, axes, steps, expected, known):
    """Python's slices; everything, or the bounds alone, may be computed."""
    inputs = {"x": DATA, "s": _ints(*starts), "e": _ints(*ends), "a": _ints(*axes), "t": _ints(*steps)}
    constants = {name: inputs[name] for name in known}
    (found,) = run(node_model("Slice", inputs, constants=constants), inputs)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("known", [True, False], ids=["constant", "computed"])
def test_pad(mode, known):
    """NumPy's padding in all modes."""
    data, widths = DATA[0], [(1, 2), (0, 3)]
    pads = _ints(1, 0, 2, 3)
    inputs = {"x": data, "p": pads}
    model = node_model("Pad", inputs, constants={"p": pads} if known else None, mode=mode)
    (found,) = run(model, inputs)
    np.testing.assert_array_equal(found, np.pad(data, widths, mode=mode))


def test_pad_some_axes_by_a_value_and_less():
    """Axes are named, the value is given, and a negative width takes away."""
    inputs = {
        "x": DATA[0],
        "p": _ints(-1, 2),
        "v": np.asarray(7, "float32"),
        "a": _ints(-1),
    }
    expected = np.pad(DATA[0][:, 1:], [(0, 0), (0, 2)], constant_values=7)
    for known in ((), ("p", "a")):
        model = node_model("Pad", inputs, constants={name: inputs[name] for name in known})
        np.testing.assert_array_equal(run(model, inputs)[0], expected)


def test_reflections_of_reflections():
    """A mirror image wider than the data is mirrored again."""
    inputs = {"x": np.arange(3, dtype="float32"), "p": _ints(4, 5)}
    (found,) = run(node_model("Pad", inputs, constants={"p": inputs["p"]}, mode="reflect"), inputs)
    np.testing.assert_array_equal(found, np.pad(inputs["x"], (4, 5), mode="reflect"))


@pytest.mark.parametrize("unknown", [False, True])
def test_split(unknown):
    """By sizes, known or computed; in parts of which the last is smaller."""
    sizes = _ints(1, 3)
    inputs = {"x": DATA, "s": sizes}
    for constants in (None, {"s": sizes}):
        found = run(node_model("Split", inputs, 2, constants=constants, unknown=unknown, axis=1), inputs)
        for part, wanted in zip(found, np.split(DATA, [1], 1), strict=True):
            np.testing.assert_array_equal(part, wanted)
    found = run(node_model("Split", {"x": DATA}, 3, unknown=unknown, axis=2, num_outputs=3), {"x": DATA})
    for part, wanted in zip(found, np.split(DATA, [2, 4], 2), strict=True):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_trilu(upper, k):
    """Triangles of a batch of matrices."""
    inputs = {"x": DATA, "k": np.asarray(k, "int64")}
    (found,) = run(node_model("Trilu", inputs, unknown=True, upper=upper), inputs)
    np.testing.assert_array_equal(found, (np.triu if upper else np.tril)(DATA, k))


@pytest.mark.parametrize("known", [True, False])
def test_center_crop_pad(known):
    """Too long and too short axes at once; as ONNX Runtime does it."""
    inputs = {"x": DATA, "s": _ints(5, 2, 5)}
    model = node_model("CenterCropPad", inputs, constants={"s": inputs["s"]} if known else None)
    (found,) = run(model, inputs)
    given = {info.name: inputs[info.name] for info in model.graph.input}
    model.graph.output[0].type.tensor_type.elem_type = 1
    np.testing.assert_array_equal(found, reference_runtime.outputs(model, given)[0])


def test_wrong_parts():
    """Sizes that do not make up the axis, and a step of zero."""
    with pytest.raises(ModelError, match="do not make up"):
        from_onnx(node_model("Split", {"x": DATA, "s": _ints(1, 1)}, 2, constants={"s": _ints(1, 1)}, axis=1))
    inputs = {"x": DATA, "s": _ints(0), "e": _ints(1), "a": _ints(0), "t": _ints(0)}
    with pytest.raises(ModelError, match="step is zero"):
        from_onnx(node_model("Slice", inputs, constants={name: inputs[name] for name in "seat"}))
