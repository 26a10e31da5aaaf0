"""Layers that Microsoft's optimiser fuses give what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import assert_close, node_model, run


def floats(*shape: int, seed: int = 0) -> Any:
    """Random numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


IDS = np.array([[1, 4, 2], [0, 3, 3]], "int32")
SEGMENTS = np.array([[0, 0, 1], [1, 1, 1]], "int32")
CASES: list[tuple[str, dict[str, Any], int, dict[str, Any]]] = [
    ("Gelu", {"x": floats(3, 8)}, 1, {}),
    ("BiasGelu", {"x": floats(3, 8), "b": floats(8)}, 1, {}),
    ("FastGelu", {"x": floats(3, 8), "b": floats(8)}, 1, {}),
    ("FastGelu", {"x": floats(3, 8)}, 1, {}),
    ("QuickGelu", {"x": floats(3, 8)}, 1, {"alpha": 1.5}),
    (
        "SkipLayerNormalization",
        {"x": floats(2, 3, 8), "s": floats(2, 3, 8, seed=1), "g": floats(8), "b": floats(8, seed=2)},
        1,
        {"epsilon": 1e-5},
    ),
    (
        "SkipSimplifiedLayerNormalization",
        {"x": floats(2, 3, 8), "s": floats(2, 3, 8, seed=1), "g": floats(8), "b": floats(8, seed=2)},
        1,
        {"epsilon": 1e-5},
    ),
    (
        "EmbedLayerNormalization",
        {
            "ids": IDS,
            "segments": SEGMENTS,
            "words": floats(6, 8),
            "positions": floats(4, 8, seed=1),
            "kinds": floats(2, 8, seed=2),
            "g": floats(8),
            "b": floats(8, seed=3),
            "mask": np.array([[1, 1, 0], [1, 1, 1]], "int32"),
        },
        2,
        {"epsilon": 1e-5},
    ),
    ("FusedMatMul", {"a": floats(2, 5, 3), "b": floats(2, 5, 4)}, 1, {"transA": 1, "alpha": 0.5}),
    ("FusedMatMul", {"a": floats(5, 2, 3), "b": floats(2, 3, 4)}, 1, {"transBatchA": 1}),
    ("FusedGemm", {"a": floats(3, 5), "b": floats(5, 4), "c": floats(4)}, 1, {"activation": "Relu"}),
    (
        "FusedGemm",
        {"a": floats(3, 5), "b": floats(5, 4)},
        1,
        {"activation": "LeakyRelu", "activation_alpha": 0.3},
    ),
    (
        "FusedConv",
        {"x": floats(1, 3, 6, 6), "w": floats(4, 3, 3, 3), "b": floats(4)},
        1,
        {"activation": "Clip", "activation_params": [-0.5, 0.7], "pads": [1, 1, 1, 1]},
    ),
    (
        "FusedConv",
        {"x": floats(1, 3, 6, 6), "w": floats(4, 3, 3, 3)},
        1,
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
    ),
]


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "attributes"),
    CASES,
    ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)],
)
def test_like_onnx_runtime(
    operator: str, inputs: dict[str, Any], outputs: int, attributes: dict[str, Any]
) -> None:
    """The same numbers, to rounding."""
    model = node_model(operator, inputs, outputs, domain="com.microsoft", **attributes)
    assert_close(run(model, inputs), reference_runtime.outputs(model, inputs))


def test_the_sum_is_the_fourth_output() -> None:
    """SkipLayerNormalization gives what it normalises, between outputs that are left out."""
    inputs = {"x": floats(2, 3, 8), "s": floats(2, 3, 8, seed=1), "g": floats(8)}
    model = node_model("SkipLayerNormalization", inputs, 4, domain="com.microsoft")
    node = model.graph.node[0]
    node.output[1] = node.output[2] = ""
    del model.graph.output[1:3]
    assert_close(run(model, inputs)[1:], [inputs["x"] + inputs["s"]])


def test_root_mean_square_in_the_default_domain() -> None:
    """SimplifiedLayerNormalization, which exporters write without a domain."""
    inputs = {"x": floats(2, 3, 8), "g": floats(8)}
    model = node_model("SimplifiedLayerNormalization", inputs, axis=-1, epsilon=1e-6)
    root = np.sqrt((inputs["x"] ** 2).mean(axis=-1, keepdims=True) + 1e-6)
    assert_close(run(model, inputs), [inputs["x"] / root * inputs["g"]])


@pytest.mark.parametrize("last", [True, False])
def test_nhwc_conv(last: bool) -> None:
    """Channels last in the data, and in the weight or not."""
    data, weight = floats(1, 6, 5, 3), floats(4, 3, 3, 3)
    kernel = np.ascontiguousarray(weight.transpose(0, 2, 3, 1)) if last else weight
    # Three channels and taps alike: the shape cannot tell, so the kernel is one of 3 by 2.
    kernel = np.ascontiguousarray(kernel[:, :, :2] if last else kernel[..., :2])
    inputs = {"x": data, "w": kernel}
    model = node_model("NhwcConv", inputs, domain="com.microsoft", kernel_shape=[3, 2])
    first = {
        "x": np.ascontiguousarray(data.transpose(0, 3, 1, 2)),
        "w": np.ascontiguousarray(weight[..., :2]),
    }
    expected = run(node_model("Conv", first), first)[0].transpose(0, 2, 3, 1)
    assert_close(run(model, inputs), [expected])
