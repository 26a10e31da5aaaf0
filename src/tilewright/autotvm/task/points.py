"""Walking through a space by index: what all tuners need of it.

An index is a number in a mixed base, one digit for each knob, the first knob the lowest. Where a filter leaves fewer
points, functions here draw from those that are left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from math import prod

import numpy as np

from tilewright.autotvm.utils import sample_ints

_MOST_ENUMERATED = 1 << 20


def point2knob(p: int, dims: Sequence[int]) -> list[int]:
    """The value of each knob, by its position, for an index."""
    found = []
    for size in dims:
        found.append(p % size)
        p //= size
    return found


def knob2point(knob: Sequence[int], dims: Sequence[int]) -> int:
    """The index of values."""
    return sum(value * prod(dims[:number]) for number, value in enumerate(knob))


class Points(ABC):
    """The points of a space."""

    _valid: list[int] | None

    @property
    @abstractmethod
    def dims(self) -> list[int]:
        """The number of values of each knob."""

    @property
    @abstractmethod
    def range_length(self) -> int:
        """The number of indices."""

    @property
    @abstractmethod
    def has_filter(self) -> bool:
        """True if not every index is a point."""

    @abstractmethod
    def is_index_valid(self, index: int) -> bool:
        """True for a point of the space."""

    def point2knob(self, point: int) -> list[int]:
        """The value of each knob, by its position."""
        return point2knob(point, self.dims)

    def knob2point(self, knob: Sequence[int]) -> int:
        """The index of values."""
        return knob2point(knob, self.dims)

    def valid_indices(self) -> list[int]:
        """All points; of very large spaces that a filter thins, a sample."""
        if self._valid is None:
            total = self.range_length
            tried: Collection[int] = range(total)
            if total > _MOST_ENUMERATED:
                tried = sorted(sample_ints(0, total, _MOST_ENUMERATED))
            self._valid = [index for index in tried if self.is_index_valid(index)]
        return self._valid

    def clear_cache(self) -> None:
        """Forget which points passed the filter."""
        self._valid = None

    def subrange_length(self, start: int, end: int) -> int:
        """The number of points from ``start`` up to ``end``."""
        if not 0 <= start <= end <= self.range_length:
            raise IndexError(f"{start} to {end} is not a range of the {self.range_length} indices")
        if not self.has_filter:
            return end - start
        return sum(start <= index < end for index in self.valid_indices())

    def get_rand_index(
        self, start: int | None = None, end: int | None = None, to_exclude: Collection[int] = ()
    ) -> int:
        """A random point of a range that is not among those to exclude; -1 where there is none."""
        low, high = start or 0, self.range_length if end is None else end
        for _ in range(64):
            index = low + int(np.random.randint(0, max(high - low, 1), dtype=np.int64))
            if index not in to_exclude and low <= index < high and self.is_index_valid(index):
                return index
        every: Sequence[int] = self.valid_indices() if self.has_filter else range(low, high)
        left = [index for index in every if low <= index < high and index not in to_exclude]
        return left[np.random.randint(len(left))] if left else -1

    def get_next_index(
        self, index: int, n: int = 1, start: int | None = None, end: int | None = None
    ) -> int | None:
        """The point so many places behind an index; None behind the last."""
        low, high = start or 0, self.range_length if end is None else end
        if not self.has_filter:
            found = max(index, low - 1) + n
            return found if found < high else None
        behind = [one for one in self.valid_indices() if one > index and low <= one < high]
        return behind[n - 1] if len(behind) >= n else None

    def sample_ints(self, m: int) -> list[int]:
        """So many different points, or all of them."""
        every: Sequence[int] = self.valid_indices() if self.has_filter else range(self.range_length)
        return [every[place] for place in sample_ints(0, len(every), min(m, len(every)))]

    def random_walk(self, point: int) -> int:
        """A point that differs in one knob."""
        dims = self.dims
        movable = [number for number, size in enumerate(dims) if size > 1]
        if not movable:
            return point
        for _ in range(16):
            knob = self.point2knob(point)
            number = movable[np.random.randint(len(movable))]
            value = np.random.randint(dims[number] - 1)
            knob[number] = int(value if value < knob[number] else value + 1)
            found = self.knob2point(knob)
            if self.is_index_valid(found):
                return found
        return self.get_rand_index()
