"""The transformation matrices of Winograd convolution."""

from __future__ import annotations

import numpy as np
import pytest
from tests.topi.running import evaluate

from tilewright.topi.nn.winograd_util import winograd_matrices, winograd_transform_matrices


@pytest.mark.parametrize("tile", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("taps", [1, 2, 3, 5, 7])
def test_they_filter(tile: int, taps: int) -> None:
    """``A^T ((G g) * (B^T d))`` is the correlation of d with g."""
    a, b, g = winograd_matrices(tile, taps)
    random = np.random.default_rng(tile * 10 + taps)
    signal, filter_taps = random.standard_normal(tile + taps - 1), random.standard_normal(taps)
    made = a.T @ ((g @ filter_taps) * (b.T @ signal))
    np.testing.assert_allclose(made, np.correlate(signal, filter_taps, "valid"), rtol=1e-6, atol=1e-6)


def test_the_smallest_is_winograds() -> None:
    """F(2, 3) has the published entries: B of 0, 1 and -1, G of halves."""
    _, b, g = winograd_matrices(2, 3)
    assert set(np.unique(b)) <= {-1.0, 0.0, 1.0}
    assert set(np.unique(np.abs(g))) == {0.0, 0.5, 1.0}


def test_as_tensors() -> None:
    """Constants of a type, written into the program."""
    made = evaluate(winograd_transform_matrices(4, 3, "float32"), {})
    for array, expected in zip(made, winograd_matrices(4, 3), strict=True):
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, expected, rtol=1e-7)
