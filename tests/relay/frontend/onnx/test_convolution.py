"""Convolutions give what ONNX Runtime gives, whether the sizes of the data are known or not."""

from __future__ import annotations

from typing import Any

import pytest
from onnx.reference import ReferenceEvaluator
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, check_like_onnx_runtime, node_model, run

from tilewright.support.errors import ModelError

CONVOLUTIONS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "1-D, dilated": (floats(2, 3, 11), floats(4, 3, 3), {"dilations": [2], "pads": [1, 2]}),
    "2-D, uneven padding": (
        floats(1, 3, 7, 8),
        floats(4, 3, 3, 2),
        {"pads": [0, 1, 2, 1], "strides": [2, 1]},
    ),
    "3-D": (floats(1, 2, 5, 6, 4), floats(3, 2, 2, 3, 2), {}),
    "groups": (floats(1, 4, 6, 6), floats(6, 2, 3, 3), {"group": 2}),
    "depthwise with a multiplier": (floats(1, 3, 6, 6), floats(6, 1, 3, 3), {"group": 3}),
    "same, upper": (floats(1, 2, 7, 9), floats(3, 2, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    "same, lower": (floats(1, 2, 7, 9), floats(3, 2, 4, 3), {"auto_pad": "SAME_LOWER", "strides": [3, 2]}),
    "valid": (floats(1, 2, 7, 9), floats(3, 2, 4, 3), {"auto_pad": "VALID"}),
}


@pytest.mark.parametrize("name", list(CONVOLUTIONS))
def test_conv(name: str) -> None:
    """With a bias."""
    data, weight, attributes = CONVOLUTIONS[name]
    inputs = {"x": data, "w": weight, "b": floats(weight.shape[0])}
    check_like_onnx_runtime("Conv", inputs, constants=["w", "b"], **attributes)


TRANSPOSED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "1-D": (floats(1, 2, 5), floats(2, 3, 3), {"strides": [2], "output_padding": [1]}),
    "2-D, groups": (
        floats(1, 4, 4, 5),
        floats(4, 2, 3, 3),
        {"group": 2, "strides": [2, 2], "pads": [1, 0, 0, 1]},
    ),
    "3-D, dilated": (floats(1, 2, 3, 3, 3), floats(2, 2, 2, 2, 2), {"dilations": [2, 1, 2]}),
}


@pytest.mark.parametrize("name", list(TRANSPOSED))
def test_conv_transpose(name: str) -> None:
    """With strides, groups, dilations and what is added at the end."""
    data, weight, attributes = TRANSPOSED[name]
    check_like_onnx_runtime("ConvTranspose", {"x": data, "w": weight}, constants=["w"], **attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"output_shape": [10, 8], "strides": [3, 2]},
        {"output_shape": [9, 7], "strides": [3, 2], "auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    ],
)
def test_conv_transpose_to_a_size(attributes: dict[str, Any]) -> None:
    """The padding follows from the size that is asked for."""
    inputs = {"x": floats(1, 2, 3, 3), "w": floats(2, 2, 3, 3)}
    check_like_onnx_runtime("ConvTranspose", inputs, constants=["w"], unknown=False, **attributes)


@pytest.mark.parametrize("masked", [False, True])
def test_deformable(masked: bool) -> None:
    """Taps moved to between pixels and beyond the image, in groups, with a mask and without."""
    inputs = {
        "x": floats(1, 4, 5, 5),
        "w": floats(4, 2, 3, 3),
        "offset": floats(1, 2 * 18, 5, 5, seed=1),
        "b": floats(4),
    }
    if masked:
        inputs["mask"] = floats(1, 2 * 9, 5, 5, seed=2)
    model = node_model("DeformConv", inputs, opset=19, offset_group=2, group=2, pads=[1, 1, 1, 1])
    assert_close(run(model, inputs), ReferenceEvaluator(model).run(None, inputs))


def test_what_does_not_fit_is_said() -> None:
    """Ranks, numbers of attributes and strides of zero."""
    data, weight = floats(1, 3, 7, 8), floats(4, 3, 3, 3)
    for inputs, attributes, complaint in (
        ({"x": floats(1, 3), "w": weight}, {}, "2 dimensions are not supported"),
        ({"x": data, "w": floats(4, 3, 3)}, {}, "the weight has 3 dimensions"),
        ({"x": data, "w": weight}, {"strides": [1]}, "strides has 1 values for 2 axes"),
        ({"x": data, "w": weight}, {"strides": [0, 1]}, "at least 1"),
        ({"x": data, "w": weight}, {"auto_pad": "SOME"}, "auto_pad 'SOME' is not known"),
    ):
        with pytest.raises(ModelError, match=complaint):
            run(node_model("Conv", inputs, **attributes), inputs)
