"""Tuners that walk through the indices of a space: in order, and at random."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.autotvm.tuner.tuner import Tuner


class IndexBaseTuner(Tuner):
    """Walks through the indices of ``range_idx``, (first, last), or all of them."""

    def __init__(self, task: Any, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task)
        space = task.config_space
        if range_idx is not None and not (
            len(range_idx) == 2 and 0 <= range_idx[0] <= range_idx[1] < space.range_length
        ):
            raise ValueError(
                f"range_idx={range_idx!r} is not a first and a last index of the space, "
                f"which has {space.range_length}"
            )
        self.index_offset = 0 if range_idx is None else range_idx[0]
        self._end = space.range_length if range_idx is None else range_idx[1] + 1
        self.range_length: int = space.subrange_length(self.index_offset, self._end)
        self.counter = 0
        self.visited: list[int] = []
        self._seen: set[int] = set()

    def has_next(self) -> bool:
        """True if not every index was proposed."""
        return self.counter < self.range_length

    def takes_default(self, index: int) -> bool:
        """True if the default is in the range."""
        if not self.index_offset <= index < self._end:
            return False
        self._visit(index)
        return True

    def _visit(self, index: int) -> None:
        self.counter += 1
        self.visited.append(index)
        self._seen.add(index)

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Nothing: these tuners do not learn."""


class GridSearchTuner(IndexBaseTuner):
    """Every index in order."""

    def __init__(self, task: Any, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task, range_idx)
        self._next: int = self.index_offset

    def next_batch(self, batch_size: int) -> list[Any]:
        """The next indices."""
        space = self.task.config_space
        made: list[Any] = []
        while len(made) < batch_size and self.has_next():
            index = self._next
            found = index if space.is_index_valid(index) else space.get_next_index(index, end=self._end)
            if found is None:
                break
            self._next = found + 1
            if found not in self._seen:
                self._visit(found)
                made.append(space.get(found))
        return made


class RandomTuner(IndexBaseTuner):
    """Every index in random order."""

    def next_batch(self, batch_size: int) -> list[Any]:
        """Random indices that were not proposed before."""
        space = self.task.config_space
        made: list[Any] = []
        while len(made) < batch_size and self.has_next():
            index = space.get_rand_index(self.index_offset, self._end, self._seen)
            if index < 0:
                break
            self._visit(index)
            made.append(space.get(index))
        return made
