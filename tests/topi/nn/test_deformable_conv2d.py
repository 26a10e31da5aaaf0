"""Deformable convolution, against loops in NumPy, and against convolution where nothing is moved."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply

from tilewright import topi

RANDOM = np.random.default_rng(79)


def sampled(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """All channels of an image at a place between pixels; zero outside."""
    _, height, width = image.shape
    if y < 0 or x < 0 or y >= height or x >= width:
        return np.zeros(image.shape[0])
    low_y, low_x = int(np.floor(y)), int(np.floor(x))
    high_y, high_x = min(low_y + 1, height - 1), min(low_x + 1, width - 1)
    part_y, part_x = y - low_y, x - low_x
    upper = image[:, low_y, low_x] * (1 - part_x) + image[:, low_y, high_x] * part_x
    lower = image[:, high_y, low_x] * (1 - part_x) + image[:, high_y, high_x] * part_x
    return upper * (1 - part_y) + lower * part_y


def deformed(
    data: np.ndarray,
    offset: np.ndarray,
    kernel: np.ndarray,
    stride: int,
    padding: int,
    dilation: int,
    moved: int,
    groups: int,
) -> np.ndarray:
    batch, channels, _, _ = data.shape
    outputs, _, kh, kw = kernel.shape
    _, _, height, width = offset.shape
    result = np.zeros((batch, outputs, height, width))
    for n in range(batch):
        for i in range(height):
            for j in range(width):
                patch = np.zeros((channels, kh, kw))
                for g in range(moved):
                    part = slice(g * channels // moved, (g + 1) * channels // moved)
                    for a in range(kh):
                        for b in range(kw):
                            at = ((g * kh + a) * kw + b) * 2
                            y = i * stride - padding + a * dilation + offset[n, at, i, j]
                            x = j * stride - padding + b * dilation + offset[n, at + 1, i, j]
                            patch[part, a, b] = sampled(data[n, part], y, x)
                for o in range(outputs):
                    size = channels // groups
                    first = o // (outputs // groups) * size
                    result[n, o, i, j] = (patch[first : first + size] * kernel[o]).sum()
    return result


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "moved", "groups"), [(1, 1, 1, 1, 1), (2, 1, 2, 2, 1), (1, 0, 1, 2, 2)]
)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_taps_are_moved(
    stride: int, padding: int, dilation: int, moved: int, groups: int, layout: str
) -> None:
    """Each tap reads where its offset says, between pixels and outside of the image."""
    data = RANDOM.standard_normal((1, 4, 6, 6)).astype("float32")
    kernel = RANDOM.standard_normal((4, 4 // groups, 3, 3)).astype("float32")
    size = (6 + 2 * padding - 2 * dilation - 1) // stride + 1
    offset = (RANDOM.standard_normal((1, moved * 18, size, size)) * 2).astype("float32")
    expected = deformed(data, offset, kernel, stride, padding, dilation, moved, groups)
    options = {
        "strides": stride,
        "padding": padding,
        "dilation": dilation,
        "deformable_groups": moved,
        "groups": groups,
        "out_dtype": "float32",
    }
    operator = topi.nn.deformable_conv2d_nchw
    if layout == "NHWC":
        operator = topi.nn.deformable_conv2d_nhwc
        data, offset = data.transpose(0, 2, 3, 1).copy(), offset.transpose(0, 2, 3, 1).copy()
        kernel, expected = kernel.transpose(2, 3, 1, 0).copy(), expected.transpose(0, 2, 3, 1)
    made = apply(operator, data, offset, kernel, **options)
    np.testing.assert_allclose(made, expected, rtol=1e-3, atol=1e-4)


def test_without_offsets_it_is_a_convolution() -> None:
    """Offsets of zero move nothing."""
    data = RANDOM.standard_normal((1, 2, 5, 5)).astype("float32")
    kernel = RANDOM.standard_normal((3, 2, 3, 3)).astype("float32")
    made = apply(
        topi.nn.deformable_conv2d_nchw,
        data,
        np.zeros((1, 18, 5, 5), "float32"),
        kernel,
        strides=1,
        padding=1,
        dilation=1,
        deformable_groups=1,
        groups=1,
        out_dtype="float32",
    )
    expected = F.conv2d(torch.tensor(data), torch.tensor(kernel), padding=1).numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
