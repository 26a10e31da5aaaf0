"""Operators that ONNX Runtime's optimisers put in place of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import assert_close, node_model, run

RANDOM = np.random.default_rng(2)


def floats(*shape: int) -> Any:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype("float32")


IN_ONNX_RUNTIME: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "TransposeMatMul",
        {"a": floats(2, 4, 3), "b": floats(2, 5, 4)},
        {"transA": 1, "transB": 1, "alpha": 0.5},
    ),
    ("CDist", {"a": floats(4, 3), "b": floats(5, 3)}, {"metric": "euclidean"}),
    ("CDist", {"a": floats(4, 3), "b": floats(5, 3)}, {"metric": "sqeuclidean"}),
    ("ExpandDims", {"x": floats(2, 3), "axis": np.int32(1)}, {}),
    ("Trilu", {"x": floats(4, 5), "k": np.int64(1)}, {"upper": 1}),
    ("Range", {"start": np.int64(2), "limit": np.int64(11), "delta": np.int64(3)}, {}),
    ("GatherND", {"x": floats(3, 4, 2), "i": np.array([[0, 1], [2, 3]], "int64")}, {}),
    ("Pad", {"x": floats(2, 3), "pads": np.array([0, 1, 2, 0], "int64"), "v": np.float32(4)}, {}),
    ("GridSample", {"x": floats(1, 2, 5, 6), "g": np.tanh(floats(1, 3, 4, 2))}, {"align_corners": 1}),
]


@pytest.mark.parametrize(("operator", "inputs", "attributes"), IN_ONNX_RUNTIME)
def test_operators_that_onnx_runtime_has_for_processors(
    operator: str, inputs: dict[str, Any], attributes: dict[str, Any]
) -> None:
    """What an input must be known for becomes a constant of the model."""
    model = node_model(operator, inputs, domain="com.microsoft", **attributes)
    assert_close(run(model, inputs), reference_runtime.outputs(model, inputs))


def test_a_layer_norm_in_an_old_opset() -> None:
    """ONNX Runtime's optimiser writes it where ONNX does not have it yet."""
    inputs = {"x": floats(2, 3, 8), "g": floats(8), "b": floats(8)}
    model = node_model("LayerNormalization", inputs, opset=13, axis=-1, epsilon=1e-5)
    assert_close(run(model, inputs), reference_runtime.outputs(model, inputs))


def silu(x: Any) -> Any:
    """The logistic function times its argument."""
    return x * special.expit(x)


def group_norm(x: Any, groups: int) -> Any:
    """Of data whose channels are last."""
    apart = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups).astype("float64")
    mean, variance = apart.mean((1, 3), keepdims=True), apart.var((1, 3), keepdims=True)
    return ((apart - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)


def fast_gelu(x: Any) -> Any:
    """By tanh."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu(x: Any) -> Any:
    """Exact."""
    return 0.5 * x * (1 + special.erf(x / np.sqrt(2)))


IMAGE, SCALE, SHIFT = floats(2, 3, 4, 6), floats(6), floats(6)

BY_NUMPY: list[tuple[str, dict[str, Any], dict[str, Any], Callable[..., Any]]] = [
    (
        "BiasSoftmax",
        {"x": floats(2, 3, 4, 4), "b": floats(2, 1, 1, 4)},
        {"axis": 3, "is_inner_broadcast": 0},
        lambda x, b: special.softmax(x + b, -1),
    ),
    (
        "BiasSoftmax",
        {"x": floats(2, 3, 4), "b": floats(3, 4)},
        {"axis": 1, "is_inner_broadcast": 0},
        lambda x, b: special.softmax(x + b, (1, 2)),
    ),
    (
        "BiasSplitGelu",
        {"x": floats(2, 3, 8), "b": floats(8)},
        {},
        lambda x, b: (x + b)[..., :4] * gelu((x + b)[..., 4:]),
    ),
    ("BiasAdd", {"x": floats(2, 3, 8), "b": floats(8), "s": floats(2, 3, 8)}, {}, lambda x, b, s: x + b + s),
    (
        "GemmFastGelu",
        {"x": floats(2, 3, 8), "w": floats(8, 5), "b": floats(5)},
        {},
        lambda x, w, b: fast_gelu(x @ w + b),
    ),
    (
        "GroupNorm",
        {"x": IMAGE, "g": SCALE, "b": SHIFT},
        {"groups": 3, "activation": 1, "epsilon": 1e-5},
        lambda x, g, b: silu(group_norm(x, 3) * g + b),
    ),
    (
        "SkipGroupNorm",
        {"x": IMAGE, "g": SCALE, "b": SHIFT, "s": floats(2, 6), "c": floats(6)},
        {"groups": 2, "activation": 0, "epsilon": 1e-5},
        lambda x, g, b, s, c: group_norm(x + s[:, None, None] + c, 2) * g + b,
    ),
]


@pytest.mark.parametrize(("operator", "inputs", "attributes", "expected"), BY_NUMPY)
def test_operators_that_onnx_runtime_has_for_other_devices(
    operator: str, inputs: dict[str, Any], attributes: dict[str, Any], expected: Callable[..., Any]
) -> None:
    """ONNX Runtime writes them for GPUs, and does not run them on the processor."""
    model = node_model(operator, inputs, domain="com.microsoft", **attributes)
    wanted = expected(*[value.astype("float64") for value in inputs.values()])
    np.testing.assert_allclose(run(model, inputs)[0], wanted, rtol=2e-5, atol=2e-6)


def test_a_convolution_with_channels_last() -> None:
    """As the fused one of data whose channels are second."""
    data, weight, bias, more = floats(1, 6, 7, 3), floats(4, 3, 3, 3), floats(4), floats(1, 6, 7, 4)
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "activation": "Relu"}
    inputs = {"x": data, "w": weight, "b": bias, "z": more}
    found = run(node_model("NhwcFusedConv", inputs, domain="com.microsoft", **attributes), inputs)[0]
    turned = {**inputs, "x": data.transpose(0, 3, 1, 2), "z": more.transpose(0, 3, 1, 2)}
    turned = {name: np.ascontiguousarray(value) for name, value in turned.items()}
    model = node_model("FusedConv", turned, domain="com.microsoft", **attributes)
    expected = reference_runtime.outputs(model, turned)[0]
    np.testing.assert_allclose(found, expected.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)
