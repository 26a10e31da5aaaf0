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
    for unknown in (False, True):
        model = node_model("Resize", inputs, opset=13, constants=constants, unknown=unknown, **attributes)
        if coordinates == "align_corners" and mode != "nearest":
            # The standard takes the size that the scale says, ONNX Runtime the whole number below it.
            expected = ReferenceEvaluator(model).run(None, {"x": X})
        else:
            expected = reference_runtime.outputs(model, {"x": X})
        assert_close(run(model, {"x": X}), expected, rtol=1e-3)


ALL_COORDINATES = [*MODES, "half_pixel_symmetric", "tf_crop_and_resize"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def nearest_model(
    data: Any, coordinates: str, rounding: str, unknown: bool, region: Any = NONE, **given: Any
) -> Any:
    """A signal resized to its nearest elements."""
    inputs = {"x": data, "roi": region, "scales": NONE, **given}
    return node_model(
        "Resize",
        inputs,
        opset=19 if coordinates == "half_pixel_symmetric" else 13,
        constants={name: inputs[name] for name in list(inputs)[1:]},
        unknown=unknown,
        mode="nearest",
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
        extrapolation_value=-1.0,
    )


@pytest.mark.parametrize("unknown", [False, True])
def test_nearest_of_a_scale_that_float32_rounds(unknown: bool) -> None:
    """0.6 in float32 is a little more: the quotients are rounded as they are in ONNX Runtime and in PyTorch."""
    data = np.arange(13, dtype="float32").reshape(1, 1, 13)
    model = nearest_model(data, "asymmetric", "floor", unknown, scales=scales(1, 1, 0.6))
    (chosen,) = run(model, {"x": data})
    assert chosen.reshape(-1).tolist() == [0, 1, 3, 5, 6, 8, 10]


@pytest.mark.parametrize("coordinates", ALL_COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nearest_of_random_scales_and_sizes(coordinates: str, rounding: str) -> None:
    """Every element is the one that ONNX Runtime takes, by scales, which are used as given, and by sizes."""
    random = np.random.default_rng(ALL_COORDINATES.index(coordinates) * 4 + ROUNDINGS.index(rounding))
    factors = [0.1, 0.3, 0.45, 0.55, 0.6, 2 / 3, 0.7, 0.9, 1.1, 1.3, 1.7, 2.4, 2.5, 3.3]
    for number in range(12):
        extent = int(random.integers(3, 60))
        data = np.arange(extent, dtype="float32").reshape(1, 1, extent)
        region = NONE
        if coordinates == "tf_crop_and_resize":
            region = np.array([0, 0, random.uniform(-0.2, 0.4), 1, 1, random.uniform(0.6, 1.2)], "float32")
        factor = random.choice(factors) if number % 4 else random.uniform(0.2, 4)
        target = int(np.float32(extent) * np.float32(factor))
        # ONNX Runtime copies data whose size does not change, whatever the scale says.
        if target in (0, extent):
            continue
        given = {"scales": scales(1, 1, factor)} if number % 2 else {"sizes": sizes(1, 1, target)}
        for unknown in (False, True) if coordinates in MODES else (False,):
            model = nearest_model(data, coordinates, rounding, unknown, region, **given)
            expected = reference_runtime.outputs(model, {"x": data})
            np.testing.assert_array_equal(
                run(model, {"x": data})[0], expected[0], err_msg=f"{extent} {given}"
            )


@pytest.mark.parametrize("factor", [0.6, 0.7, 1.7, 2.0])
def test_nearest_before_opset_11(factor: float) -> None:
    """An image that shrinks takes the next element, one that grows the one before."""
    data = np.arange(23, dtype="float32").reshape(1, 1, 23)
    inputs = {"x": data, "scales": scales(1, 1, factor)}
    model = node_model("Resize", inputs, opset=10, constants={"scales": inputs["scales"]}, mode="nearest")
    expected = reference_runtime.outputs(model, {"x": data})
    np.testing.assert_array_equal(run(model, {"x": data})[0], expected[0])


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


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_a_computed_size_without_what_is_outside(mode: str) -> None:
    """Neighbours beyond the edge do not count, whether sizes are known or not."""
    inputs = {"x": X, "roi": NONE, "scales": NONE, "sizes": sizes(1, 2, 10, 3)}
    attributes = {"mode": mode, "exclude_outside": 1}
    known, computed = (
        node_model(
            "Resize", inputs, opset=13, constants={name: inputs[name] for name in constants}, **attributes
        )
        for constants in (["roi", "scales", "sizes"], ["roi", "scales"])
    )
    given = {"x": X, "sizes": inputs["sizes"]}
    assert_close(run(computed, given), run(known, {"x": X}), rtol=1e-5)


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
