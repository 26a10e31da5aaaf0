"""Databases of measurements: in memory, or a user's own."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult
from tilewright.autotvm.record import decode, encode, measure_str_key
from tilewright.support.errors import TilewrightError

logger = logging.getLogger("autotvm")


class Database(ABC):
    """Results by input."""

    @abstractmethod
    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        """The latest result of an input, None if there is none; with ``get_all``, the list of all."""

    @abstractmethod
    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Save a result; with ``extend``, beside those that are there."""


class DummyDatabase(Database):
    """Keeps records in memory, in their text form."""

    def __init__(self) -> None:
        self.db: dict[str, list[str]] = {}

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        """The latest result of an input, or all of them in the order in which they were saved."""
        results = [result for _, result in self._records(measure_str_key(inp))]
        if get_all:
            return results
        return max(results, key=lambda result: result.timestamp, default=None)

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Save a result."""
        key = measure_str_key(inp)
        before = self.db.get(key, []) if extend else []
        self.db[key] = [*before, encode(inp, res)]

    def filter(
        self, func: Callable[[MeasureInput, list[MeasureResult]], bool]
    ) -> list[tuple[MeasureInput, list[MeasureResult]]]:
        """The inputs, with all their results, that a function accepts."""
        found = []
        for key in self.db:
            records = self._records(key)
            if records and func(records[0][0], [result for _, result in records]):
                found.append((records[0][0], [result for _, result in records]))
        return found

    def flush(self) -> None:
        """Forget everything."""
        self.db.clear()

    def _records(self, key: str) -> list[tuple[MeasureInput, MeasureResult]]:
        decoded = [decode(line) for line in self.db.get(key, [])]
        return [record for record in decoded if record is not None]


class RedisDatabase(DummyDatabase):
    """Records on a Redis server. Not in this version: files of records take concurrent writers."""

    def __init__(self, db_index: int = 1) -> None:
        raise TilewrightError(
            "records are not kept on Redis servers in this version: append them to one file from several processes "
            "with autotvm.callback.log_to_file, or keep them in memory with DummyDatabase"
        )
