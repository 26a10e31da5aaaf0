"""Tunes the kernels of a model within a time, spending it where the model gains most.

The constructed schedule of every kernel is measured first. It stays the incumbent: what looks faster takes turns with
it before it counts. Everything measured is in the file of records at once, so that a run that is killed goes on where
it was when it is started again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilewright.search.building import build_all
from tilewright.search.decision_search import Assignment
from tilewright.search.kernel_records import KernelRecord, read_kernel_records
from tilewright.search.kernel_task import KernelTask
from tilewright.search.options import RunOptions
from tilewright.search.outcomes import Built, Measured
from tilewright.search.progress import CurvePoint, Silent, TuneListener, best_seconds
from tilewright.search.records import RecordFile
from tilewright.search.running import run_all

_PROMISING = 0.98
"""What measures so much faster than the best takes turns with the incumbent."""
_LEAST_GAIN = 1.01
"""Below that, a gain may be noise."""
_HOPE = 0.3
"""The part of a kernel's time that its first round may save; each round without a gain makes it less likely."""


@dataclass(frozen=True)
class TuneOptions:
    """How long to search, and how. ``round_size`` candidates of a kernel are built and measured at a time. ``version``
    is this package's, for the records."""

    seconds: float = float("inf")
    trials: int | None = None
    round_size: int = 8
    version: str = ""
    build_seconds: float = 30.0
    run: RunOptions = field(default_factory=lambda: RunOptions(number=1, repeat=3, min_repeat_ms=2))
    confirm: RunOptions = field(default_factory=lambda: RunOptions(number=1, repeat=9, min_repeat_ms=4))


class KernelTuner:
    """Searches for better choices for the kernels of a model."""

    def __init__(
        self,
        tasks: Sequence[KernelTask],
        file: RecordFile,
        options: TuneOptions = TuneOptions(),
        listener: TuneListener | None = None,
    ) -> None:
        self.tasks = list(tasks)
        self.file = file
        self.options = options
        self.listener = listener or Silent()
        self.trials = 0
        self.failures = 0
        self.resumed = 0
        self.outliers = 0
        self.current: KernelTask | None = None
        self.curve: list[CurvePoint] = []
        self._starts = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._starts

    @property
    def seconds_left(self) -> float:
        """Of the time that was given."""
        return max(0.0, self.options.seconds - self.seconds)

    def tune(self) -> None:
        """Search until the time or the trials are used up, or nothing is left to try."""
        self._resume()
        self._measure_untuned()
        while not self._is_over():
            task = max(self.tasks, key=self._promise, default=None)
            if task is None or self._promise(task) <= 0:
                break
            self._round(task)
        self.current = None
        self._note()

    def _is_over(self) -> bool:
        used_up = self.options.trials is not None and self.trials >= self.options.trials
        return used_up or self.seconds_left <= 0

    def _promise(self, task: KernelTask) -> float:
        """Seconds of the model that another round of a kernel may save."""
        if task.incumbent is None or task.is_exhausted:
            return 0.0
        unlikely: float = (1 + task.rounds_without_gain) ** 1.5
        return task.calls * task.best * _HOPE / unlikely

    def _resume(self) -> None:
        """Take over what earlier runs measured."""
        by_workload = {task.workload: task for task in self.tasks}
        records = [
            record for record in read_kernel_records(self.file).records if record.workload in by_workload
        ]
        untuned: dict[KernelTask, float] = {}
        for record in records:
            task = by_workload[record.workload]
            self.resumed += 1
            if record.choices == task.search.constructed:
                untuned[task] = record.cost
            elif record.gain is not None:
                task.search.tell(record.choices, 1 / record.gain if record.gain > 0 else float("inf"))
                task.confirmed[record.choices] = record.gain
            else:
                # Costs of one run compare with each other: the machine may have been busier in another.
                relative = record.cost / untuned[task] if untuned.get(task) else float("inf")
                task.search.tell(record.choices, relative)
        for task in self.tasks:
            self._take_best(task)

    def _take_best(self, task: KernelTask) -> bool:
        """Have the search go on around the best of what took turns with the incumbent; True if that is news."""
        before = task.gain
        task.gain = max([1.0, *task.confirmed.values()])
        if task.gain > 1.0:
            task.search.keep_best(max(task.confirmed, key=lambda one: task.confirmed[one]))
        return task.gain > before

    def _measure_untuned(self) -> None:
        """The constructed schedule of every kernel: what costs most is known before anything is searched."""
        built = build_all(
            [task.job(task.search.constructed) for task in self.tasks], self.options.build_seconds
        )
        for task, one in zip(self.tasks, built, strict=True):
            (measured,) = run_all([one], task.arguments, replace(self.options.run, repeat=5))
            self._record(task, task.search.constructed, measured)
            task.trials += 1
            if measured.is_good:
                task.incumbent, task.untuned = one, measured.cost
                task.search.tell(task.search.constructed, 1.0)
            else:
                task.failures += 1
                task.first_error = measured.message
                self.listener.failed(task)
            self.listener.changed(self)
        self._note()

    def _round(self, task: KernelTask) -> None:
        self.current = task
        starts = time.monotonic()
        proposed = task.search.propose(self._round_size(task))
        if not proposed:
            task.is_exhausted = True
            return
        built = build_all([task.job(one) for one in proposed], self.options.build_seconds)
        measured: dict[int, Measured] = {}

        def keep(number: int, one: Measured) -> None:
            measured[number] = one
            self._count(task, proposed[number], one)

        options = replace(self.options.run, give_up_above=2 * task.untuned)
        run_all(built, task.arguments, options, on_done=keep)
        improved = False
        ranked = sorted(measured, key=lambda number: measured[number].cost)
        for number in ranked[:2]:
            if measured[number].cost < _PROMISING * task.best:
                improved |= self._confirm(task, proposed[number], built[number])
        task.rounds += 1
        task.seconds_per_trial = (time.monotonic() - starts) / len(proposed)
        task.rounds_without_gain = 0 if improved else task.rounds_without_gain + 1
        if task.rounds == 1 and all(not one.is_good for one in measured.values()):
            self.listener.failed(task)
        self._note()

    def _round_size(self, task: KernelTask) -> int:
        """As many candidates as trials are left, and as the time that is left allows: those of some kernels take
        seconds to compile."""
        size: float = self.options.round_size if task.rounds else (self.options.round_size + 1) // 2
        if self.options.trials is not None:
            size = min(size, self.options.trials - self.trials)
        if task.seconds_per_trial > 0:
            size = min(size, self.seconds_left / 2 / task.seconds_per_trial)
        return max(int(size), 1)

    def _count(self, task: KernelTask, assignment: Assignment, measured: Measured) -> None:
        self.trials += 1
        task.trials += 1
        self.outliers += measured.outliers
        if not measured.is_good:
            self.failures += 1
            task.failures += 1
            task.first_error = task.first_error or measured.message
        task.search.tell(assignment, measured.cost / task.untuned)
        self._record(task, assignment, measured)
        self.listener.changed(self)

    def _confirm(self, task: KernelTask, assignment: Assignment, built: Built) -> bool:
        """Have a candidate take turns with the incumbent; True if it is the best now."""
        options = replace(self.options.confirm, outputs=len(task.request.outputs))
        (measured,) = run_all([built], task.arguments, options, task.incumbent)
        gain = measured.gain if measured.gain >= _LEAST_GAIN else min(measured.gain, 1.0)
        self._record(task, assignment, measured, gain)
        task.confirmed[assignment] = gain
        task.search.tell(assignment, 1 / gain if gain > 0 else float("inf"))
        if not measured.is_good:
            self.failures += 1
            task.failures += 1
            task.first_error = task.first_error or measured.message
        return self._take_best(task)

    def _record(
        self, task: KernelTask, assignment: Assignment, measured: Measured, gain: float | None = None
    ) -> None:
        record = KernelRecord.of(task.workload, dict(assignment), measured, gain)
        self.file.append([record.line(self.options.version)])

    def _note(self) -> None:
        if any(task.incumbent is not None for task in self.tasks):
            self.curve.append(CurvePoint(self.seconds, self.trials, best_seconds(self.tasks)))
        self.listener.changed(self)
