"""Losses, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(47)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("space", [(), (3, 2)])
def test_negative_log_likelihood(reduction: str, space: tuple[int, ...]) -> None:
    """Of each target, summed, or averaged by weight; one class is ignored."""
    predictions = RANDOM.standard_normal((4, 5, *space)).astype("float32")
    targets = RANDOM.integers(0, 5, (4, *space)).astype("int32")
    weights = RANDOM.random(5).astype("float32")
    expected = F.nll_loss(
        torch.tensor(predictions.astype("float64")),
        torch.tensor(targets.astype("int64")),
        torch.tensor(weights.astype("float64")),
        ignore_index=2,
        reduction=reduction,
    ).numpy()
    made = apply(topi.nn.nll_loss, predictions, targets, weights, reduction=reduction, ignore_index=2)
    np.testing.assert_allclose(made, expected, rtol=1e-5)


def test_a_target_that_is_no_class() -> None:
    """It makes NaN, and nothing outside of the tensors is read."""
    predictions, weights = np.ones((3, 2), "float32"), np.ones(2, "float32")
    targets = np.array([1, 2000000000, -7], "int32")
    made = apply(topi.nn.nll_loss, predictions, targets, weights, reduction="none")
    np.testing.assert_array_equal(made, np.array([-1, np.nan, np.nan], "float32"))


def test_cross_entropy() -> None:
    """Of probabilities, and of scores before softmax."""
    scores = RANDOM.standard_normal((3, 4)).astype("float32")
    targets = RANDOM.random((3, 4)).astype("float32")
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    expected = -(targets * np.log(probabilities)).sum() / 3
    made = apply(topi.nn.cross_entropy, probabilities, targets)
    np.testing.assert_allclose(made, expected, rtol=1e-5)
    made = apply(topi.nn.cross_entropy_with_logits, scores, targets, symbolic=True)
    np.testing.assert_allclose(made, expected, rtol=1e-5)


def test_mistakes_are_refused() -> None:
    """Unknown reductions and shapes that do not fit."""
    a, t, w = te.placeholder((2, 3)), te.placeholder((2,), "int32"), te.placeholder((3,))
    with pytest.raises(OpAttributeInvalid, match="none"):
        topi.nn.nll_loss(a, t, w, "max")
    with pytest.raises(InvalidShapeError, match="one dimension"):
        topi.nn.nll_loss(a, te.placeholder((2, 3), "int32"), w)
    with pytest.raises(InvalidShapeError, match="must be equal"):
        topi.nn.cross_entropy(a, te.placeholder((2, 4)))
