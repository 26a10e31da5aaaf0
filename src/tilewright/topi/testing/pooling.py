"""Pooling over windows that slide, and over as many windows as the output has elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

Array = Any
"""A NumPy array."""


def _extent(size: int, taps: int, step: int, spread: int, ceil_mode: bool) -> int:
    """How many windows fit into a padded axis."""
    room = (size - (taps - 1) * spread - 1) / step
    return (math.ceil(room) if ceil_mode else math.floor(room)) + 1


def poolnd_python(
    np_data: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: str = "float32",
    layout: str | None = None,
) -> Array:
    """The maximum or mean of each window; the spatial axes are the last ones, or before ``C`` in such a layout."""
    if layout is not None and layout[-1] == "C":
        moved = np.moveaxis(np_data, -1, 1)
        found = poolnd_python(
            moved,
            kernel,
            strides,
            dilation,
            padding_before,
            padding_after,
            pool_type,
            count_include_pad,
            ceil_mode,
            dtype,
        )
        return np.moveaxis(found, 1, -1)
    rank = len(kernel)
    sizes = np_data.shape[-rank:]
    extents = [
        _extent(size + first + last, taps, step, spread, ceil_mode)
        for size, first, last, taps, step, spread in zip(
            sizes, padding_before, padding_after, kernel, strides, dilation, strict=True
        )
    ]
    result: Array = np.zeros((*np_data.shape[:-rank], *extents), dtype)
    for place in product(*map(range, extents)):
        taken = [
            [
                index
                for index in range(at * step - first, at * step - first + taps * spread, spread)
                if 0 <= index < size
            ]
            for at, step, first, taps, spread, size in zip(
                place, strides, padding_before, kernel, dilation, sizes, strict=True
            )
        ]
        window = np_data[(..., *np.ix_(*taken))]
        axes = tuple(range(-rank, 0))
        if pool_type == "max":
            result[(..., *place)] = window.max(axis=axes) if window.size else np.finfo(dtype).min
            continue
        if count_include_pad:
            taken = [
                [
                    index
                    for index in range(at * step, at * step + taps * spread, spread)
                    if index < first + size + last
                ]
                for at, step, first, last, taps, spread, size in zip(
                    place, strides, padding_before, padding_after, kernel, dilation, sizes, strict=True
                )
            ]
        result[(..., *place)] = window.sum(axis=axes) / max(math.prod(map(len, taken)), 1)
    return result


def pool_grad_nchw(
    a_np: Array,
    out_grad_np: Array,
    pool_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool,
    count_include_pad: bool = True,
) -> Array:
    """The gradient of pooling: to the first largest element of a window, or to all of its elements alike."""
    height, width = a_np.shape[2:]
    top, left = padding[:2]
    gradient = np.zeros(a_np.shape, np.result_type(a_np.dtype, out_grad_np.dtype))
    for y, x in product(*map(range, out_grad_np.shape[2:])):
        rows = [
            at for at in range(y * strides[0] - top, y * strides[0] - top + pool_size[0]) if 0 <= at < height
        ]
        columns = [
            at for at in range(x * strides[1] - left, x * strides[1] - left + pool_size[1]) if 0 <= at < width
        ]
        if not rows or not columns:
            continue  # the window is within the padding
        if pool_type == "avg":
            count = math.prod(pool_size) if count_include_pad else max(len(rows) * len(columns), 1)
            gradient[:, :, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] += (
                out_grad_np[:, :, y, x] / count
            )[..., None, None]
            continue
        window = a_np[:, :, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        best = window.reshape(*window.shape[:2], -1).argmax(-1)
        for n, c in product(*map(range, best.shape)):
            row, column = divmod(int(best[n, c]), len(columns))
            gradient[n, c, rows[row], columns[column]] += out_grad_np[n, c, y, x]
    return gradient


def adaptive_pool(np_data: Array, out_size: Sequence[int], pool_type: str, layout: str) -> Array:
    """The mean or maximum of ``out_size`` windows that cover each spatial axis."""
    if layout[-1] == "C":
        return np.moveaxis(adaptive_pool(np.moveaxis(np_data, -1, 1), out_size, pool_type, "NCHW"), 1, -1)
    sizes = np_data.shape[2:]
    result: Array = np.zeros((*np_data.shape[:2], *out_size), np_data.dtype)
    reduce = np.mean if pool_type == "avg" else np.max
    for place in product(*map(range, out_size)):
        window = tuple(
            slice(at * size // count, -(-(at + 1) * size // count))
            for at, size, count in zip(place, sizes, out_size, strict=True)
        )
        result[(..., *place)] = reduce(np_data[(..., *window)], axis=tuple(range(2, np_data.ndim)))
    return result
