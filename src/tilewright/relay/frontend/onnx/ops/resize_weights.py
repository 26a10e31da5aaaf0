"""The interpolation weights of a resized axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
HALF = 0.5 + 1e-6
"""How far from an integer counts as halfway: what a scale in float32 moves by its own rounding still does."""


@dataclass(frozen=True)
class Sampling:
    """How Resize reads between elements, and where the elements of the result lie."""

    mode: str
    coordinates: str
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0

    def complaint(self) -> str:
        """The unknown parts of these, or None."""
        if self.mode not in ("nearest", "linear", "cubic"):
            return f"the mode {self.mode!r} is not known"
        if self.coordinates not in _COORDINATES:
            return f"the coordinate transformation {self.coordinates!r} is not known"
        if self.rounding not in _ROUNDINGS:
            return f"the nearest mode {self.rounding!r} is not known"
        return ""


def places(
    sampling: Sampling, source: int, target: int, scale: float, region: tuple[float, float]
) -> tuple[Array, Array]:
    """Where each element of the result is in the source, and whether that is outside it."""
    number = np.arange(target, dtype=np.float64)
    whole = scale * source
    inside = np.zeros(target, bool)
    mode = sampling.coordinates
    if mode == "asymmetric":
        return number / scale, inside
    if mode == "align_corners":
        return (np.zeros(target) if whole == 1 else number * (source - 1) / (whole - 1)), inside
    if mode == "tf_half_pixel_for_nn":
        return (number + 0.5) / scale, inside
    if mode == "tf_crop_and_resize":
        begin, end = region
        if whole == 1:
            found = np.full(target, (end - begin) * (source - 1) / 2)
        else:
            found = number * (end - begin) * (source - 1) / (whole - 1)
        found = found + begin * (source - 1)
        return found, (found < 0) | (found > source - 1)
    if mode == "pytorch_half_pixel" and whole == 1:
        return np.full(target, -0.5), inside
    found = (number + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        found = found + source / 2 * (1 - target / whole)
    return found, inside


def single_places(
    sampling: Sampling, source: int, target: int, scale: float, region: tuple[float, float]
) -> tuple[Array, Array]:
    """As ``places``, in the steps and the precision of ONNX Runtime, which decide what is nearest.

    A scale of 0.6 is 0.60000002 in float32, and only a division in float32 finds pixel 5 for the third of the result.
    """
    real = np.float32
    number, step = np.arange(target).astype(real), real(scale)
    size, length = real(source), real(target)
    half, one = real(0.5), real(1)
    inside = np.zeros(target, bool)
    mode = sampling.coordinates
    if mode == "asymmetric":
        return number / step, inside
    if mode == "tf_half_pixel_for_nn":
        return (number + half) / step, inside
    if mode == "align_corners":
        return number * (size - one) / max(length - one, one), inside
    if mode == "tf_crop_and_resize":
        begin, end = (real(side) for side in region)
        if target > 1:
            found = begin * (size - one) + number * (end - begin) * (size - one) / (length - one)
        else:
            found = np.full(1, half * (begin + end) * (size - one), real)
        return found, (found < 0) | (found > size - one)
    if mode == "pytorch_half_pixel" and target == 1:
        return np.zeros(1, real), inside
    found = (number + half) / step - half
    if mode == "half_pixel_symmetric":
        offset = size / real(2) * (one - length / (step * size))
        found = (float(offset) + (np.arange(target) + 0.5) / float(step) - 0.5).astype(real)
    return found, inside


def indices(
    sampling: Sampling, source: int, target: int, scale: float, region: tuple[float, float]
) -> tuple[Array, Array]:
    """The nearest element for each of the result, and where there is none."""
    place, outside = single_places(sampling, source, target, scale, region)
    wide = place.astype(np.float64)
    rounded: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - HALF),
        "round_prefer_ceil": lambda x: np.floor(x + HALF),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    chosen = rounded[sampling.rounding](wide)
    return np.clip(chosen, 0, source - 1).astype(np.int64), outside


def weights(
    sampling: Sampling, source: int, target: int, scale: float, region: tuple[float, float]
) -> tuple[Array, Array]:
    """The matrix (target, source) of weights, and which elements of the result are outside.

    What is before the first element is the first, and after the last the last; with ``exclude_outside`` it has no
    weight. With ``antialias`` the kernel is as wide as an element of a smaller result.
    """
    place, outside = places(sampling, source, target, scale, region)
    shrink = min(scale, 1.0) if sampling.antialias else 1.0
    radius = (1 if sampling.mode == "linear" else 2) / shrink
    reach = int(np.ceil(radius)) + 1
    low = np.floor(place).astype(np.int64)
    taps = low[:, None] + np.arange(-reach, reach + 1)
    kernel = _linear if sampling.mode == "linear" else _cubic(sampling.cubic)
    given = kernel((taps - place[:, None]) * shrink)
    if sampling.exclude_outside:
        given = np.where((taps < 0) | (taps >= source), 0.0, given)
    if sampling.antialias or sampling.exclude_outside:
        total = given.sum(axis=1, keepdims=True)
        given = given / np.where(total == 0, 1.0, total)
    matrix = np.zeros((target, source))
    rows = np.broadcast_to(np.arange(target)[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, source - 1)), given)
    return matrix, outside


def _linear(distance: Array) -> Array:
    made: Array = np.maximum(1 - np.abs(distance), 0.0)
    return made


def _cubic(a: float) -> Callable[[Array], Array]:
    def kernel(distance: Array) -> Array:
        x = np.abs(distance)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))

    return kernel
