"""What is measured and what came of it: the inputs and results that builders, runners, records and models exchange."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.auto_scheduler.steps import steps_from_records, steps_to_records
from tilewright.auto_scheduler.task import Task
from tilewright.auto_scheduler.workload_registry import (
    deserialize_workload_registry_entry,
    serialize_workload_registry_entry,
)
from tilewright.search.measure import Built, ErrorKind
from tilewright.support.errors import ScheduleError

if TYPE_CHECKING:
    from tilewright.auto_scheduler.loop_state import State


class MeasureErrorNo(IntEnum):
    """Where a candidate failed."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


class Seconds(float):
    """A time, which programs for TVM read as ``.value``."""

    __slots__ = ()

    @property
    def value(self) -> float:
        """The number."""
        return float(self)


class MeasureInput:
    """A program to measure: a state of a task. One that was read from a record has the steps of its state only."""

    def __init__(self, task: Task, state: State | StateObject) -> None:
        self.task = task
        self.state = state

    def serialize(self) -> list[Any]:
        """What another process needs to know of it, as JSON has it."""
        steps = steps_to_records(self.state.transform_steps)
        return [
            json.dumps([self.task.to_record(), [[], steps]]),
            serialize_workload_registry_entry(self.task.workload_key),
        ]

    @staticmethod
    def deserialize(data: Sequence[Any]) -> MeasureInput:
        """What ``serialize`` gave."""
        try:
            text, entry = data
            task, (_, steps) = json.loads(text)
        except (TypeError, ValueError) as error:
            raise ScheduleError(f"the data are not those of a measured input: {error}") from error
        deserialize_workload_registry_entry(entry)
        return MeasureInput(Task.from_record(task), StateObject((), steps_from_records(steps)))

    def __repr__(self) -> str:
        return f"MeasureInput({self.task.workload_key}, {len(self.state.transform_steps)} steps)"


class BuildResult:
    """The code of a program, or why there is none."""

    def __init__(
        self,
        filename: str | None,
        args: Sequence[Any],
        error_no: int,
        error_msg: str | None,
        time_cost: float,
        built: Built | None = None,
    ) -> None:
        self.filename = filename or ""
        self.args = list(args)
        self.error_no = MeasureErrorNo(error_no)
        self.error_msg = error_msg or ""
        self.time_cost = float(time_cost)
        self.built = (
            built
            if built is not None
            else Built(None, self.time_cost, "", ErrorKind(error_no), self.error_msg)
        )

    def __repr__(self) -> str:
        return f"BuildResult(error_no={self.error_no!r}, time_cost={self.time_cost:.3g})"


class MeasureResult:
    """The times of a program in seconds, or why there are none; what it took to build and measure it, and when that
    was."""

    def __init__(
        self,
        costs: Iterable[Any],
        error_no: int,
        error_msg: str | None,
        all_cost: float,
        timestamp: float | None = None,
    ) -> None:
        self.costs = tuple(Seconds(getattr(cost, "value", cost)) for cost in costs)
        self.error_no = MeasureErrorNo(error_no)
        self.error_msg = error_msg or ""
        self.all_cost = float(all_cost)
        self.timestamp = time.time() if timestamp is None else float(timestamp)

    @property
    def mean(self) -> float:
        """The mean of the times; infinite for a failure."""
        if self.error_no != MeasureErrorNo.NO_ERROR or not self.costs:
            return float("inf")
        return sum(self.costs) / len(self.costs)

    def __repr__(self) -> str:
        if self.error_no == MeasureErrorNo.NO_ERROR:
            times = ", ".join(f"{cost:.4g}" for cost in self.costs)
            spent, when = f"{self.all_cost:.4g}", f"{self.timestamp:.0f}"
            return f"MeasureResult(cost:[{times}], error_no:0, all_cost:{spent}, Tstamp:{when})"
        return f"MeasureResult(error_no:{self.error_no.name}, error_msg:{self.error_msg}, all_cost:{self.all_cost:.4g})"


class MeasureCallback:
    """Told of every batch that was measured; with ``each``, of every program as soon as it was."""

    each = False

    def callback(self, policy: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Called after a batch; ``policy`` is the search that asked for it."""
        raise NotImplementedError(f"{type(self).__name__} has no method callback(policy, inputs, results)")

    def untuned(self, policy: Any, seconds: float) -> None:
        """Called when the schedule that is constructed without search was measured."""


class PythonBasedMeasureCallback(MeasureCallback):
    """The base of callbacks in TVM's programs."""
