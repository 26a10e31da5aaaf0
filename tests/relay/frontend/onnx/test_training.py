"""Gradients, and steps of optimisers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx.models import assert_close, node_model, run

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.onnx.ops.training import TRAINING_DOMAIN
from tilewright.support.errors import ModelError


def gradient_model(point: str) -> Any:
    """The derivatives of ``h * z`` by ``h = exp(x)`` and by ``z``, at a value of ``h``."""
    nodes = [
        onnx.helper.make_node("Exp", ["x"], ["h"]),
        onnx.helper.make_node("Mul", ["h", "z"], ["y"]),
        onnx.helper.make_node(
            "Gradient", [point, "z"], ["dh", "dz"], domain=TRAINING_DOMAIN, xs=["h", "z"], y="y"
        ),
    ]
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in ("x", "z", "w")
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("dh", "dz")]
    graph = onnx.helper.make_graph(nodes, "gradients", infos, outputs)
    imports = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(TRAINING_DOMAIN, 1)]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=9)


def test_derivatives_by_inner_tensors() -> None:
    """By a tensor inside the graph, at its own value and at another one."""
    inputs = {
        name: np.asarray(value, "float32")
        for name, value in (("x", [0, 1, 2]), ("z", [3, 4, 5]), ("w", [6, 7, 8]))
    }
    assert_close(run(gradient_model("h"), inputs), [inputs["z"], np.exp(inputs["x"])])
    assert_close(run(gradient_model("w"), inputs), [inputs["z"], inputs["w"]])


@pytest.mark.parametrize("step", [0, 3])
def test_momentum(step: int) -> None:
    """The first gradient counts in full, later ones with beta; Nesterov's form looks ahead."""
    inputs: dict[str, Any] = {
        "rate": np.float32(0.1),
        "step": np.int64(step),
        "x": np.asarray([1.0, 2.0], "float32"),
        "g": np.asarray([0.5, -0.5], "float32"),
        "v": np.asarray([2.0, 3.0], "float32"),
    }
    share = 0.85 if step else 1.0
    slope = 0.001 * inputs["x"] + inputs["g"]
    running = 0.95 * inputs["v"] + share * slope
    for mode, direction in (("standard", running), ("nesterov", slope + 0.95 * running)):
        model = node_model(
            "Momentum",
            inputs,
            2,
            TRAINING_DOMAIN,
            norm_coefficient=0.001,
            alpha=0.95,
            beta=0.85,
            mode=mode,
        )
        expected = [inputs["x"] - 0.1 * direction, running]
        assert_close(run(model, inputs), [each.astype("float32") for each in expected])


def test_tensors_that_are_no_groups() -> None:
    """A tensor without its gradient or state is an error."""
    inputs: dict[str, Any] = {
        "rate": np.float32(0.1),
        "step": np.int64(0),
        "x": np.zeros(2, "float32"),
        "g": np.zeros(2, "float32"),
    }
    with pytest.raises(ModelError, match="2 tensors are not tensors with a gradient and 1 states"):
        from_onnx(node_model("Adagrad", inputs, 2, TRAINING_DOMAIN))
