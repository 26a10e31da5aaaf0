"""Quantised operators of the default domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import assert_close, node_model, run

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.support.errors import ModelError

RANDOM = np.random.default_rng(0)


def unsigned(*shape: int) -> Any:
    """Random bytes."""
    return RANDOM.integers(0, 256, shape).astype("uint8")


def signed(*shape: int) -> Any:
    """Random signed bytes."""
    return RANDOM.integers(-128, 128, shape).astype("int8")


def scales(*shape: int) -> Any:
    """Random scales."""
    return (RANDOM.random(shape) * 0.05 + 0.01).astype("float32")


CASES: list[tuple[str, dict[str, Any], int, dict[str, Any]]] = [
    (
        "QLinearConv",
        {
            "x": unsigned(1, 3, 8, 8),
            "xs": scales(),
            "xz": np.uint8(120),
            "w": signed(4, 3, 3, 3),
            "ws": scales(4),
            "wz": np.zeros(4, "int8"),
            "ys": np.float32(0.5),
            "yz": np.uint8(100),
            "b": RANDOM.integers(-1000, 1000, 4).astype("int32"),
        },
        1,
        {"pads": [1, 1, 1, 1], "strides": [2, 2]},
    ),
    (
        "QLinearConv",
        {
            "x": unsigned(1, 4, 8, 8),
            "xs": scales(),
            "xz": np.uint8(120),
            "w": signed(4, 1, 3, 3),
            "ws": scales(),
            "wz": np.int8(0),
            "ys": np.float32(0.1),
            "yz": np.uint8(100),
        },
        1,
        {"group": 4, "auto_pad": "SAME_UPPER"},
    ),
    (
        "ConvInteger",
        {"x": unsigned(1, 3, 8, 8), "w": unsigned(4, 3, 3, 3), "xz": np.uint8(12), "wz": np.uint8(5)},
        1,
        {"pads": [1, 0, 1, 0]},
    ),
    (
        "MatMulInteger",
        {"a": unsigned(2, 5, 3), "b": signed(3, 4), "az": np.uint8(12), "bz": signed(4)},
        1,
        {},
    ),
    (
        "QLinearMatMul",
        {
            "a": unsigned(5, 3),
            "as": scales(),
            "az": np.uint8(12),
            "b": signed(3, 4),
            "bs": scales(4),
            "bz": signed(4),
            "ys": np.float32(0.3),
            "yz": np.uint8(100),
        },
        1,
        {},
    ),
    ("DynamicQuantizeLinear", {"x": RANDOM.standard_normal((5, 3)).astype("float32")}, 3, {}),
]


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "attributes"), CASES, ids=[case[0] for case in CASES]
)
def test_products_are_those_of_onnx_runtime(
    operator: str, inputs: dict[str, Any], outputs: int, attributes: dict[str, Any]
) -> None:
    """Zero points of tensors, rows, columns and channels; padding stands for zero."""
    weights = {name: value for name, value in inputs.items() if name in ("w", "ws", "wz")}
    model = node_model(operator, inputs, outputs, opset=13, constants=weights, **attributes)
    given = {name: value for name, value in inputs.items() if name not in weights}
    assert_close(run(model, given), reference_runtime.outputs(model, given), rtol=1e-6, atol=1e-6)


def test_scales_of_tensors_axes_and_blocks() -> None:
    """One scale for all, for each index of an axis, for each block along an axis; the last block may be short."""
    data = RANDOM.integers(0, 256, (2, 5)).astype("uint8")
    wide = data.astype("float32")
    per_axis, per_block = scales(2), scales(2, 3)
    for scale, block, expected in (
        (scales(1), 0, None),
        (per_axis, 0, wide * per_axis[:, None]),
        (per_block, 2, wide * np.repeat(per_block, 2, axis=1)[:, :5]),
    ):
        inputs = {"x": data, "scale": scale}
        axis = 1 if block else 0
        model = node_model("DequantizeLinear", inputs, opset=21, axis=axis, block_size=block)
        assert_close(run(model, inputs), [wide * scale if expected is None else expected])


def test_there_and_back_is_half_a_step_away() -> None:
    """Quantised and dequantised, a number within the range is off by no more than half a scale."""
    data = RANDOM.uniform(-1, 1, (4, 6)).astype("float32")
    inputs = {"x": data, "scale": np.float32(2 / 255), "zero": np.uint8(128)}
    whole = run(node_model("QuantizeLinear", inputs), inputs)[0]
    assert whole.dtype == np.uint8
    back = {"x": whole, "scale": inputs["scale"], "zero": inputs["zero"]}
    found = run(node_model("DequantizeLinear", back), back)[0]
    assert np.abs(found - data).max() <= 1 / 255 + 1e-6


def test_what_is_too_large_saturates() -> None:
    """Far beyond the range of the type, and infinite."""
    given = np.asarray([1e20, -1e20, np.inf, 127.5, 126.5], "float32")
    inputs = {"x": given, "scale": np.float32(1), "zero": np.int8(0)}
    found = run(node_model("QuantizeLinear", inputs), inputs)[0]
    np.testing.assert_array_equal(found, [127, -128, 127, 127, 126])


def test_unknown_batch() -> None:
    """Quantisation per channel needs no known size."""
    inputs = {
        "x": RANDOM.standard_normal((2, 3, 4)).astype("float32"),
        "scale": scales(3),
        "zero": np.zeros(3, "uint8"),
    }
    constants = {"scale": inputs["scale"], "zero": inputs["zero"]}
    found = run(node_model("QuantizeLinear", inputs, constants=constants, unknown=True, axis=1), inputs)
    assert_close(found, run(node_model("QuantizeLinear", inputs, axis=1), inputs))


def test_a_scale_that_does_not_fit_is_an_error() -> None:
    """A scale of two dimensions without blocks names the dimensions."""
    inputs = {"x": np.zeros((2, 3, 4), "uint8"), "scale": scales(2, 3)}
    with pytest.raises(ModelError, match="a scale of 2 dimensions does not fit"):
        from_onnx(node_model("DequantizeLinear", inputs))
