"""What is known of a tensor after many runs: its extremes, and how often its values occur.

Values are counted in bins of equal width over a symmetric range. Where a value lies outside, the range doubles and
neighbouring bins are merged, so that one pass over the data is enough and none of it is kept.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

BINS: Final = 16384
"""Of the whole range: enough for values a hundred times smaller than an outlier."""
LEVELS: Final = 128
"""Levels of 8-bit integers on one side of zero."""
STEPS: Final = 128
"""Thresholds that a search tries."""


class Statistics:
    """The running statistics of one tensor."""

    def __init__(self) -> None:
        self.least, self.most = np.inf, -np.inf
        self.limit = 0.0
        self.counts: Array = np.zeros(BINS, np.int64)

    def add(self, values: Array) -> None:
        """Count the values of one run."""
        flat = np.asarray(values).reshape(-1)
        if not flat.size:
            return
        self.least, self.most = min(self.least, float(flat.min())), max(self.most, float(flat.max()))
        needed = max(abs(self.least), abs(self.most))
        if self.limit == 0.0:
            if needed == 0.0:
                self.counts[BINS // 2] += flat.size
                return
            self.limit = needed
        while needed > self.limit:
            self._double()
        self.counts += np.histogram(flat, BINS, (-self.limit, self.limit))[0]

    def _double(self) -> None:
        merged = self.counts.reshape(-1, 2).sum(1)
        self.counts = np.zeros_like(self.counts)
        self.counts[BINS // 4 : 3 * BINS // 4] = merged
        self.limit *= 2

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return max(abs(self.least), abs(self.most)) if np.isfinite(self.least) else 0.0

    @property
    def centres(self) -> Array:
        """The middle of each bin."""
        width = 2 * self.limit / BINS
        return (np.arange(BINS) + 0.5) * width - self.limit

    def magnitudes(self) -> Array:
        """How often magnitudes occur, in bins from zero to ``limit``."""
        half = BINS // 2
        return np.asarray(self.counts[half:] + self.counts[:half][::-1])

    def power(self) -> float:
        """The mean of the squares."""
        total = int(self.counts.sum())
        return float((self.counts * self.centres**2).sum() / total) if total else 0.0


def percentile(found: Statistics, share: float = 0.99999) -> float:
    """The magnitude that this share of the values does not exceed."""
    counts = found.magnitudes()
    if not found.limit:
        return 0.0
    reached = int(np.searchsorted(np.cumsum(counts), share * counts.sum()))
    return min((reached + 1) * found.limit / len(counts), found.largest)


def divergence(found: Statistics, levels: int = LEVELS) -> float:
    """The threshold after which the quantised distribution is nearest to the real one, by Kullback and Leibler."""
    counts = found.magnitudes().astype(np.float64)
    if not found.limit:
        return 0.0
    used = int(np.flatnonzero(counts)[-1]) + 1
    # Zeros say nothing about the threshold: after a ReLU, half of all values are zero.
    counts[0] = 0.0
    if used <= levels or not counts.any():
        return found.largest
    best, chosen = np.inf, used
    for size in np.unique(np.linspace(levels, used, STEPS).astype(int)):
        kept = counts[:size].copy()
        if not kept.any():
            continue
        real = kept.copy()
        real[-1] += counts[size:].sum()
        groups = np.arange(size) * levels // size
        sums, filled = np.bincount(groups, kept, levels), np.bincount(groups, kept > 0, levels)
        means = np.divide(sums, filled, out=np.zeros_like(sums), where=filled > 0)
        made = np.where(kept > 0, means[groups], 0.0)
        # What was cut off has no level of its own.
        made[-1] = max(made[-1], 1e-4 * real[-1])
        real, made = real / real.sum(), made / made.sum()
        seen = real > 0
        distance = float((real[seen] * np.log(real[seen] / np.maximum(made[seen], 1e-12))).sum())
        if distance < best:
            best, chosen = distance, int(size)
    return min(chosen * found.limit / len(counts), found.largest)


def least_squares(found: Statistics, levels: int = LEVELS) -> float:
    """The threshold with the least mean squared error of rounding and clipping together."""
    if not found.limit:
        return 0.0
    counts, width = found.magnitudes().astype(np.float64), found.limit / (BINS // 2)
    centres = (np.arange(len(counts)) + 0.5) * width
    best, chosen = np.inf, found.largest
    for threshold in np.geomspace(1 / STEPS, 1.0, STEPS) * found.largest:
        step = threshold / levels
        # Uniform noise of rounding inside, the distance to the threshold outside.
        error = np.where(centres <= threshold, step * step / 12, (centres - threshold) ** 2)
        # A bin at zero holds mostly exact zeros, which are exact.
        error[0] = 0.0
        total = float((counts * error).sum())
        if total < best:
            best, chosen = total, float(threshold)
    return chosen


def power_of_two(magnitude: float) -> float:
    """The least power of two that is not smaller."""
    return float(2.0 ** np.ceil(np.log2(magnitude))) if magnitude > 0 else 1.0
