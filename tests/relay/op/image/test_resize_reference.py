"""The matrices by which references resize."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.relay.op.image.resize_reference import cubic_weights, nearest, resized, weights
from tilewright.support.errors import OpAttributeInvalid

MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
@pytest.mark.parametrize(("size", "target"), [(4, 4), (4, 9), (9, 4), (5, 1), (1, 3)])
def test_weights_of_a_pixel_add_up_to_one(method: str, mode: str, size: int, target: int) -> None:
    """A flat image stays flat."""
    matrix = weights(size, target, method, mode, "", -0.5, False)
    assert matrix.shape == (target, size)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_the_same_size_changes_nothing(method: str, mode: str) -> None:
    """Every pixel reads itself."""
    data = np.random.default_rng(1).normal(size=(2, 5))
    np.testing.assert_allclose(resized(data, [1], [5], method, mode), data)


def test_rounding_of_halves() -> None:
    """Ways to round differ where a pixel lies in the middle between two."""
    halves = np.array([1, 3, 5])
    assert nearest(halves, 2, "floor").tolist() == [0, 1, 2]
    assert nearest(halves, 2, "ceil").tolist() == [1, 2, 3]
    assert nearest(halves, 2, "round_prefer_floor").tolist() == [0, 1, 2]
    assert nearest(halves, 2, "round_prefer_ceil").tolist() == [1, 2, 3]
    assert nearest(np.array([4, 7]), 5, "round_prefer_floor").tolist() == [1, 1]


def test_cubic_weights_of_a_pixel_itself() -> None:
    """At a pixel, only it counts."""
    np.testing.assert_allclose(cubic_weights(0.0, -0.75), [0, 1, 0, 0], atol=1e-15)


def test_excluded_neighbours_weigh_nothing() -> None:
    """What lies outside is left out, and the rest counts for more."""
    kept = weights(4, 8, "cubic", "half_pixel", "", -0.5, True)
    np.testing.assert_allclose(kept.sum(axis=1), 1)
    assert not np.allclose(kept[0], weights(4, 8, "cubic", "half_pixel", "", -0.5, False)[0])


def test_unknown_names() -> None:
    """Methods and modes that do not exist are errors."""
    with pytest.raises(OpAttributeInvalid, match="interpolation"):
        weights(4, 8, "quadratic", "half_pixel", "", -0.5, False)
    with pytest.raises(OpAttributeInvalid, match="half_pixle"):
        weights(4, 8, "linear", "half_pixle", "", -0.5, False)
