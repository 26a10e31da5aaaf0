"""The difference between two tensors, and whether it exceeds the tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Relative to the largest value of the tensor. Sums in another order, fused multiply-adds and fast convolutions differ
# by a few units in the last place for every thousand terms; a wrong kernel differs by far more than these.
_TOLERANCES = {"float64": 1e-9, "float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2}


@dataclass(frozen=True)
class Deviation:
    """The worst absolute error of a tensor, the same relative to its largest value, and what is allowed of the latter.

    Both are infinite where shapes or types differ, or one has a number where the other has none.
    """

    absolute: float
    relative: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """True if the error is small enough."""
        return self.relative <= self.tolerance

    def worse(self, other: Deviation) -> Deviation:
        """The one with the larger relative error."""
        return other if other.relative > self.relative else self


def deviation(
    actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], tolerance: float | None = None
) -> Deviation:
    """The deviation of a tensor from what it should be. Whole numbers have to be equal unless a tolerance is given."""
    allowed = tolerance if tolerance is not None else _TOLERANCES.get(str(expected.dtype), 0.0)
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
    largest = float(np.max(np.abs(second[finite])))
    relative = 0.0 if error == 0.0 else error / largest if largest else float("inf")
    return Deviation(error, relative, allowed)
