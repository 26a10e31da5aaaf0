"""Scales and zero points: of tensors from what was measured, of weights from their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.relay.quantize.statistics import (
    Statistics,
    divergence,
    least_squares,
    percentile,
    power_of_two,
)

Array = np.ndarray[Any, Any]

ElementFunction = Callable[[Array], Array]
"""What becomes of each number of an array."""

METHODS: Final[dict[str, Callable[[Statistics], float]]] = {
    "mse": least_squares,
    "minmax": lambda found: found.largest,
    "percentile": percentile,
    "entropy": divergence,
    "power2": lambda found: power_of_two(found.largest),
}
"""How the largest magnitude that is still represented is chosen."""
_LEAST: Final = 1e-8
"""The least scale: of tensors that are zero throughout."""


@dataclass(frozen=True)
class Affine:
    """What 8-bit integers stand for: ``scale * (integer - zero)``."""

    scale: float
    zero: int
    dtype: str

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        kind = np.iinfo(self.dtype)
        return int(kind.min), int(kind.max)


def activation(
    found: Statistics, method: str, symmetric: bool = False, function: ElementFunction | None = None
) -> Affine:
    """The integers of a tensor: int8 around zero, or uint8 with a zero point. ``mse`` chooses their range for the
    results of a ``function``, where each element is only used as its argument."""
    threshold = METHODS[method](found)
    if symmetric:
        scale = threshold / (128.0 if method == "power2" else 127.0)
        return Affine(_float32(scale), 0, "int8")
    if method == "mse" and function is not None and found.limit:
        return _for_function(found, function)
    least, most = max(min(found.least, 0.0), -threshold), min(max(found.most, 0.0), threshold)
    return _between(least, most, method == "power2")


def _between(least: float, most: float, power_of_two_only: bool = False) -> Affine:
    """uint8 for a range that has zero in it, which is an integer then: padding and ReLU are exact."""
    scale = (most - least) / 255.0
    if power_of_two_only:
        scale = power_of_two(scale)
    scale = _float32(scale)
    return Affine(scale, int(np.clip(round(-least / scale), 0, 255)), "uint8")


def _for_function(found: Statistics, function: ElementFunction) -> Affine:
    """The range with the least squared error of a function's results: where a SiLU or a sigmoid is flat, no levels are
    spent. Each end is moved while the other one stays."""
    seen = np.flatnonzero(found.counts)
    values, counts = found.centres[seen], found.counts[seen]
    exact = function(values)
    ends = [min(found.least, 0.0), max(found.most, 0.0)]
    best, chosen = np.inf, _between(ends[0], ends[1])
    for place in (0, 1, 0, 1):
        largest = ends[place]
        for share in np.geomspace(1.0, 1 / 16, 24):
            tried = [*ends]
            tried[place] = largest * share
            affine = _between(tried[0], tried[1])
            integers = np.clip(np.rint(values / affine.scale) + affine.zero, 0, 255).astype(np.int64)
            made = function((np.arange(256) - affine.zero) * affine.scale)[integers]
            error = float((counts * (made - exact) ** 2).sum())
            if error < best:
                best, chosen, ends[place] = error, affine, tried[place]
    return chosen


def _float32(scale: float) -> float:
    return float(np.float32(max(scale, _LEAST)))


@dataclass(frozen=True)
class QuantisedWeight:
    """int8 weights, and a scale for each output channel."""

    integers: Array
    scale: Array
    axis: int

    def real(self) -> Array:
        """The weights that the integers stand for."""
        return np.asarray(
            self.integers.astype(np.float32) * _along(self.scale, self.integers.ndim, self.axis)
        )


def weights(value: Array, axis: int, method: str = "mse", per_channel: bool = True) -> QuantisedWeight:
    """Weights as int8 around zero. ``mse`` tries scales below the largest one, too; ``power2`` takes powers of two."""
    others = tuple(place for place in range(value.ndim) if place != axis)
    largest = np.abs(value).max(axis=others if per_channel else None, keepdims=True).astype(np.float64)
    largest = np.broadcast_to(
        largest, [1 if place != axis else value.shape[axis] for place in range(value.ndim)]
    )
    scale = np.maximum(largest / 127.0, _LEAST)
    if method == "power2":
        scale = 2.0 ** np.ceil(np.log2(scale))
    elif method == "mse" and per_channel:
        scale = _least_error(value.astype(np.float64), scale, others)
    scale = scale.astype(np.float32)
    integers = np.clip(np.rint(value / scale), -127, 127).astype(np.int8)
    return QuantisedWeight(integers, scale.reshape(-1), axis)


def _least_error(value: Array, scale: Array, others: tuple[int, ...]) -> Array:
    """For each channel the share of the largest scale with the least squared error."""
    best = np.full(scale.shape, np.inf)
    chosen = scale
    for share in (1.0, 0.95, 0.9, 0.85, 0.8):
        tried = scale * share
        made = np.clip(np.rint(value / tried), -127, 127) * tried
        error = ((made - value) ** 2).sum(axis=others, keepdims=True)
        chosen = np.where(error < best, tried, chosen)
        best = np.minimum(error, best)
    return chosen


def _along(vector: Array, rank: int, axis: int) -> Array:
    shape = [1] * rank
    shape[axis] = -1
    return vector.reshape(shape)
