"""Random numbers have the distributions that operators name."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx.models import node_model, run


def drawn(operator: str, **attributes: Any) -> Any:
    """The result of an operator that takes nothing."""
    return run(node_model(operator, {}, **attributes), {})[0]


def test_uniform_numbers_fill_their_interval() -> None:
    """Between the limits, with the right mean and spread, and the same for the same seed."""
    found = drawn("RandomUniform", shape=[100, 50], low=-2.0, high=4.0, seed=3.0)
    assert found.min() >= -2 and found.max() < 4
    assert abs(found.mean() - 1) < 0.1
    assert abs(found.std() - 6 / np.sqrt(12)) < 0.1
    np.testing.assert_array_equal(
        found, drawn("RandomUniform", shape=[100, 50], low=-2.0, high=4.0, seed=3.0)
    )
    assert (found != drawn("RandomUniform", shape=[100, 50], low=-2.0, high=4.0, seed=4.0)).mean() > 0.99


def test_normal_numbers_have_their_moments() -> None:
    """Mean, deviation and the share within one deviation."""
    found = drawn("RandomNormal", shape=[5000], mean=2.0, scale=3.0, dtype=onnx.TensorProto.DOUBLE)
    assert found.dtype == np.float64
    assert abs(found.mean() - 2) < 0.2
    assert abs(found.std() - 3) < 0.15
    assert abs((np.abs(found - 2) < 3).mean() - 0.6827) < 0.03


@pytest.mark.parametrize("unknown", [False, True])
def test_shapes_that_only_the_program_knows(unknown: bool) -> None:
    """Numbers in the shape of a tensor, whose size may be unknown; neighbours have nothing to do with each other."""
    like = np.zeros((60, 80), "float32")
    found = run(node_model("RandomNormalLike", {"x": like}, unknown=unknown), {"x": like})[0]
    assert found.shape == like.shape
    assert abs(found.mean()) < 0.06
    assert abs(found.std() - 1) < 0.05
    flat = found.reshape(-1)
    assert abs(np.corrcoef(flat[1:], flat[:-1])[0, 1]) < 0.05


def test_ones_with_a_probability() -> None:
    """Bernoulli draws one as often as each element says."""
    given = np.repeat(np.asarray([[0.0], [0.2], [0.9], [1.0]], "float32"), 2000, axis=1)
    found = run(node_model("Bernoulli", {"x": given}), {"x": given})[0]
    assert set(np.unique(found)) == {0, 1}
    np.testing.assert_allclose(found.mean(axis=1), [0, 0.2, 0.9, 1], atol=0.03)


def test_classes_with_their_probabilities() -> None:
    """Multinomial draws classes from logarithms of probabilities."""
    chances = np.asarray([[0.7, 0.2, 0.1], [0.05, 0.05, 0.9]], "float32")
    given = np.log(chances)
    found = run(node_model("Multinomial", {"x": given}, sample_size=4000), {"x": given})[0]
    assert found.shape == (2, 4000)
    assert found.dtype == np.int32
    shares = np.stack([(found == label).mean(axis=1) for label in range(3)], axis=1)
    np.testing.assert_allclose(shares, chances, atol=0.03)
