"""Losses give what torch gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, node_model, run

torch = pytest.importorskip("torch")
TARGETS = np.array([[0, 3, 2], [1, 1, 4]], "int64")


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignored", [None, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unknown", [False, True])
def test_losses(reduction: str, ignored: int | None, weighted: bool, unknown: bool) -> None:
    """Both losses, with weights and classes that are ignored, of sizes that are known or not."""
    inputs: dict[str, Any] = {"x": floats(2, 5, 3), "t": TARGETS}
    if weighted:
        inputs["w"] = np.abs(floats(5, seed=1)) + 0.1
    attributes: dict[str, Any] = {"reduction": reduction}
    if ignored is not None:
        attributes["ignore_index"] = ignored
    given = [torch.tensor(value) for value in inputs.values()]
    expected = torch.nn.functional.cross_entropy(
        given[0],
        given[1],
        given[2] if weighted else None,
        reduction=reduction,
        ignore_index=-100 if ignored is None else ignored,
    ).numpy()
    logs = torch.log_softmax(given[0], dim=1).numpy()
    model = node_model("SoftmaxCrossEntropyLoss", inputs, 2, opset=13, unknown=unknown, **attributes)
    assert_close(run(model, inputs), [expected, logs])
    inputs["x"] = logs
    model = node_model("NegativeLogLikelihoodLoss", inputs, opset=13, unknown=unknown, **attributes)
    assert_close(run(model, inputs), [expected])
