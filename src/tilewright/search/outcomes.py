"""What becomes of a candidate: built or not, measured or not, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from statistics import median


class ErrorKind(IntEnum):
    """Where a candidate failed, with TVM's numbers (``MeasureErrorNo``), which stand in records."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


@dataclass(frozen=True)
class Built:
    """A candidate's code, as bytes of a ``compile.Unit``, or why there is none. ``digest`` names the code: candidates
    with equal loops have equal digests. ``seconds`` is what lowering and compiling took."""

    unit: bytes | None
    seconds: float
    digest: str = ""
    error_kind: ErrorKind = ErrorKind.NO_ERROR
    message: str = ""

    @property
    def is_good(self) -> bool:
        """True if there is code."""
        return self.unit is not None


@dataclass(frozen=True)
class Measured:
    """Seconds a call, one for each repeat, or why there are none.

    ``seconds`` is what building and measuring took together, ``timestamp`` when it ended. ``incumbent_costs`` are the
    times of the incumbent that alternated with it. ``outliers`` counts repeats that took half as long again as the
    fastest one: something else was running.
    """

    costs: tuple[float, ...]
    error_kind: ErrorKind
    message: str
    seconds: float
    timestamp: float
    incumbent_costs: tuple[float, ...] = ()
    outliers: int = 0

    @property
    def is_good(self) -> bool:
        """True if it was measured."""
        return self.error_kind == ErrorKind.NO_ERROR

    @property
    def cost(self) -> float:
        """The median without outliers; infinite for a failure."""
        return typical(self.costs) if self.is_good else float("inf")

    @property
    def gain(self) -> float:
        """How many times faster than the incumbent that alternated with it; 0 for a failure. Of several turns, every
        other one is taken apart, and the smaller of both gains counts: luck in one half does not make a gain."""
        if not self.is_good or not self.incumbent_costs:
            return 0.0
        apart = (0, 1) if len(self.costs) >= 4 else ()
        halves = [(self.incumbent_costs[first::2], self.costs[first::2]) for first in apart]
        return min(
            typical(others) / typical(own) for others, own in halves or [(self.incumbent_costs, self.costs)]
        )


_OUTLIER = 1.5
"""What else runs on the machine only ever makes a call slower: a time so many times the fastest is not the code's."""


def typical(costs: Sequence[float]) -> float:
    """The median of those that are no outliers; of four or more, of the faster half."""
    limit = _OUTLIER * min(costs)
    faster = sorted(costs)[: max((len(costs) + 1) // 2, 3)]
    return median(cost for cost in faster if cost <= limit)


def count_outliers(costs: Sequence[float]) -> int:
    """How many of the times are outliers."""
    return sum(cost > _OUTLIER * min(costs) for cost in costs)
