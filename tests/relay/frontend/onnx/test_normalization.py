"""Norms and softmax, in the forms of every opset, give what ONNX Runtime or the formula gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, check_like_onnx_runtime, node_model, run

from tilewright.support.errors import ModelError

X = floats(2, 4, 3, 5)
CHANNELS = {"scale": floats(4, seed=1), "bias": floats(4, seed=2)}
MOMENTS = {"mean": floats(4, seed=3), "variance": np.abs(floats(4, seed=4)) + 0.1}


@pytest.mark.parametrize("opset", [9, 14, 15])
def test_batch_norm(opset: int) -> None:
    """With known means and variances."""
    check_like_onnx_runtime("BatchNormalization", {"x": X, **CHANNELS, **MOMENTS}, opset=opset, epsilon=1e-3)


def test_batch_norm_in_training() -> None:
    """The batch's own moments are used, and the running ones follow them."""
    inputs = {"x": X, **CHANNELS, **MOMENTS}
    model = node_model("BatchNormalization", inputs, 3, opset=15, training_mode=1, momentum=0.75)
    mean, variance = X.mean(axis=(0, 2, 3)), X.var(axis=(0, 2, 3))
    along = (slice(None), None, None)
    normal = (X - mean[along]) / np.sqrt(variance[along] + 1e-5)
    expected = [
        normal * CHANNELS["scale"][along] + CHANNELS["bias"][along],
        0.75 * MOMENTS["mean"] + 0.25 * mean,
        0.75 * MOMENTS["variance"] + 0.25 * variance,
    ]
    assert_close(run(model, inputs), expected, rtol=1e-3)


@pytest.mark.parametrize("axis", [-1, 1, 2])
@pytest.mark.parametrize("outputs", [1, 3])
def test_layer_norm(axis: int, outputs: int) -> None:
    """Over the axes from one on, with the mean and the deviation where they are asked for."""
    shape = X.shape[axis:]
    inputs = {"x": X, "scale": floats(*shape, seed=1), "bias": floats(*shape, seed=2)}
    check_like_onnx_runtime("LayerNormalization", inputs, outputs, axis=axis)


def test_layer_norm_without_a_bias() -> None:
    """The bias is optional."""
    check_like_onnx_runtime("LayerNormalization", {"x": X, "scale": floats(5)})


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_root_mean_square(kind: str) -> None:
    """RMSNormalization, low-precision floats by way of float32."""
    inputs = {"x": X.astype(kind), "scale": floats(5).astype(kind)}
    wide = X.astype(kind).astype("float32")
    root = np.sqrt((wide**2).mean(axis=-1, keepdims=True) + 1e-5)
    expected = (wide / root).astype(kind) * inputs["scale"]
    model = node_model("RMSNormalization", inputs, opset=23)
    assert_close(run(model, inputs), [expected], rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_norm(opset: int) -> None:
    """A scale for each group up to opset 20, for each channel after."""
    count = 2 if opset < 21 else 4
    inputs = {"x": X, "scale": floats(count, seed=1), "bias": floats(count, seed=2)}
    model = node_model("GroupNormalization", inputs, opset=opset, num_groups=2)
    split = X.reshape(2, 2, 2, 3, 5)
    axes = (2, 3, 4)
    normal = (split - split.mean(axis=axes, keepdims=True)) / np.sqrt(
        split.var(axis=axes, keepdims=True) + 1e-5
    )
    each = 4 // count
    scale, bias = (np.repeat(inputs[name], each)[:, None, None] for name in ("scale", "bias"))
    assert_close(run(model, inputs), [normal.reshape(X.shape) * scale + bias])


def test_instance_norm() -> None:
    """Each channel of each item."""
    check_like_onnx_runtime("InstanceNormalization", {"x": X, **CHANNELS})


@pytest.mark.parametrize("power", [1, 2])
def test_norms_of_vectors(power: int) -> None:
    """A vector of zeros stays one."""
    data = X.copy()
    data[0, :, 0, 0] = 0
    norm = np.linalg.norm(data, ord=power, axis=1, keepdims=True)
    inputs = {"x": data}
    found = run(node_model("LpNormalization", inputs, p=power, axis=1), inputs)
    assert_close(found, [data / np.where(norm == 0, 1, norm)])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_response(size: int) -> None:
    """Windows of odd and even size, and one larger than there are channels."""
    before, after = (size - 1) // 2, size // 2
    energy = np.stack([(X[:, max(0, c - before) : c + after + 1] ** 2).sum(axis=1) for c in range(4)], axis=1)
    expected = X / (1.5 + 0.1 / size * energy) ** 0.6
    for unknown in (False, True) if size % 2 else (False,):
        model = node_model("LRN", {"x": X}, unknown=unknown, size=size, alpha=0.1, beta=0.6, bias=1.5)
        assert_close(run(model, {"x": X}), [expected])


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax(operator: str, axis: int, opset: int) -> None:
    """Over one axis from opset 13 on; over all from the axis on before."""
    check_like_onnx_runtime(operator, {"x": X}, opset=opset, axis=axis)


def test_an_axis_that_is_not_there() -> None:
    """It is refused, with the node's name."""
    inputs: dict[str, Any] = {"x": X}
    with pytest.raises(ModelError, match=r"node 'out0' \(Softmax\): axis 4 is out of range"):
        run(node_model("Softmax", inputs, axis=4), inputs)
