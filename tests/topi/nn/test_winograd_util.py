"""The transformation matrices of Winograd convolution."""

from __future__ import annotations

import numpy as np
import pytest
from tests.topi.running import evaluate

from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.nn.winograd_util import (
    INTEGER_TILES,
    integer_winograd_transforms,
    winograd_matrices,
    winograd_transform_matrices,
)


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


@pytest.mark.parametrize("tile", INTEGER_TILES)
def test_integers_are_scaled(tile: int) -> None:
    """The transforms of integers give exactly their scale times the correlation."""
    made = integer_winograd_transforms(tile)
    random = np.random.default_rng(tile)
    signal, taps = random.integers(0, 256, tile + 2), random.integers(-128, 128, 3)
    found = made.a.T @ ((made.g @ taps) * (made.b.T @ signal))
    np.testing.assert_array_equal(found, made.scale * np.correlate(signal, taps, "valid"))


@pytest.mark.parametrize("tile", INTEGER_TILES)
def test_integers_fit_in_16_bits(tile: int) -> None:
    """No 8-bit data and no 8-bit weights leave int16 when they are transformed along both axes."""
    made = integer_winograd_transforms(tile)
    most = np.abs(made.g).sum(axis=1).max() ** 2 * 128, np.abs(made.b).sum(axis=0).max() ** 2 * 255
    assert max(most) < 1 << 15


@pytest.mark.parametrize("tile", INTEGER_TILES)
def test_the_scale_is_divided_modulo_32_bits(tile: int) -> None:
    """Results up to the limit are found from their multiples by the scale, of which only 32 bits are left."""
    made = integer_winograd_transforms(tile)
    for result in (0, 1, -1, made.limit - 1, -made.limit, 12_345_678):
        wrapped = np.array(made.scale**2 * result).astype("int32")
        assert int(np.multiply(wrapped, np.int32(made.inverse))) >> made.shift == result


def test_tiles_of_integers() -> None:
    """A tile whose transforms would need more than 16 bits is refused."""
    with pytest.raises(OpAttributeInvalid, match="tiles of 2 or 4 outputs, not 6"):
        integer_winograd_transforms(6)
