"""Tasks: a template with arguments, for a target, and the space of its configurations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.autotvm.task.context import ApplyConfig, DispatchContext
from tilewright.autotvm.task.flop import FlopCalculationError, compute_flop
from tilewright.autotvm.task.space import ConfigSpace, InstantiationError
from tilewright.autotvm.task.workload import args_to_workload, deserialize_args, serialize_args
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.tensor import Tensor

Scheduled = tuple[Any, list[Any]]
"""A schedule, and the tensors of its arguments."""


class TaskTemplate:
    """How the schedule of a task is made: by a function of one's own (``fcustomized``), or by a computation and a
    schedule of ``topi``."""

    def __init__(self) -> None:
        self.fcompute: Callable[..., Any] | None = None
        self.fschedule: Callable[..., Any] | None = None
        self.fcustomized: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Scheduled:
        """The schedule for arguments, with the configuration of the current context."""
        given = deserialize_args(args)
        if self.fcustomized is not None:
            schedule, tensors = self.fcustomized(*given, **kwargs)
            return schedule, list(tensors)
        if self.fcompute is None or self.fschedule is None:
            missing = "computation" if self.fcompute is None else "schedule"
            raise TilewrightError(
                f"no {missing} is registered for this task: see register_topi_{missing[:8]}"
            )
        made = self.fcompute(*given, **kwargs)
        outputs = [made] if isinstance(made, Tensor) else list(made)
        return self.fschedule(outputs), [*outputs, *self._get_inputs(outputs)]

    def space(self, args: tuple[Any, ...], target: Target) -> ConfigSpace:
        """The space of configurations for arguments: empty, for the template to define its knobs."""
        return ConfigSpace()

    @staticmethod
    def _get_inputs(out: Any) -> list[Tensor]:
        """The placeholders that tensors are computed from."""
        pending = [out] if isinstance(out, Tensor) else list(out)
        seen: set[Any] = set()
        found: list[Tensor] = []
        while pending:
            tensor = pending.pop(0)
            if tensor.op in seen:
                continue
            seen.add(tensor.op)
            if isinstance(tensor.op, PlaceholderOp):
                found.append(tensor)
            pending += tensor.op.input_tensors
        return found


class MissingTask(TaskTemplate):
    """A task of records whose template this process does not have."""

    def __init__(self, taskname: str) -> None:
        super().__init__()
        self.taskname = taskname

    def __call__(self, *args: Any, **kwargs: Any) -> Scheduled:
        """There is nothing to call."""
        raise InstantiationError(
            f"there is no template {self.taskname!r} in this process: import the module that has the function "
            f'with @autotvm.template("{self.taskname}") first'
        )


TASK_TABLE: dict[str, TaskTemplate] = {}
"""The templates by name."""


def _lookup_task(name: str) -> TaskTemplate:
    return TASK_TABLE.get(name) or MissingTask(name)


class Task:
    """A template with arguments. ``config_space`` has what can be chosen, ``flop`` what is computed."""

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name = name
        self.args = tuple(args)
        self.kwargs: dict[str, Any] = {}
        self.func: TaskTemplate = _lookup_task(name)
        self.config_space: Any = None
        self.flop: float | None = None
        self.target: Any = None
        self.target_host: Any = None

    @property
    def workload(self) -> tuple[Any, ...]:
        """The name and the arguments."""
        return args_to_workload(self.args, self.name)

    def instantiate(self, config: Any) -> Scheduled:
        """The schedule with a configuration, and the tensors of its arguments."""
        config.flop = 0
        config.errors = []
        with ApplyConfig(config):
            schedule, tensors = self.func(*self.args, **self.kwargs)
        if not config.valid():
            raise InstantiationError("; ".join(config.errors))
        if not self.flop:
            config.flop = config.flop or compute_flop(schedule)
            self.flop = config.flop
        return schedule, tensors

    def __getstate__(self) -> dict[str, Any]:
        # A function is found again by its name; what a space filters by cannot travel.
        return {name: value for name, value in vars(self).items() if name != "func"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.func = _lookup_task(self.name)

    def __repr__(self) -> str:
        return (
            f"Task(func_name={self.name}, args={self.args}, kwargs={self.kwargs}, workload={self.workload})"
        )


def template(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Make a function a template: ``@autotvm.template("mine/matmul")``. It takes numbers, strings, tensors and lists
    of those, and returns a schedule and the tensors of its arguments."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        """Registers the function, and gives it its configuration when it is called directly."""

        @functools.wraps(function)
        def with_config(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise TilewrightError(f"the template {task_name!r} takes no keyword arguments")
            workload = args_to_workload(args, task_name)
            config = DispatchContext.current.query(Target.current(), workload)
            with ApplyConfig(config):
                return function(*args)

        _register_customized_task(task_name, function)
        return with_config

    return decorate if func is None else decorate(func)


def _register_task_compute(name: str, func: Callable[..., Any]) -> Callable[..., Any]:
    TASK_TABLE.setdefault(name, TaskTemplate()).fcompute = func
    return func


def _register_task_schedule(name: str, func: Callable[..., Any]) -> Callable[..., Any]:
    TASK_TABLE.setdefault(name, TaskTemplate()).fschedule = func
    return func


def _register_customized_task(name: str, func: Callable[..., Any]) -> Callable[..., Any]:
    made = TaskTemplate()
    made.fcustomized = func
    TASK_TABLE[name] = made
    return func


def create(task_name: str, args: Sequence[Any], target: Any, target_host: Any = None) -> Task:
    """A task: a template with arguments, for a target."""
    made = Task(task_name, serialize_args(args))
    target, target_host = Target.check_and_update_host_consist(target, target_host)
    made.target, made.target_host = target, target_host
    space = made.func.space(made.args, target)
    made.config_space = space
    with ApplyConfig(space), target:
        schedule, arguments = made.func(*made.args)
    space.code_hash = getattr(schedule, "code_hash", None)
    if not space.valid():
        # Errors of the first values of the knobs say nothing about other values.
        space.errors = []
    made.flop = space.flop or _operations(schedule, arguments)
    return made


def _operations(schedule: Schedule, arguments: Sequence[Any]) -> int:
    """What a kernel computes; where the schedule has put a kernel written as statements in the place of its
    computation, as products on tensor cores are, what the computation says."""
    try:
        return compute_flop(schedule)
    except FlopCalculationError:
        results = [one.op for one in arguments if isinstance(getattr(one, "op", None), ComputeOp)]
        if not results:
            raise
        return compute_flop(create_schedule(results))


def get_config() -> Any:
    """The configuration of the template that is running."""
    return DispatchContext.current.query(Target.current(), None)


__all__ = [
    "TASK_TABLE",
    "FlopCalculationError",
    "InstantiationError",
    "MissingTask",
    "Task",
    "TaskTemplate",
    "args_to_workload",
    "compute_flop",
    "create",
    "deserialize_args",
    "get_config",
    "serialize_args",
    "template",
]
