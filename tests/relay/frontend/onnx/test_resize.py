"""Resizing gives what ONNX Runtime gives, for sizes that are known and for those that only the program knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, check_like_onnx_runtime, node_model, run

from tilewright.relay.frontend.onnx.ops.resize_weights import Sampling, weights
from tilewright.support.errors import ModelError

X = floats(1, 2, 5, 6)
NONE = np.zeros(0, "float32")


def scales(*values: float) -> Any:
    """A vector of scales."""
    return np.array(values, "float32")


def sizes(*values: int) -> Any:
    """A vector of sizes."""
    return np.array(values, "int64")


MODES = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", MODES)
@pytest.mark.parametrize("by", ["scales up", "scales down", "sizes"])
def test_resize(mode: str, coordinates: str, by: str) -> None:
    """By scales that are not those of the sizes, and by sizes."""
    inputs = {"x": X, "roi": NONE}
    if by == "sizes":
        inputs |= {"scales": NONE, "sizes": sizes(1, 2, 7, 4)}
    else:
        inputs |= {"scales": scales(1, 1, 2.3, 1.5) if "up" in by else scales(1, 1, 0.6, 0.8)}
    constants = {name: inputs[name] for name in list(inputs)[1:]}
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    for unknown in (False,) if mode == "cubic" else (False, True):
        model = node_model("Resize", inputs, opset=13, constants=constants, unknown=unknown, **attributes)
        if coordinates == "align_corners":
            # The standard takes the size that the scale says, ONNX Runtime the whole number below it.
            expected = ReferenceEvaluator(model).run(None, {"x": X})
        else:
            expected = reference_runtime.outputs(model, {"x": X})
        assert_close(run(model, {"x": X}), expected, rtol=1e-3)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest(rounding: str) -> None:
    """How a place between two elements is rounded."""
    inputs = {"x": X, "roi": NONE, "scales": scales(1, 1, 2, 0.5)}
    check_like_onnx_runtime(
        "Resize", inputs, opset=13, constants=["roi", "scales"], mode="nearest", nearest_mode=rounding
    )


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_keep_aspect_ratio(policy: str) -> None:
    """One scale for all axes that are named."""
    inputs = {"x": X, "roi": NONE, "scales": NONE, "sizes": sizes(9, 7)}
    model = node_model(
        "Resize",
        inputs,
        opset=18,
        axes=[2, 3],
        mode="linear",
        keep_aspect_ratio_policy=policy,
        constants={name: inputs[name] for name in list(inputs)[1:]},
    )
    factor = (min if policy == "not_larger" else max)(9 / 5, 7 / 6)
    assert run(model, {"x": X})[0].shape == (1, 2, int(5 * factor + 0.5), int(6 * factor + 0.5))


def test_a_region() -> None:
    """tf_crop_and_resize reads a part, and a given value outside the data."""
    inputs = {
        "x": X,
        "roi": np.array([0, 0, 0.2, 0.3, 1, 1, 0.7, 1.4], "float32"),
        "scales": NONE,
        "sizes": sizes(1, 2, 4, 4),
    }
    check_like_onnx_runtime(
        "Resize",
        inputs,
        opset=13,
        constants=["roi", "scales", "sizes"],
        unknown=False,
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.0,
    )


def test_a_size_that_is_computed() -> None:
    """Sizes that are an input: the program resizes to whatever it is given."""
    inputs = {"x": X, "roi": NONE, "scales": NONE, "sizes": sizes(1, 2, 10, 9)}
    model = node_model("Resize", inputs, opset=13, constants={"roi": NONE, "scales": NONE}, mode="linear")
    for height in (3, 10):
        given = {"x": X, "sizes": sizes(1, 2, height, 9)}
        assert run(model, given)[0].shape == (1, 2, height, 9)


@pytest.mark.parametrize("opset", [7, 9])
def test_upsample(opset: int) -> None:
    """The operator of old models, with its scales as an attribute and as an input."""
    if opset == 7:
        check_like_onnx_runtime("Upsample", {"x": X}, opset=7, scales=[1.0, 1.0, 2.0, 3.0])
    else:
        inputs = {"x": X, "scales": scales(1, 1, 2, 3)}
        check_like_onnx_runtime("Upsample", inputs, opset=9, constants=["scales"], mode="linear")


def test_weights_add_up() -> None:
    """Every row of weights makes one, antialiased or not, whatever is left out."""
    for mode in ("linear", "cubic"):
        for antialias in (False, True):
            for exclude in (False, True):
                sampling = Sampling(mode, "half_pixel", antialias=antialias, exclude_outside=exclude)
                matrix, _ = weights(sampling, 9, 4, 4 / 9, (0.0, 1.0))
                np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)


def test_what_is_not_known_is_said() -> None:
    """Modes, scales below zero, and tables that would be too large."""
    for inputs, attributes, complaint in (
        ({"scales": scales(1, 1, 2, 2)}, {"mode": "quintic"}, "the mode 'quintic' is not known"),
        ({"scales": scales(1, 1, -2, 2)}, {}, "scales are positive"),
        ({"scales": scales(1, 1, 2)}, {}, "3 scales are given for 4 axes"),
        ({"scales": NONE}, {}, "neither scales nor sizes"),
        ({"scales": scales(1, 1, 1e9, 1)}, {"mode": "linear", "antialias": 1}, "a table of"),
    ):
        given = {"x": X, "roi": NONE, **inputs}
        with pytest.raises(ModelError, match=complaint):
            run(node_model("Resize", given, opset=18, constants={"roi": NONE, **inputs}, **attributes), given)
