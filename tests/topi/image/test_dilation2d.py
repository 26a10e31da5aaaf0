"""Morphological dilation, against loops in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), ((1, 2), (1, 0, 2, 1), 2)])
def test_largest_sums(layout: str, stride: Any, padding: Any, dilation: int) -> None:
    """The largest sum of pixel and kernel; negative images do not see the padding."""
    random = np.random.default_rng(103)
    data = (random.standard_normal((1, 2, 6, 7)) - 5).astype("float32")
    kernel = random.standard_normal((2, 3, 2)).astype("float32")
    top, left, down, right = [padding] * 4 if isinstance(padding, int) else padding
    padded = np.pad(data, [(0, 0), (0, 0), (top, down), (left, right)], constant_values=-np.inf)
    step_y, step_x = (stride, stride) if isinstance(stride, int) else stride
    height = (padded.shape[2] - 2 * dilation - 1) // step_y + 1
    width = (padded.shape[3] - dilation - 1) // step_x + 1
    expected = np.full((1, 2, height, width), -np.inf)
    for a in range(3):
        for b in range(2):
            part = padded[
                :,
                :,
                a * dilation : a * dilation + step_y * (height - 1) + 1 : step_y,
                b * dilation : b * dilation + step_x * (width - 1) + 1 : step_x,
            ]
            expected = np.maximum(expected, part + kernel[:, a, b].reshape(1, 2, 1, 1))
    options = {"stride": stride, "padding": padding, "dilations": dilation}
    if layout == "NCHW":
        made = apply(topi.image.dilation2d_nchw, data, kernel, **options)
    else:
        made = apply(
            topi.image.dilation2d_nhwc,
            data.transpose(0, 2, 3, 1).copy(),
            kernel.transpose(1, 2, 0).copy(),
            **options,
        ).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_channels_must_agree() -> None:
    """A kernel for each channel."""
    with pytest.raises(InvalidShapeError, match="must be equal"):
        topi.image.dilation2d_nchw(te.placeholder((1, 2, 5, 5)), te.placeholder((3, 2, 2)), 1, 0, 1)
