"""How far a search is, whatever searches: what the live table, the report and the last line are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class TaskProgress(Protocol):
    """How far a task is. Times are seconds a call, infinite where nothing was measured; gains are how many times faster
    than the constructed schedule."""

    @property
    def name(self) -> str:
        """The kernel, as people know it."""

    @property
    def operator(self) -> str:
        """The operator that it is scheduled for."""

    @property
    def calls(self) -> int:
        """How often a run of the model calls it."""

    @property
    def untuned(self) -> float:
        """The time of the constructed schedule."""

    @property
    def best(self) -> float:
        """The time of the best schedule."""

    @property
    def gain(self) -> float:
        """Of the best over the constructed schedule; 1 where that is the best."""

    @property
    def trials(self) -> int:
        """Candidates that were built, or were to be."""

    @property
    def failures(self) -> int:
        """Those that failed."""

    @property
    def first_error(self) -> str:
        """Why the first of those failed."""

    @property
    def changes(self) -> Mapping[str, Any]:
        """What the best has that the constructed schedule has not, by name."""


class SearchProgress(Protocol):
    """How far a search is."""

    @property
    def tasks(self) -> Sequence[TaskProgress]:
        """Its tasks."""

    @property
    def current(self) -> TaskProgress | None:
        """The task that it is at."""

    @property
    def trials(self) -> int:
        """Candidates that this run measured."""

    @property
    def failures(self) -> int:
        """Those that failed."""

    @property
    def seconds(self) -> float:
        """How long it has been running."""

    @property
    def seconds_left(self) -> float:
        """Of the time that was given."""


class TuneListener(Protocol):
    """Is told what happens."""

    def changed(self, search: SearchProgress) -> None:
        """Something was measured."""

    def failed(self, task: TaskProgress) -> None:
        """No candidate of a kernel works; ``task.first_error`` says why."""


class Silent:
    """Where nobody looks on."""

    def changed(self, search: SearchProgress) -> None:
        """Something was measured."""

    def failed(self, task: TaskProgress) -> None:
        """No candidate of a kernel works."""


@dataclass(frozen=True)
class CurvePoint:
    """How far a search was at a time: the sum over all kernels of calls times the best."""

    seconds: float
    trials: int
    kernel_seconds: float


def untuned_seconds(tasks: Sequence[TaskProgress]) -> float:
    """What the kernels that could be measured take in one run of the model, with their constructed schedules."""
    return sum(task.calls * task.untuned for task in tasks if task.untuned != float("inf"))


def best_seconds(tasks: Sequence[TaskProgress]) -> float:
    """The same, each with its best."""
    return sum(task.calls * task.best for task in tasks if task.untuned != float("inf"))


def has_failed(task: TaskProgress) -> bool:
    """True if nothing of a task could be measured."""
    return task.trials > 0 and task.failures >= task.trials
