"""Images resized, cut out and sampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

Array = Any
"""A NumPy array."""
Taps = list[tuple[int, float]]
"""The elements along one axis that make up one element of the result, and their weights."""

_CUBIC = -0.5
"""The slope of the cubic kernel."""


def _position(index: int, size: int, target: int, mode: str) -> float:
    """The place in the image that an index of the result stands for."""
    if mode == "align_corners":
        return index * (size - 1) / max(target - 1, 1)
    if mode == "asymmetric":
        return index * size / target
    return (index + 0.5) * size / target - 0.5


def _nearest(position: float, mode: str) -> Taps:
    # A place that is a whole number but for rounding is that number.
    return [(math.floor(position + (0.5 if mode == "align_corners" else 1e-5)), 1.0)]


def _linear(position: float, mode: str) -> Taps:
    first = math.floor(position)
    return [(first, first + 1 - position), (first + 1, position - first)]


def _cubic(position: float, mode: str) -> Taps:
    first = math.floor(position)
    taps = []
    for index in range(first - 1, first + 3):
        far = abs(index - position)
        if far <= 1:
            weight = (_CUBIC + 2) * far**3 - (_CUBIC + 3) * far**2 + 1
        else:
            weight = _CUBIC * (far**3 - 5 * far**2 + 8 * far - 4)
        taps.append((index, weight))
    return taps


_METHODS: dict[str, Callable[[float, str], Taps]] = {
    "nearest_neighbor": _nearest,
    "linear": _linear,
    "cubic": _cubic,
}


def _resize_axis(data: Array, axis: int, target: int, method: str, mode: str) -> Array:
    """One axis resized."""
    size = data.shape[axis]
    matrix = np.zeros((target, size))
    for index in range(target):
        for tap, weight in _METHODS[method](_position(index, size, target, mode), mode):
            matrix[index, min(max(tap, 0), size - 1)] += weight
    return np.moveaxis(np.tensordot(matrix, data, (1, axis)), 0, axis)


def _resize(data: Array, scale: Sequence[float], layout: str, letters: str, method: str, mode: str) -> Array:
    """The axes of these letters, each resized by its own factor, one after the other."""
    result = data
    for letter, factor in zip(letters, scale, strict=True):
        axis = layout.index(letter)
        result = _resize_axis(result, axis, round(data.shape[axis] * factor), method, mode)
    return result.astype(data.dtype)


def resize1d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    """A line resized by a factor; blocked layouts (``NCW4c``) are fine."""
    return _resize(data, scale, layout, "W", method, coordinate_transformation_mode)


def resize2d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    """An image resized by factors for height and width; blocked layouts (``NCHW4c``) are fine."""
    return _resize(data, scale, layout, "HW", method, coordinate_transformation_mode)


def resize3d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    """A volume resized by factors for depth, height and width."""
    return _resize(data, scale, layout, "DHW", method, coordinate_transformation_mode)


def crop_and_resize_python(
    image: Array,
    boxes: Array,
    box_indices: Array,
    crop_size: Sequence[int],
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
) -> Array:
    """Boxes ``(y1, x1, y2, x2)``, in parts of the image, cut out and resized to one size."""
    if layout == "NHWC":
        moved = crop_and_resize_python(
            image.transpose(0, 3, 1, 2), boxes, box_indices, crop_size, "NCHW", method, extrapolation_value
        )
        return moved.transpose(0, 2, 3, 1)
    _, channels, height, width = image.shape
    rows, columns = crop_size
    result = np.full((len(boxes), channels, rows, columns), extrapolation_value, "float64")
    for box, (top, left, bottom, right) in enumerate(boxes):
        plane = image[box_indices[box]]
        for i, j in product(range(rows), range(columns)):
            y = _within(i, rows, height, top, bottom)
            x = _within(j, columns, width, left, right)
            if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
                continue
            if method == "nearest_neighbor":
                result[box, :, i, j] = plane[:, math.floor(y + 0.5), math.floor(x + 0.5)]
            else:
                result[box, :, i, j] = _between(plane, y, x)
    return result.astype(image.dtype)


def _within(index: int, count: int, size: int, begin: float, end: float) -> float:
    """The place of an index in a box; a single one is in the box's middle."""
    if count == 1:
        return float(0.5 * (begin + end) * (size - 1))
    return float(begin * (size - 1) + index * (end - begin) * (size - 1) / (count - 1))


def _between(planes: Array, y: float, x: float) -> Array:
    """Between the four elements around a place inside the planes."""
    height, width = planes.shape[-2:]
    top, left = math.floor(y), math.floor(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = planes[..., top, left] * (left + 1 - x) + planes[..., top, right] * (x - left)
    lower = planes[..., bottom, left] * (left + 1 - x) + planes[..., bottom, right] * (x - left)
    return np.asarray(upper * (top + 1 - y) + lower * (y - top))


def affine_grid_python(data: Array, target_shape: Sequence[int]) -> Array:
    """The places of a picture of ``target_shape``, from -1 to 1, moved by affine maps."""
    height, width = target_shape
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    places = np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
    return (data @ places).reshape(len(data), 2, height, width)


def grid_sample_nchw_python(data: Array, grid: Array, method: str = "bilinear") -> Array:
    """The image at the places ``(x, y)`` of a grid, from -1 to 1; zero outside."""
    batch, channels, height, width = data.shape
    rows, columns = grid.shape[2:]
    result = np.zeros((batch, channels, rows, columns), "float64")
    for n, i, j in product(range(batch), range(rows), range(columns)):
        x = (grid[n, 0, i, j] + 1) * (width - 1) / 2
        y = (grid[n, 1, i, j] + 1) * (height - 1) / 2
        for row, down in _METHODS["linear" if method == "bilinear" else "nearest_neighbor"](
            y, "align_corners"
        ):
            for column, across in _METHODS["linear" if method == "bilinear" else "nearest_neighbor"](
                x, "align_corners"
            ):
                if 0 <= row < height and 0 <= column < width:
                    result[n, :, i, j] += data[n, :, row, column] * down * across
    return result.astype(data.dtype)
