"""Which configuration a template gets: a stack of contexts, the innermost asked first.

Every context is a ``TuningScope`` too. Those that know the results of tuning (``dispatcher``) answer for the functions
of a model; those here leave them as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from tilewright.autotvm.env import GLOBAL_SCOPE
from tilewright.autotvm.task.space import FallbackConfigEntity
from tilewright.schedule.tuning import ScheduleRequest, TuningScope
from tilewright.target.target import Target
from tilewright.te.schedule.schedule import Schedule

logger = logging.getLogger("autotvm")

Workload = tuple[Any, ...]
Record = tuple[Any, Any]
"""A MeasureInput and its MeasureResult."""


class DispatchContext(TuningScope):
    """Answers for workloads. A context that does not know one asks the context around it."""

    current: ClassVar[DispatchContext]

    def __init__(self) -> None:
        self._old_ctx: DispatchContext | None = None

    def query(self, target: Target | None, workload: Workload | None) -> Any:
        """The configuration for a workload on a target."""
        found = self._query_inside(target, workload)
        if found is None:
            assert self._old_ctx is not None, "the outermost context answers for everything"
            found = self._old_ctx.query(target, workload)
        return found

    def update(self, target: Target, workload: Workload, cfg: Any) -> None:
        """Use a configuration for a workload from now on."""
        raise NotImplementedError

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        """The configuration that this context has, or None."""
        raise NotImplementedError

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """Nothing: only contexts with results of tuning have schedules for functions of models."""
        return None

    def __enter__(self) -> Self:
        self._old_ctx = DispatchContext.current
        DispatchContext.current = self
        return super().__enter__()

    def __exit__(self, *problem: object) -> None:
        assert self._old_ctx is not None
        DispatchContext.current = self._old_ctx
        super().__exit__(*problem)


class ApplyConfig(DispatchContext):
    """One configuration for everything: what a template is instantiated with."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self._config = config
        self.workload: Workload | None = None

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        self.workload = workload
        return self._config

    def update(self, target: Target, workload: Workload, cfg: Any) -> None:
        """Use another configuration."""
        self.workload = workload
        self._config = cfg


class ApplyFixedConfig(DispatchContext):
    """The configurations of these tasks, for the implementations whose names are given."""

    def __init__(self, tasks: Iterable[Any], schedule_names: str | Sequence[str]) -> None:
        super().__init__()
        self._schedule_names = [schedule_names] if isinstance(schedule_names, str) else list(schedule_names)
        self._tasks = list(tasks)
        self._given: dict[Workload, Any] = {}
        self.workload: Workload | None = None

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        self.workload = workload
        assert workload is not None
        if workload in self._given:
            return self._given[workload]
        if not any(name in workload[0] for name in self._schedule_names):
            return None
        for task in self._tasks:
            if task.workload == workload and task.config_space is not None:
                return task.config_space.get(task.config_space.default_index or 0)
        return FallbackConfigEntity()

    def update(self, target: Target, workload: Workload, cfg: Any) -> None:
        """Use a configuration for a workload."""
        self._given[workload] = cfg


class FallbackContext(DispatchContext):
    """The outermost context: a fallback configuration for everything, with a warning that there are no records."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[tuple[str, Any], Any] = {}

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        key = (str(target), workload)
        if key not in self.memory:
            if not GLOBAL_SCOPE.silent and workload is not None:
                logger.warning(
                    "no tuning records for the workload %s on the target %s: the template's fallback is used, which "
                    "may be slow",
                    workload,
                    target,
                )
            self.memory[key] = FallbackConfigEntity()
        return self.memory[key]

    def clear_cache(self, target: Target, workload: Workload) -> None:
        """Forget the fallback for a workload."""
        self.memory.pop((str(target), workload), None)

    def update(self, target: Target, workload: Workload, cfg: Any) -> None:
        """Use a configuration for a workload."""
        self.memory[str(target), workload] = cfg


DispatchContext.current = FallbackContext()


def clear_fallback_cache(target: Target, workload: Workload) -> None:
    """Forget the fallback for a workload, also in contexts around the current one."""
    context: DispatchContext | None = DispatchContext.current
    while context is not None and not isinstance(context, FallbackContext):
        context = context._old_ctx
    if context is not None:
        context.clear_cache(target, workload)
