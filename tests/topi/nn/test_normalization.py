"""Normalisation, against PyTorch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(43)


def draw(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 2 + 1).astype("float32")


def wide(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array.astype("float64"))


@pytest.mark.parametrize("symbolic", [False, True])
def test_layers(symbolic: bool) -> None:
    """Over the last axis, and over several."""
    data, gamma, beta = draw(2, 3, 5), draw(5), draw(5)
    made = apply(topi.nn.layer_norm, data, gamma, beta, axis=-1, symbolic=symbolic)
    expected = F.layer_norm(wide(data), (5,), wide(gamma), wide(beta)).numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    gamma, beta = draw(3, 5), draw(3, 5)
    made = apply(topi.nn.layer_norm, data, gamma, beta, axis=(1, 2), symbolic=symbolic)
    expected = F.layer_norm(wide(data), (3, 5), wide(gamma), wide(beta)).numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_a_large_mean_costs_no_accuracy() -> None:
    """The variance of numbers around ten thousand is that of their differences."""
    data = (RANDOM.standard_normal((2, 64)) + 10000).astype("float32")
    feeds = inputs(data)
    made = evaluate(topi.nn.layer_norm(*feeds, None, None), feeds)
    exact = data.astype("float64")
    exact = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(made, exact, rtol=2e-3, atol=2e-3)


def test_instances() -> None:
    """Each channel of each item by itself, in either layout."""
    data, gamma, beta = draw(2, 3, 4, 5), draw(3), draw(3)
    expected = F.instance_norm(wide(data), weight=wide(gamma), bias=wide(beta)).numpy()
    made = apply(topi.nn.instance_norm, data, gamma, beta)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    nhwc = data.transpose(0, 2, 3, 1).copy()
    made = apply(topi.nn.instance_norm, nhwc, gamma, beta, channel_axis=3, axis=(1, 2))
    np.testing.assert_allclose(made, expected.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_groups(groups: int) -> None:
    """Groups of channels together, in either layout."""
    data, gamma, beta = draw(2, 6, 3, 4), draw(6), draw(6)
    expected = F.group_norm(wide(data), groups, wide(gamma), wide(beta)).numpy()
    made = apply(topi.nn.group_norm, data, gamma, beta, num_groups=groups)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    nhwc = data.transpose(0, 2, 3, 1).copy()
    made = apply(topi.nn.group_norm, nhwc, gamma, beta, num_groups=groups, channel_axis=3)
    np.testing.assert_allclose(made, expected.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


def test_batches() -> None:
    """With known moments; the scale and the shift can be left out."""
    data, gamma, beta, mean = draw(2, 3, 4), draw(3), draw(3), draw(3)
    variance = np.abs(draw(3))
    feeds = inputs(data, gamma, beta, mean, variance)
    made, *moments = topi.nn.batch_norm(*feeds)
    assert moments == list(feeds)[3:]
    expected = F.batch_norm(wide(data), wide(mean), wide(variance), wide(gamma), wide(beta)).numpy()
    np.testing.assert_allclose(evaluate(made, feeds), expected, rtol=1e-4, atol=1e-5)
    bare, *_ = topi.nn.batch_norm(*feeds, center=False, scale=False)
    expected = F.batch_norm(wide(data), wide(mean), wide(variance)).numpy()
    np.testing.assert_allclose(evaluate(bare, feeds), expected, rtol=1e-4, atol=1e-5)


def test_lengths() -> None:
    """Vectors along axes have length one, unless they are shorter than the root of eps."""
    data = draw(2, 3, 4)
    made = apply(topi.nn.l2_normalize, data, eps=1e-12, axis=[1])
    expected = data / np.linalg.norm(data, axis=1, keepdims=True)
    np.testing.assert_allclose(made, expected, rtol=1e-5)
    whole = apply(topi.nn.l2_normalize, data, eps=1e-12)
    np.testing.assert_allclose(whole, data / np.linalg.norm(data), rtol=1e-5)
    tiny = np.full((1, 4), 1e-3, "float32")
    np.testing.assert_allclose(apply(topi.nn.l2_normalize, tiny, eps=1.0, axis=[1]), tiny, rtol=1e-6)


def test_half_floats() -> None:
    """Squares that overflow float16 are added in float32."""
    data = np.array([[300.0, -300.0, 600.0, -600.0]], "float16")
    feeds = inputs(data)
    made = evaluate(topi.nn.layer_norm(*feeds, None, None), feeds)
    assert made.dtype == np.float16
    expected = F.layer_norm(wide(data), (4,)).numpy()
    np.testing.assert_allclose(made.astype("float64"), expected, rtol=2e-3)


def test_mistakes_are_refused() -> None:
    """Axes that do not exist, channels that do not divide."""
    data = te.placeholder((2, 5, 4))
    with pytest.raises(InvalidShapeError, match="axis 3"):
        topi.nn.layer_norm(data, None, None, axis=3)
    with pytest.raises(InvalidShapeError, match="5 channels cannot be divided into 2 groups"):
        topi.nn.group_norm(data, None, None, 2)
