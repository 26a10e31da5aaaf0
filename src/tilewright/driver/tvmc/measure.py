"""The difference between two tensors, and whether it exceeds what is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Deviation:
    """The worst absolute error of a tensor, the same relative to its largest value, and what is allowed of the former.

    Both are infinite where shapes or types differ, or one has a number where the other has none.
    """

    absolute: float
    relative: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """True if the error is small enough."""
        return self.absolute <= self.allowed and self.absolute != float("inf")

    @property
    def excess(self) -> float:
        """The error in units of what is allowed."""
        if self.absolute == 0.0:
            return 0.0
        return self.absolute / self.allowed if self.allowed else float("inf")

    def worse(self, other: Deviation) -> Deviation:
        """The one that exceeds what is allowed by more, or comes closer to it."""
        return other if other.excess > self.excess else self


def deviation(
    actual: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    allowed: float = 0.0,
    tolerance: float | None = None,
) -> Deviation:
    """The deviation of a tensor from what it should be. ``allowed`` is the largest error that counts as agreement;
    ``tolerance``, where it is given, replaces it: the same relative to the largest value."""
    largest = _largest(expected)
    if tolerance is not None:
        allowed = tolerance * largest
    wrong = Deviation(float("inf"), float("inf"), allowed)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return wrong
    if actual.size == 0:
        return Deviation(0.0, 0.0, allowed)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    first, second = actual.astype(wide), expected.astype(wide)
    finite = np.isfinite(second)
    if not np.array_equal(finite, np.isfinite(first)):
        return wrong
    if not np.array_equal(first[~finite], second[~finite], equal_nan=True):
        return wrong
    if not finite.any():
        return Deviation(0.0, 0.0, allowed)
    error = float(np.max(np.abs(first[finite] - second[finite])))
    relative = 0.0 if error == 0.0 else error / largest if largest else float("inf")
    return Deviation(error, relative, allowed)


def _largest(value: np.ndarray[Any, Any]) -> float:
    """The largest finite value."""
    wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    finite = wide[np.isfinite(wide)]
    return float(np.max(np.abs(finite), initial=0.0))
