"""Regions of interest, and how much two images have in common."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from tilewright.topi.nn.utils import per_axis

Array = Any
"""A NumPy array."""


def _sampled(planes: Array, y: float, x: float) -> Array:
    """Between the four elements around a place; up to one element outside counts as the border, further as zero."""
    height, width = planes.shape[1:]
    if y < -1.0 or y > height or x < -1.0 or x > width:
        return np.zeros(planes.shape[0])
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(int(y), height - 1), min(int(x), width - 1)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down = 0.0 if top == height - 1 else y - top
    across = 0.0 if left == width - 1 else x - left
    upper = planes[:, top, left] * (1 - across) + planes[:, top, right] * across
    lower = planes[:, bottom, left] * (1 - across) + planes[:, bottom, right] * across
    return np.asarray(upper * (1 - down) + lower * down)


def roi_align_nchw_python(
    a_np: Array,
    rois_np: Array,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int,
    mode: str | bytes = b"avg",
) -> Array:
    """Regions ``(batch, x1, y1, x2, y2)``, each the mean or maximum of samples in every part of it."""
    rows, columns = per_axis(pooled_size, 2, "pooled_size")
    mean = mode in (b"avg", "avg", 0)
    result = np.zeros((len(rois_np), a_np.shape[1], rows, columns), "float64")
    for region, (batch, *corners) in enumerate(rois_np):
        left, top, right, bottom = (corner * spatial_scale for corner in corners)
        height, width = max(bottom - top, 1.0), max(right - left, 1.0)
        down = sample_ratio if sample_ratio > 0 else math.ceil(height / rows)
        across = sample_ratio if sample_ratio > 0 else math.ceil(width / columns)
        for i, j in product(range(rows), range(columns)):
            samples = [
                _sampled(
                    a_np[int(batch)],
                    top + height / rows * (i + (y + 0.5) / down),
                    left + width / columns * (j + (x + 0.5) / across),
                )
                for y, x in product(range(down), range(across))
            ]
            result[region, :, i, j] = np.mean(samples, 0) if mean else np.max(samples, 0)
    return result.astype(a_np.dtype)


def roi_align_nhwc_python(
    a_np: Array,
    rois_np: Array,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int,
    mode: str | bytes = b"avg",
) -> Array:
    """The same with channels last."""
    found = roi_align_nchw_python(
        a_np.transpose(0, 3, 1, 2), rois_np, pooled_size, spatial_scale, sample_ratio, mode
    )
    return found.transpose(0, 2, 3, 1)


def roi_pool_nchw_python(a_np: Array, rois_np: Array, pooled_size: Any, spatial_scale: float) -> Array:
    """Regions ``(batch, x1, y1, x2, y2)``, each the maximum of the elements in every part of it."""
    rows, columns = per_axis(pooled_size, 2, "pooled_size")
    height, width = a_np.shape[2:]
    result = np.zeros((len(rois_np), a_np.shape[1], rows, columns), a_np.dtype)
    for region, (batch, *corners) in enumerate(rois_np):
        left, top, right, bottom = (math.floor(corner * spatial_scale + 0.5) for corner in corners)
        tall, wide = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i, j in product(range(rows), range(columns)):
            first = min(max(top + i * tall // rows, 0), height)
            last = min(max(top - (-(i + 1) * tall // rows), 0), height)
            begin = min(max(left + j * wide // columns, 0), width)
            end = min(max(left - (-(j + 1) * wide // columns), 0), width)
            if last > first and end > begin:
                part = a_np[int(batch), :, first:last, begin:end]
                result[region, :, i, j] = part.max(axis=(1, 2))
    return result


def correlation_nchw_python(
    data1: Array,
    data2: Array,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool,
) -> Array:
    """Patches of one image compared with those of another that are near: one channel for each displacement."""
    amount = padding if isinstance(padding, int) else padding[0]
    widths = [(0, 0), (0, 0), (amount, amount), (amount, amount)]
    one, other = np.pad(data1, widths), np.pad(data2, widths)
    radius = (kernel_size - 1) // 2
    border = max_displacement + radius
    batch, channels, height, width = one.shape
    rows = math.ceil((height - 2 * border) / stride1)
    columns = math.ceil((width - 2 * border) / stride1)
    reach = max_displacement // stride2
    moves = [step * stride2 for step in range(-reach, reach + 1)]
    result = np.zeros((batch, len(moves) ** 2, rows, columns), "float64")
    for i, j in product(range(rows), range(columns)):
        y, x = i * stride1 + max_displacement, j * stride1 + max_displacement
        patch = one[:, :, y : y + kernel_size, x : x + kernel_size]
        for channel, (down, across) in enumerate(product(moves, moves)):
            near = other[:, :, y + down : y + down + kernel_size, x + across : x + across + kernel_size]
            compared = patch * near if is_multiply else np.abs(patch - near)
            result[:, channel, i, j] = compared.sum(axis=(1, 2, 3)) / (kernel_size**2 * channels)
    return result.astype(data1.dtype)
