"""Templates from functions of ``topi``: a computation and a schedule that take a configuration first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tilewright.autotvm.task.context import ApplyConfig, DispatchContext
from tilewright.autotvm.task.task import _register_task_compute, _register_task_schedule
from tilewright.autotvm.task.workload import args_to_workload, serialize_args
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Tensor

Workload = tuple[Any, ...]


class TaskExtractEnv:
    """Collects the tasks of functions that are called while it is active."""

    current: ClassVar[TaskExtractEnv | None] = None

    def __init__(self, allow_duplicate: bool = False) -> None:
        self.allow_duplicate = allow_duplicate
        self.task_collection: list[tuple[str, Workload]] = []
        self.wanted_relay_ops: Sequence[Any] | None = None
        self.tracing = False

    def __enter__(self) -> TaskExtractEnv:
        self.task_collection = []
        self.tracing = True
        return self

    def __exit__(self, *_: object) -> None:
        self.tracing = False

    def reset(self, wanted_relay_ops: Sequence[Any] | None = None) -> None:
        """Forget what was collected."""
        self.task_collection = []
        self.wanted_relay_ops = wanted_relay_ops

    def add_task(self, task_name: str, args: Sequence[Any]) -> None:
        """Collect a task."""
        key = (task_name, serialize_args(args))
        if self.allow_duplicate or key not in self.task_collection:
            self.task_collection.append(key)

    def get_tasks(self) -> list[tuple[str, Workload]]:
        """The name and arguments of each task."""
        return self.task_collection

    @staticmethod
    def get(allow_duplicate: bool = False) -> TaskExtractEnv:
        """The only environment of this kind."""
        if TaskExtractEnv.current is None:
            TaskExtractEnv.current = TaskExtractEnv(allow_duplicate)
        TaskExtractEnv.current.allow_duplicate = allow_duplicate
        return TaskExtractEnv.current


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Register the computation of a task, ``(cfg, *args)`` to tensors. Called without ``cfg`` it gets the configuration
    of its workload, and the tensors remember the workload."""

    def decorate(topi_compute: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(topi_compute)
        def with_config(*args: Any) -> Any:
            workload = args_to_workload(args, task_name)
            environment = TaskExtractEnv.get()
            if environment.tracing:
                environment.add_task(task_name, args)
            config = DispatchContext.current.query(Target.current(), workload)
            made = topi_compute(config, *args)
            outputs = [made] if isinstance(made, Tensor) else list(made)
            noted = {id(tensor.op): _with_workload(tensor.op, workload) for tensor in outputs}
            found = [noted[id(tensor.op)].output(tensor.value_index) for tensor in outputs]
            return found[0] if isinstance(made, Tensor) else type(made)(found)

        _register_task_compute(task_name, with_config)
        return with_config

    return decorate if func is None else decorate(func)


def _with_workload(operation: Any, workload: Workload) -> Any:
    """The operation with an attribute that says which task computes it."""
    if not isinstance(operation, ComputeOp):
        return operation
    attrs = {**(operation.attrs or {}), "workload": workload}
    return ComputeOp(operation.name, operation.tag, attrs, operation.axes, operation.body, operation.span)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Register the schedule of a task, ``(cfg, outs, ...)`` to a schedule. Called without ``cfg`` it gets the
    configuration of the workload that the outputs remember."""

    def decorate(topi_schedule: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(topi_schedule)
        def with_config(outs: Any, *args: Any, **kwargs: Any) -> Any:
            workload = get_workload(outs, task_name)
            if workload is None:
                raise TilewrightError(
                    f"no tensor of this graph was computed by the task {task_name!r}: compute it with the function "
                    "that register_topi_compute registered"
                )
            config = DispatchContext.current.query(Target.current(), workload)
            with ApplyConfig(config):
                return topi_schedule(config, outs, *args, **kwargs)

        _register_task_schedule(task_name, with_config)
        return with_config

    return decorate if func is None else decorate(func)


def get_workload(outs: Any, task_name: str | None = None) -> Workload | None:
    """The workload of a task that tensors, or what they are computed from, remember."""
    pending = [tensor.op for tensor in ([outs] if isinstance(outs, Tensor) else outs)]
    seen: set[Any] = set()
    while pending:
        operation = pending.pop()
        if operation in seen:
            continue
        seen.add(operation)
        if isinstance(operation, ComputeOp) and "workload" in (operation.attrs or {}):
            found = args_to_workload(operation.attrs["workload"])
            if task_name is None or found[0] == task_name:
                return found
        pending += [tensor.op for tensor in operation.input_tensors]
    return None
