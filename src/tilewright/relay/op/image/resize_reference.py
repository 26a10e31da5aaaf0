"""The reference of resizing: each axis is a product with a matrix of weights.

The position of a pixel in the input is a fraction of integers, so that rounding the scale does not move pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.support.errors import OpAttributeInvalid

_METHODS = {
    "nearest_neighbor": "nearest",
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}


def coordinates(size: int, target: int, mode: str) -> tuple[Any, int]:
    """Where the pixels of ``target`` are among ``size``: numerators, and the denominator of all."""
    index = np.arange(target, dtype=np.int64)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and target > 1):
        return (2 * index + 1) * size - target, 2 * target
    if mode == "pytorch_half_pixel":
        return index * 0, 1
    if mode == "tf_half_pixel_for_nn":
        return (2 * index + 1) * size, 2 * target
    if mode == "align_corners":
        return index * (size - 1), max(target - 1, 1)
    if mode == "asymmetric":
        return index * size, target
    raise OpAttributeInvalid(f"{mode!r} is not a coordinate transformation that depends only on the sizes")


def nearest(over: Any, under: int, rounding: str) -> Any:
    """Fractions rounded to integers."""
    if rounding == "floor":
        return over // under
    if rounding == "ceil":
        return -(-over // under)
    if rounding == "round_prefer_floor":
        return -((under - 2 * over) // (2 * under))
    if rounding in ("round", "round_prefer_ceil"):
        return (2 * over + under) // (2 * under)
    raise OpAttributeInvalid(f"{rounding!r} is not a rounding mode")


def cubic_weights(part: Any, alpha: float) -> list[Any]:
    """The weights of four neighbours, by Keys' cubic."""

    def near(t: Any) -> Any:
        return (alpha + 2) * t**3 - (alpha + 3) * t**2 + 1

    def far(t: Any) -> Any:
        return alpha * t**3 - 5 * alpha * t**2 + 8 * alpha * t - 4 * alpha

    return [far(1 + part), near(part), near(1 - part), far(2 - part)]


def weights(
    size: int, target: int, method: str, mode: str, rounding: str, alpha: float, exclude: bool
) -> Any:
    """The matrix (target, size) that resizes an axis."""
    if method not in _METHODS:
        raise OpAttributeInvalid(f"an interpolation is one of {', '.join(_METHODS)}, not {method!r}")
    over, under = coordinates(size, target, mode)
    matrix = np.zeros((target, size))
    rows = np.arange(target)
    if _METHODS[method] == "nearest":
        chosen = nearest(over, under, rounding or ("round" if mode == "align_corners" else "floor"))
        matrix[rows, np.clip(chosen, 0, size - 1)] = 1
        return matrix
    low, part = over // under, (over % under) / under
    if _METHODS[method] == "linear":
        offsets: tuple[int, ...] = (0, 1)
        values = [1 - part, part]
    else:
        offsets, values = (-1, 0, 1, 2), cubic_weights(part, alpha)
        if exclude:
            values = [
                np.where((low + offset >= 0) & (low + offset < size), value, 0)
                for offset, value in zip(offsets, values, strict=True)
            ]
            total = sum(values)
            values = [value / total for value in values]
    for offset, value in zip(offsets, values, strict=True):
        np.add.at(matrix, (rows, np.clip(low + offset, 0, size - 1)), value)
    return matrix


def resized(
    data: Any,
    axes: list[int],
    sizes: Any,
    method: str,
    mode: str,
    rounding: str = "",
    alpha: float = -0.5,
    exclude: bool = False,
    dtype: Any = None,
) -> Any:
    """An array resized along some axes."""
    made = data.astype(np.float64)
    for axis, size in zip(axes, sizes, strict=True):
        matrix = weights(data.shape[axis], size, method, mode, rounding, alpha, exclude)
        made = np.moveaxis(np.tensordot(matrix, made, axes=(1, axis)), 0, axis)
    return made.astype(dtype or data.dtype)
