"""AutoScheduler over the kernels of a model, within a time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.auto_scheduler.measure_record import RecordToFile
from tilewright.auto_scheduler.measurer import ProgramMeasurer, Progress
from tilewright.auto_scheduler.relay_integration import extract_tasks
from tilewright.auto_scheduler.runners import LocalRunner
from tilewright.auto_scheduler.search_task import SearchTask
from tilewright.auto_scheduler.task_callbacks import TaskSchedulerCallback
from tilewright.auto_scheduler.task_scheduler import TaskScheduler
from tilewright.auto_scheduler.tuning_options import TuningOptions
from tilewright.driver.tvmc.compiler import Settings
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.search.kernel_tuner import TuneOptions
from tilewright.search.progress import CurvePoint, Silent, TuneListener, best_seconds

_ROUND = 16
_POPULATION = {
    "evolutionary_search_population": 256,
    "evolutionary_search_num_iters": 2,
    "sample_init_min_population": 16,
}
"""Smaller than the default: rounds must be short where there is a time to keep."""
_MOST = 1_000_000
"""Candidates of a search that only its time ends."""


@dataclass(eq=False)
class StateTask:
    """A task of AutoScheduler, and how far it is."""

    task: SearchTask
    calls: int
    measurer: ProgramMeasurer | None = None

    @property
    def known(self) -> Progress:
        """What is known of it."""
        return Progress() if self.measurer is None else self.measurer.progress_of(self.task)

    @property
    def name(self) -> str:
        """What it computes."""
        return f"{self.task.desc or self.task.workload_key}"

    @property
    def operator(self) -> str:
        """The same."""
        return self.name

    @property
    def untuned(self) -> float:
        """The time of the constructed schedule."""
        return self.known.untuned.seconds if self.known.untuned is not None else float("inf")

    @property
    def best(self) -> float:
        """The better of the constructed schedule and what was found."""
        return min(self.known.best_cost, self.untuned)

    @property
    def gain(self) -> float:
        """Of the best over the constructed schedule."""
        return self.untuned / self.best if self.untuned != float("inf") else 1.0

    @property
    def trials(self) -> int:
        """Candidates that were built, or were to be."""
        return self.known.trials

    @property
    def failures(self) -> int:
        """Those that failed."""
        return self.known.failures

    @property
    def first_error(self) -> str:
        """Why the first of those failed."""
        return self.known.first_error

    @property
    def changes(self) -> Mapping[str, Any]:
        """A state is another schedule altogether."""
        return {"steps": len(self.known.best_state.transform_steps)} if self.gain > 1 else {}


def state_tasks(model: TVMCModel, settings: Settings) -> list[StateTask]:
    """The tasks of a model."""
    found, weights = extract_tasks(model.mod, model.params, settings.target, opt_level=settings.opt_level)
    return [StateTask(task, int(weight)) for task, weight in zip(found, weights, strict=True)]


class _TimeIsUp(Exception):
    """Ends a search between two rounds."""


class StateTuner(TaskSchedulerCallback):
    """Searches for schedules of the kernels of a model; see ``KernelTuner``, whose face it has."""

    def __init__(
        self,
        tasks: Sequence[StateTask],
        records: str,
        options: TuneOptions,
        listener: TuneListener | None = None,
    ) -> None:
        self.tasks = list(tasks)
        self.records = records
        self.options = options
        self.listener = listener or Silent()
        self.current: StateTask | None = None
        self.curve: list[CurvePoint] = []
        self.resumed = 0
        self._starts = time.monotonic()
        self._told: set[str] = set()

    @property
    def trials(self) -> int:
        """Candidates that were measured."""
        return sum(task.trials for task in self.tasks)

    @property
    def failures(self) -> int:
        """Those that failed."""
        return sum(task.failures for task in self.tasks)

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._starts

    @property
    def seconds_left(self) -> float:
        """Of the time that was given."""
        return max(0.0, self.options.seconds - self.seconds)

    def tune(self, resumes: bool = False) -> None:
        """Search until the time or the trials are used up. ``resumes`` starts from the records of earlier runs."""
        if not self.tasks:
            return
        scheduler = TaskScheduler(
            [one.task for one in self.tasks],
            [one.calls for one in self.tasks],
            load_log_file=self.records if resumes else None,
            callbacks=[self],
        )
        options = TuningOptions(
            num_measure_trials=self.options.trials or _MOST,
            num_measures_per_round=_ROUND,
            verbose=0,
            runner=LocalRunner(number=1, repeat=3, min_repeat_ms=2),
            measure_callbacks=[RecordToFile(self.records)],
        )
        try:
            scheduler.tune(options, search_policy_params=_POPULATION)
        except _TimeIsUp:
            for policy in scheduler.search_policies:
                assert scheduler.measurer is not None
                policy.finish(scheduler.measurer)
        self.current = None
        self._note()

    def pre_tune(self, task_scheduler: Any, task_id: int) -> None:
        """Before a round of a task."""
        for task in self.tasks:
            task.measurer = task_scheduler.measurer
        self.current = self.tasks[task_id]
        self.listener.changed(self)

    def post_tune(self, task_scheduler: Any, task_id: int) -> None:
        """After a round of a task: ends the search where the time is up."""
        task = self.tasks[task_id]
        if task.trials and task.failures == task.trials and task.name not in self._told:
            self._told.add(task.name)
            self.listener.failed(task)
        self._note()
        if self.seconds_left <= 0:
            raise _TimeIsUp

    def _note(self) -> None:
        self.curve.append(CurvePoint(self.seconds, self.trials, best_seconds(self.tasks)))
        self.listener.changed(self)
