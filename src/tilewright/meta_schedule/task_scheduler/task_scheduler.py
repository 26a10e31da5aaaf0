"""Task schedulers: which of several tasks gets the next measurements."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.meta_schedule.builder.builder import Builder, BuilderInput
from tilewright.meta_schedule.database.database import Database, TuningRecord
from tilewright.meta_schedule.runner.runner import (
    Runner,
    RunnerFuture,
    RunnerInput,
    RunnerResult,
    known_future,
)
from tilewright.meta_schedule.search_strategy.search_strategy import SearchStrategy
from tilewright.meta_schedule.tune_context import TuneContext
from tilewright.meta_schedule.utils import require_overridden
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Object
from tilewright.target.target import Target


class TaskScheduler(Object):
    """Tunes several tasks with one builder, one runner and one database."""

    def __init__(
        self, tasks: Sequence[TuneContext], builder: Builder, runner: Runner, database: Database
    ) -> None:
        self.tasks = list(tasks)
        self.builder = builder
        self.runner = runner
        self.database = database

    def tune(self) -> None:
        """Tune until every task has stopped."""
        for number, task in enumerate(self.tasks):
            self._initialize_task(number)
            if task.space_generator is None or task.mod is None:
                raise TilewrightError(f"task {number} has no module or no space generator")
            _strategy(task).pre_tuning(task.space_generator.generate_design_space(task.mod))
        while (number := int(self.next_task_id())) != -1:
            task = self.tasks[number]
            if task.is_stopped or self._is_task_running(number):
                raise TilewrightError(
                    f"next_task_id gave task {number}, which has stopped or is still running: join it first"
                )
            candidates = _strategy(task).generate_measure_candidates()
            if candidates is None:
                self._set_task_stopped(number)
                continue
            task.measure_candidates = candidates
            task.runner_futures = self._measure(task)
        for number, task in enumerate(self.tasks):
            if self._is_task_running(number):
                self._join_running_task(number)
            _strategy(task).post_tuning()

    def next_task_id(self) -> int:
        """The number of the task whose turn it is; -1 if all have stopped."""
        raise NotImplementedError(f"{type(self).__name__} has no method next_task_id")

    def _measure(self, task: TuneContext) -> list[RunnerFuture]:
        """Build the candidates of a task and start to run those that could be built."""
        candidates = task.measure_candidates or ()
        target = _target(task)
        built = self.builder.build([BuilderInput(one.sch.mod, target) for one in candidates])
        inputs = [
            RunnerInput(result.artifact_path, target.kind.name, one.args_info)
            for one, result in zip(candidates, built, strict=True)
            if result.artifact_path is not None and result.error_msg is None
        ]
        running = iter(self.runner.run(inputs))
        return [
            next(running)
            if result.artifact_path is not None and result.error_msg is None
            else known_future(RunnerResult(None, result.error_msg))
            for result in built
        ]

    def _initialize_task(self, task_id: int) -> None:
        self.tasks[task_id].initialize()

    def _set_task_stopped(self, task_id: int) -> None:
        self.tasks[task_id].is_stopped = True

    def _is_task_running(self, task_id: int) -> bool:
        """True while candidates of the task are measured."""
        task = self.tasks[task_id]
        if task.runner_futures is None:
            return False
        if all(future.done() for future in task.runner_futures):
            self._join_running_task(task_id)
            return False
        return True

    def _join_running_task(self, task_id: int) -> None:
        """Wait for the measurements of a task, and remember them."""
        task = self.tasks[task_id]
        if task.runner_futures is None or task.mod is None:
            return
        results = [future.result() for future in task.runner_futures]
        task.runner_futures = None
        _strategy(task).notify_runner_results(results)
        workload = self.database.commit_workload(task.mod)
        for candidate, result in zip(task.measure_candidates or (), results, strict=True):
            if result.error_msg is None and result.run_secs:
                self.database.commit_tuning_record(
                    TuningRecord(
                        candidate.sch.trace, result.run_secs, workload, _target(task), candidate.args_info
                    )
                )


class RoundRobin(TaskScheduler):
    """One task after the other, round and round."""

    def __init__(
        self, tasks: Sequence[TuneContext], builder: Builder, runner: Runner, database: Database
    ) -> None:
        super().__init__(tasks, builder, runner, database)
        self.task_id = -1

    def next_task_id(self) -> int:
        for _ in self.tasks:
            self.task_id = (self.task_id + 1) % len(self.tasks)
            if not self.tasks[self.task_id].is_stopped:
                if self._is_task_running(self.task_id):
                    self._join_running_task(self.task_id)
                return self.task_id
        return -1


class PyTaskScheduler(TaskScheduler):
    """The base of schedulers that programs write: ``next_task_id`` is theirs."""

    def __init__(
        self, tasks: Sequence[TuneContext], builder: Builder, runner: Runner, database: Database
    ) -> None:
        require_overridden(self, TaskScheduler, ["next_task_id"])
        super().__init__(tasks, builder, runner, database)


def _strategy(task: TuneContext) -> SearchStrategy:
    if task.search_strategy is None:
        raise TilewrightError(f"task {task.task_name or ''} has no search strategy")
    return task.search_strategy


def _target(task: TuneContext) -> Target:
    if task.target is None:
        raise TilewrightError(f"task {task.task_name or ''} has no target")
    return task.target
