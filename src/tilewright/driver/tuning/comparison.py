"""Compares a model as a whole with and without what a search found, and withdraws what does not bear out.

A kernel that is faster on its own need not make the model faster: other kernels' data are in the caches then.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright import __version__
from tilewright.auto_scheduler.measure_record import dump_record_to_string
from tilewright.auto_scheduler.measure_types import MeasureErrorNo, MeasureResult
from tilewright.auto_scheduler.untuned import Comparison as MeasuredState
from tilewright.auto_scheduler.untuned_note import untuned_note
from tilewright.driver.tuning.records import AppliedRecords, applied_records
from tilewright.driver.tvmc.compiler import Settings
from tilewright.driver.tvmc.executors import Runnable
from tilewright.driver.tvmc.export import Compiled
from tilewright.driver.tvmc.first_difference import runnable_of
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.search.kernel_records import Gains, KernelRecord, Workload
from tilewright.search.outcomes import ErrorKind, Measured, typical
from tilewright.search.records import RecordFile

NOISE = 1.005
"""Two runs of the same model differ by that much; one that is not faster by more keeps its constructed schedules."""
_STRICTER = (1.0, 1.05, 1.15)
"""Gains that a kernel must have had to be used, where the model as a whole is not faster with all of them."""
_LEAST_TURNS = 7


@dataclass(frozen=True)
class Comparison:
    """Seconds of a run, untuned and tuned, from runs that took turns."""

    untuned: float
    tuned: float
    runs: int

    @property
    def gain(self) -> float:
        """How many times faster the tuned model is."""
        return self.untuned / self.tuned


@dataclass(frozen=True)
class Kept:
    """What a comparison came to: the times, and the kernels that use what was found, by their workloads."""

    comparison: Comparison | None
    workloads: frozenset[Workload]
    states: frozenset[str]
    """Of AutoScheduler's tasks, by their keys."""


class ModelComparison:
    """A model that was compiled untuned, its inputs, and the file with what was found."""

    def __init__(
        self,
        model: TVMCModel,
        settings: Settings,
        untuned: Compiled,
        values: Mapping[str, Any],
        records: str,
        seconds: float,
    ) -> None:
        self.model, self.settings, self.values = model, settings, values
        self.records, self.seconds = records, seconds
        self.untuned = _runnable(untuned, values)

    def compare(self) -> Kept:
        """Compare; what is not kept is withdrawn in the file, so that no later build uses it."""
        comparison = None
        for least in _STRICTER:
            with applied_records(self.records) as applied:
                assert applied is not None
                left_out = _leave_out(applied, least)
                tuned = self.settings.compile(self.model.mod, self.model.params)
            if not applied.used:
                break
            comparison = self._take_turns(_runnable(tuned, self.values))
            if comparison.gain >= NOISE:
                self._withdraw(*left_out)
                states = applied.scope.used_states
                return Kept(comparison, frozenset(applied.scope.kernels.used), frozenset(states))
        with applied_records(self.records) as applied:
            assert applied is not None
            self._withdraw(*_leave_out(applied, float("inf")))
        return Kept(comparison, frozenset(), frozenset())

    def _take_turns(self, tuned: Runnable) -> Comparison:
        once = max(self.untuned.benchmark(1, 1).mean, 1e-6)
        number = max(1, int(0.02 / once))
        ends = time.monotonic() + self.seconds / len(_STRICTER)
        first: list[float] = []
        second: list[float] = []
        while len(first) < _LEAST_TURNS or time.monotonic() < ends:
            first.append(self.untuned.benchmark(1, number).mean)
            second.append(tuned.benchmark(1, number).mean)
        return Comparison(typical(first), typical(second), number * len(first))

    def _withdraw(self, kernels: Gains, states: Mapping[Any, MeasuredState]) -> None:
        """Say of what was found for some kernels that it is not faster after all."""
        now = time.time()
        lines = []
        for workload, known in kernels.items():
            for choices in known:
                nothing = Measured((), ErrorKind.NO_ERROR, "", 0.0, now)
                lines.append(KernelRecord.of(workload, dict(choices), nothing, 1.0).line(__version__))
        for found in states.values():
            result = MeasureResult([found.cost], MeasureErrorNo.NO_ERROR, "", 0.0, now)
            # As a record that is as fast as the constructed schedule.
            lines.append(untuned_note(found.measured.task, found.cost))
            lines.append(dump_record_to_string(found.measured, result).strip())
        RecordFile(self.records).append(lines)


def _leave_out(applied: AppliedRecords, least: float) -> tuple[Gains, dict[Any, MeasuredState]]:
    """Do not use records of a smaller gain; gives those."""
    scope = applied.scope
    small = [workload for workload, (_, gain) in scope.kernels.best.items() if gain < least]
    for workload in small:
        del scope.kernels.best[workload]
    kernels = {workload: scope.kernels.gains[workload] for workload in small}
    states: dict[Any, MeasuredState] = {}
    if scope.states is not None:
        for key, found in list(scope.states.best.items()):
            if found.untuned / found.cost < least:
                states[key] = scope.states.best.pop(key)
    return kernels, states


def _runnable(compiled: Compiled, values: Mapping[str, Any]) -> Runnable:
    made = runnable_of(compiled)
    made.set_inputs(values)
    return made
