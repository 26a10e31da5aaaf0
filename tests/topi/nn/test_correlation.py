"""Correlation of patches, against loops in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError


@pytest.mark.parametrize(
    ("kernel", "displacement", "stride1", "stride2", "padding"),
    [(1, 2, 1, 1, 2), (3, 1, 1, 1, 2), (1, 2, 2, 2, 2), (3, 2, 2, 1, (3, 3, 3, 3))],
)
@pytest.mark.parametrize("multiply", [True, False])
def test_patches(
    kernel: int, displacement: int, stride1: int, stride2: int, padding: object, multiply: bool
) -> None:
    """The mean product or difference of a patch with those around the same place in the other image."""
    random = np.random.default_rng(73)
    one, other = (random.standard_normal((2, 3, 6, 7)).astype("float32") for _ in range(2))
    amount = padding if isinstance(padding, int) else 3
    a, b = (
        np.pad(image.astype("float64"), [(0, 0), (0, 0), (amount, amount), (amount, amount)])
        for image in (one, other)
    )
    border, radius = displacement + kernel // 2, displacement // stride2
    height = -(-(a.shape[2] - 2 * border) // stride1)
    width = -(-(a.shape[3] - 2 * border) // stride1)
    size = 2 * radius + 1
    expected = np.zeros((2, size * size, height, width))
    for q in range(size * size):
        down, right = (q // size - radius) * stride2, (q % size - radius) * stride2
        for i in range(height):
            for j in range(width):
                y, x = i * stride1 + displacement, j * stride1 + displacement
                first = a[:, :, y : y + kernel, x : x + kernel]
                second = b[:, :, y + down : y + down + kernel, x + right : x + right + kernel]
                value = first * second if multiply else np.abs(first - second)
                expected[:, q, i, j] = value.mean(axis=(1, 2, 3))
    made = apply(
        topi.nn.correlation_nchw,
        one,
        other,
        kernel_size=kernel,
        max_displacement=displacement,
        stride1=stride1,
        stride2=stride2,
        padding=padding,
        is_multiply=multiply,
    )
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_even_kernels_are_refused() -> None:
    """A patch has a middle."""
    data = te.placeholder((1, 1, 4, 4))
    with pytest.raises(InvalidShapeError, match="odd"):
        topi.nn.correlation_nchw(data, data, 2, 1, 1, 1, 1, True)
