"""MetaSchedule and Relay: contexts that are asked about each function of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Self

from tilewright.auto_scheduler.relay_integration import fused_functions
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.meta_schedule.database.database import Database
from tilewright.relay.backend.te_compiler import tensor_expression
from tilewright.relay.function import Function
from tilewright.support.errors import LoweringError
from tilewright.support.node import Object
from tilewright.target.target import Target, TargetLike
from tilewright.te.create_prim_func import create_prim_func
from tilewright.tir.function import PrimFunc
from tilewright.tir.schedule.schedule import Schedule


class ExtractedTask(Object):
    """A function of a model: its name, its module in Relay, and the programs that compute it."""

    def __init__(self, task_name: str, mod: IRModule, dispatched: Sequence[IRModule]) -> None:
        self.task_name = task_name
        self.mod = mod
        self.dispatched = list(dispatched)


class MetaScheduleContext(Object):
    """What is asked about each function of a model that is built inside ``with context:``."""

    def query(
        self, task_name: str, mod: IRModule, dispatched: Sequence[IRModule] | None
    ) -> IRModule | PrimFunc | None:
        """The program to use for a function; None leaves the choice."""
        raise NotImplementedError(f"{type(self).__name__} has no method query")

    @staticmethod
    def current() -> MetaScheduleContext | None:
        """The context of the innermost ``with``; None outside."""
        return _CURRENT.get()

    @staticmethod
    def query_inside_with_scope(
        task_name: str, mod: IRModule, dispatched: Sequence[IRModule] | None
    ) -> IRModule | PrimFunc | None:
        """Ask the current context; None outside of one."""
        context = _CURRENT.get()
        return None if context is None else context.query(task_name, mod, dispatched)

    def __enter__(self) -> Self:
        if _CURRENT.get() is not None:
            raise ValueError("a MetaScheduleContext is already in use; leave it first")
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)


_CURRENT: ContextVar[MetaScheduleContext | None] = ContextVar("tilewright_meta_schedule", default=None)


class TaskExtraction(MetaScheduleContext):
    """Collects what it is asked about."""

    def __init__(self) -> None:
        self.tasks: list[ExtractedTask] = []

    def query(
        self, task_name: str, mod: IRModule, dispatched: Sequence[IRModule] | None
    ) -> IRModule | PrimFunc | None:
        self.tasks.append(ExtractedTask(task_name, mod, dispatched or ()))
        return None


class ApplyHistoryBest(MetaScheduleContext):
    """Answers with the fastest schedule in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def query(
        self, task_name: str, mod: IRModule, dispatched: Sequence[IRModule] | None
    ) -> IRModule | PrimFunc | None:
        for program in dispatched or ():
            best = self.database.get_top_k(self.database.commit_workload(program), 1)
            if best:
                schedule = Schedule(program)
                best[0].trace.apply_to_schedule(schedule, remove_postproc=False)
                return schedule.mod
        return None


def extract_task(
    mod: IRModule | Function,
    target: TargetLike,
    params: Mapping[str, Any] | None = None,
    *,
    opt_level: int = 3,
    pass_config: Mapping[str, Any] | None = None,
    disabled_pass: Sequence[str] = (),
) -> list[ExtractedTask]:
    """The functions of a model, one for each structure. Functions whose operations are no computations on tensors of
    known sizes are left out."""
    chosen = Target(target)
    extraction = TaskExtraction()
    with PassContext(opt_level=opt_level, config=dict(pass_config or {}), disabled_pass=list(disabled_pass)):
        functions = fused_functions(mod, params, chosen, opt_level)
    with extraction:
        for number, fused in enumerate(functions):
            program = tensor_expression(fused.function, chosen)
            try:
                loops = create_prim_func([*program.inputs, *program.outputs])
            except LoweringError:
                continue
            choice = program.anchor
            name = f"fused_{number}_{'injective' if choice is None else choice.operator}"
            MetaScheduleContext.query_inside_with_scope(
                name,
                IRModule({"main": fused.function}),
                [IRModule({"main": loops.with_attr("global_symbol", name)})],
            )
    return extraction.tasks
