"""Tasks: a workload on a target, and the programs that a search found for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.auto_scheduler.builders import constructed_schedule
from tilewright.auto_scheduler.cost_model import XGBModel
from tilewright.auto_scheduler.hardware_params import HardwareParams
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.measure_record import load_best_record
from tilewright.auto_scheduler.measure_types import MeasureInput
from tilewright.auto_scheduler.search_policy import SearchPolicy, SketchPolicy
from tilewright.auto_scheduler.task import Task
from tilewright.auto_scheduler.task_inputs import (
    TASK_INPUT_BUFFER_TABLE,
    get_task_input_buffer,
    register_task_input_buffer,
)
from tilewright.auto_scheduler.tuning_options import TuningOptions
from tilewright.auto_scheduler.untuned import best_comparison
from tilewright.compile import build
from tilewright.support.errors import ScheduleError
from tilewright.target.target import TargetLike
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor

__all__ = [
    "TASK_INPUT_BUFFER_TABLE",
    "HardwareParams",
    "SearchTask",
    "TuningOptions",
    "auto_schedule",
    "create_task",
    "get_task_input_buffer",
    "register_task_input_buffer",
]


class SearchTask(Task):
    """A workload on a target: given by a registered function and its arguments, by a graph, or by a key."""

    def tune(self, tuning_options: TuningOptions, search_policy: SearchPolicy | None = None) -> None:
        """Search: by default over sketches, with a model that learns from what is measured. What is measured goes to
        the callbacks of the options, such as ``RecordToFile``."""
        policy = (
            SketchPolicy(self, XGBModel(num_warmup_sample=_WARM_UP))
            if search_policy is None
            else search_policy
        )
        auto_schedule(policy, tuning_options)

    def apply_best(
        self,
        log_file: str | Path,
        include_compatible: bool = False,
        layout_rewrite_option: int | None = None,
    ) -> tuple[Schedule, list[Tensor]]:
        """The schedule of the fastest program in a file of records, and the tensors to build it with. Where the file
        says that the constructed schedule was faster than all of them, it is that one."""
        best = self._best(log_file, include_compatible)
        found = best_comparison(log_file, self)
        if found is not None and not found.is_faster:
            return constructed_schedule(self), list(self.compute_dag.tensors)
        option = self.layout_rewrite_option if layout_rewrite_option is None else layout_rewrite_option
        try:
            return self.compute_dag.apply_steps_from_state(best.state, option)
        except ScheduleError as error:
            raise ScheduleError(
                f"the best record of {self.workload_key} in {log_file} does not fit this program: {error.message}"
            ) from error

    def print_best(self, log_file: str | Path, print_mode: str = "schedule") -> str:
        """The fastest program in a file of records: its schedule as Python, or its code for the GPU."""
        best = self._best(log_file, False)
        if print_mode == "schedule":
            return self.compute_dag.print_python_code_from_state(best.state)
        if print_mode == "cuda":
            if self.target.kind.name != "cuda":
                raise ScheduleError(f"the task's target is {self.target}, it has no code for a GPU")
            schedule, tensors = self.compute_dag.apply_steps_from_state(
                best.state, self.layout_rewrite_option
            )
            return str(build(schedule, tensors, self.target).imported_modules[0].get_source())
        raise ScheduleError(f"print_mode is {print_mode!r}; 'schedule' and 'cuda' are there")

    def _best(self, log_file: str | Path, include_compatible: bool) -> MeasureInput:
        best, _ = load_best_record(log_file, self.workload_key, self.target, include_compatible)
        if best is None:
            raise ScheduleError(
                f"{log_file} has no record of {self.workload_key} for {self.target.kind.name} that ran"
            )
        return best


_WARM_UP = 24
"""How many candidates are measured before a model learns from them."""


def auto_schedule(
    search_policy: SearchPolicy | Task,
    tuning_options: TuningOptions | SearchPolicy | None = None,
    options: TuningOptions | None = None,
) -> State | tuple[Schedule, list[Tensor]] | None:
    """Search with a policy; the fastest state. The older form takes a task (and a policy) and gives a schedule."""
    if isinstance(search_policy, Task):
        task = search_policy
        policy = (
            tuning_options if isinstance(tuning_options, SearchPolicy) else SketchPolicy(task, XGBModel())
        )
        chosen = options or (tuning_options if isinstance(tuning_options, TuningOptions) else TuningOptions())
        best = policy.search(*_limits(chosen), chosen.measurer())
        if best is None:
            raise ScheduleError(f"no candidate of {task.workload_key} ran")
        return task.compute_dag.apply_steps_from_state(best, task.layout_rewrite_option)
    if not isinstance(tuning_options, TuningOptions):
        raise ScheduleError("a search needs TuningOptions")
    return search_policy.search(*_limits(tuning_options), tuning_options.measurer())


def _limits(options: TuningOptions) -> tuple[int, int, int]:
    return options.num_measure_trials, options.early_stopping, options.num_measures_per_round


def create_task(
    func: str | Callable[..., Any],
    args: Sequence[Any],
    target: TargetLike,
    target_host: TargetLike | None = None,
    hardware_params: HardwareParams | None = None,
) -> SearchTask:
    """The task of a registered function; the older name of ``SearchTask(...)``."""
    return SearchTask(
        func=func, args=args, target=target, target_host=target_host, hardware_params=hardware_params
    )
