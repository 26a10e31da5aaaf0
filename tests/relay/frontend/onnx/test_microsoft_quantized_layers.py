"""Quantised layers that ONNX Runtime's quantiser writes give what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import assert_close, node_model, run

RANDOM = np.random.default_rng(1)
BATCH, STEPS, HEADS, SIZE = 2, 3, 2, 4
WIDTH = HEADS * SIZE


def unsigned(*shape: int) -> Any:
    """Random bytes."""
    return RANDOM.integers(0, 256, shape).astype("uint8")


def signed(*shape: int) -> Any:
    """Random signed bytes."""
    return RANDOM.integers(-128, 128, shape).astype("int8")


def floats(*shape: int) -> Any:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype("float32")


def both(operator: str, inputs: dict[str, Any], outputs: int = 1, **attributes: Any) -> tuple[Any, Any]:
    """What Tilewright and ONNX Runtime make of a node."""
    model = node_model(operator, inputs, outputs, domain="com.microsoft", **attributes)
    given = {name: value for name, value in inputs.items() if value is not None}
    return run(model, given), reference_runtime.outputs(model, given)


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize(
    ("mask", "past", "attributes"),
    [
        (None, False, {}),
        (np.array([[1, 1, 0], [1, 1, 1]], "int32"), False, {}),
        (None, True, {"unidirectional": 1}),
    ],
    ids=["plain", "mask", "past"],
)
def test_attention(per_column: bool, mask: Any, past: bool, attributes: dict[str, Any]) -> None:
    """The projection is of integers, the attention of numbers."""
    columns = 3 * WIDTH
    inputs = {
        "data": unsigned(BATCH, STEPS, WIDTH),
        "weights": signed(WIDTH, columns),
        "bias": floats(columns),
        "xs": np.float32(0.01),
        "ws": floats(columns) ** 2 * np.float32(0.001) + np.float32(0.001)
        if per_column
        else np.float32(0.01),
        "mask": mask,
        "xz": np.uint8(120),
        "wz": np.zeros(columns, "int8") if per_column else np.int8(3),
        "past": floats(2, BATCH, HEADS, 2, SIZE) if past else None,
    }
    if not past:
        inputs.popitem()
    assert_close(*both("QAttention", inputs, 2 if past else 1, num_heads=HEADS, **attributes))


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("per_column", [False, True])
def test_lstm(direction: str, per_column: bool) -> None:
    """ONNX Runtime quantises inputs and states too, which makes its results differ by that much."""
    hidden, features, directions = 5, 6, 2 if direction == "bidirectional" else 1
    shape = (directions, 4 * hidden) if per_column else (directions,)
    scale = np.full(shape, 0.004, "float32") * RANDOM.uniform(0.5, 1.0, shape).astype("float32")
    inputs = {
        "data": floats(STEPS, BATCH, features),
        "w": signed(directions, features, 4 * hidden),
        "r": signed(directions, hidden, 4 * hidden),
        "b": floats(directions, 8 * hidden),
        "lengths": None,
        "h": floats(directions, BATCH, hidden),
        "c": floats(directions, BATCH, hidden),
        "p": None,
        "ws": scale,
        "wz": np.zeros(shape, "int8"),
        "rs": scale,
        "rz": np.zeros(shape, "int8"),
    }
    found, expected = both("DynamicQuantizeLSTM", inputs, 3, hidden_size=hidden, direction=direction)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=0.03)


def test_embeddings() -> None:
    """Tables, scale and shift are bytes."""
    inputs = {
        "words": RANDOM.integers(0, 10, (BATCH, STEPS)).astype("int32"),
        "segments": RANDOM.integers(0, 2, (BATCH, STEPS)).astype("int32"),
        "word_table": unsigned(10, 8),
        "position_table": unsigned(6, 8),
        "segment_table": unsigned(2, 8),
        "gamma": unsigned(8),
        "beta": unsigned(8),
        "mask": np.array([[1, 1, 0], [1, 0, 0]], "int32"),
    }
    inputs |= {f"scale{number}": np.float32(0.01 * (number + 1)) for number in range(5)}
    inputs |= {f"zero{number}": np.uint8(100 + number) for number in range(5)}
    assert_close(*both("QEmbedLayerNormalization", inputs, 2))


@pytest.mark.parametrize("make", [unsigned, signed])
def test_max_pool(make: Any) -> None:
    """Channels are last."""
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    assert_close(*both("NhwcMaxPool", {"x": make(2, 7, 8, 5)}, **attributes))


@pytest.mark.parametrize("shape", [(), (3, 1)])
def test_where(shape: tuple[int, ...]) -> None:
    """Both sides get the scale of the result."""
    inputs = {
        "condition": RANDOM.integers(0, 2, (3, 4)).astype(bool),
        "x": unsigned(3, 4),
        "xs": np.float32(0.02),
        "xz": np.uint8(100),
        "y": unsigned(*shape),
        "ys": np.float32(0.03),
        "yz": np.uint8(90),
        "zs": np.float32(0.04),
        "zz": np.uint8(110),
    }
    found, expected = both("QLinearWhere", inputs)
    np.testing.assert_allclose(found[0].astype(int), expected[0].astype(int), atol=1)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_reduce_mean(keepdims: int) -> None:
    """ONNX Runtime has no kernel for it on the processor; NumPy has the numbers."""
    data = unsigned(2, 3, 4)
    inputs = {
        "x": data,
        "xs": np.float32(0.1),
        "xz": np.uint8(120),
        "ys": np.float32(0.05),
        "yz": np.uint8(10),
    }
    model = node_model("QLinearReduceMean", inputs, 1, domain="com.microsoft", axes=[1, 2], keepdims=keepdims)
    mean = ((data.astype("float32") - 120) * np.float32(0.1)).mean((1, 2), keepdims=bool(keepdims))
    expected = np.clip(np.round(mean / np.float32(0.05)) + 10, 0, 255)
    np.testing.assert_allclose(run(model, inputs)[0].astype(int), expected, atol=1)
