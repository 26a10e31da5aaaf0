"""From states to code, in worker processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.auto_scheduler.measure_types import BuildResult, MeasureInput
from tilewright.compile.lower import lower
from tilewright.ir.module import IRModule
from tilewright.schedule import schedule as construct
from tilewright.search.measure import BuildJob, Built, build_all
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.te.operation import PlaceholderOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor
from tilewright.tir.analysis.verify_gpu_code import gpu_code_errors
from tilewright.tir.function import PrimFunc

BuildFunction = Callable[[MeasureInput], IRModule]


class BuildFunc:
    """The names of the ways to build, as TVM has them. Code is compiled to bytes here, so both are one."""

    name = "default"


class ProgramBuilder:
    """Builds programs."""

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        """The code of each program."""
        raise NotImplementedError(f"{type(self).__name__} has no method build(measure_inputs, verbose)")


class LocalBuilder(ProgramBuilder):
    """Builds programs on this machine, ``n_parallel`` at once, each within ``timeout`` seconds.

    ``build_func`` is "default", or a function from a ``MeasureInput`` to lowered loops, called in the worker.
    """

    def __init__(
        self,
        timeout: float = 15,
        n_parallel: int | None = None,
        build_func: str | BuildFunction = "default",
    ) -> None:
        if isinstance(build_func, str) and build_func not in ("default", "ndk"):
            raise TilewrightError(f"build_func is 'default', 'ndk' or a function, not {build_func!r}")
        self.timeout = timeout
        self.n_parallel = n_parallel or multiprocessing.cpu_count()
        self.build_func = build_func

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        """The code of each program."""
        jobs = [
            BuildJob(lambda one=one: self._loops(one), one.task.target, one.task.target.host)  # type: ignore[misc]
            for one in measure_inputs
        ]
        built = build_all(jobs, self.timeout, self.n_parallel)
        return [_result(one, made) for one, made in zip(measure_inputs, built, strict=True)]

    def build_untuned(self, task: Any) -> Built:
        """The code of a task's constructed schedule, which search starts from."""
        (built,) = self.build_loops(task, [lambda: untuned_loops(task)])
        return built

    def build_loops(self, task: Any, loops: Sequence[Callable[[], IRModule]]) -> list[Built]:
        """The code of loops for a task."""
        jobs = [BuildJob(one, task.target, task.target.host) for one in loops]
        return build_all(jobs, self.timeout, self.n_parallel)

    def _loops(self, measured: MeasureInput) -> IRModule:
        return state_loops(measured) if isinstance(self.build_func, str) else self.build_func(measured)


def state_loops(measured: MeasureInput) -> IRModule:
    """The loops of a state, as its task says weights are laid out."""
    task = measured.task
    schedule, arguments = task.compute_dag.apply_steps_from_state(
        measured.state, layout_rewrite=task.layout_rewrite_option
    )
    module = lower_for(task, schedule, arguments)
    check_blocks(task, module)
    return module


def lower_for(task: Any, schedule: Schedule, arguments: Sequence[Tensor]) -> IRModule:
    """The loops of a schedule for a task."""
    with task.target:
        return lower(schedule, arguments, name="default_function")


def check_blocks(task: Any, module: IRModule) -> None:
    """Refuse kernels that do not fit a block of the task's GPU, before anything is compiled."""
    if task.hardware_params.max_threads_per_block <= 0:
        return
    limits = task.hardware_params.gpu_limits()
    for function in module.functions.values():
        if isinstance(function, PrimFunc) and (errors := gpu_code_errors(function, limits)):
            raise ScheduleError(f"the program does not fit the GPU: {'; '.join(errors)}")


def untuned_loops(task: Any) -> IRModule:
    """The loops of the schedule that is constructed without search."""
    return lower_for(task, constructed_schedule(task), task.compute_dag.tensors)


def constructed_schedule(task: Any) -> Schedule:
    """The schedule that is constructed without search: that of the operator a task was extracted from, or the one for
    any graph."""
    given = getattr(task, "construct", None)
    return given() if given is not None else construct(output_tensors(task), task.target)


def output_tensors(task: Any) -> list[Tensor]:
    """The results of a task's programs."""
    return [tensor for tensor in task.compute_dag.tensors if not isinstance(tensor.op, PlaceholderOp)]


def _result(measured: MeasureInput, built: Built) -> BuildResult:
    arguments: Sequence[Tensor] = ()
    if built.is_good:
        arguments = measured.task.compute_dag.tensors
        if measured.task.layout_rewrite_option:
            _, arguments = measured.task.compute_dag.apply_steps_from_state(
                measured.state, layout_rewrite=measured.task.layout_rewrite_option
            )
    return BuildResult(None, arguments, built.error_kind, built.message, built.seconds, built)
