"""Schedules as states: the steps that a schedule's trace stands for.

The schedules that the compiler constructs are good starting points for a search, which works on states. A trace may
have what no step expresses (a tensor intrinsic, a double buffer, ...); such a schedule has no state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tilewright.auto_scheduler.state_nodes import ANNOTATION_TEXTS, IteratorAnnotation, StateObject
from tilewright.auto_scheduler.steps import (
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    Step,
    StorageAlignStep,
)
from tilewright.auto_scheduler.steps.loops import SCOPE_PRAGMA, UNROLL_PRAGMA
from tilewright.ir.expr import IntImm, IterVar
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.trace import Result, RootAxis, StageRef, TensorRef
from tilewright.te.schedule.trace import Step as TraceStep
from tilewright.te.tensor import Operation

if TYPE_CHECKING:
    from tilewright.auto_scheduler.compute_dag import ComputeDAG

AxisKey = tuple[str, int] | str
"""How a trace names an axis: a root axis by its stage and number, another by the name of the result."""


class NoStepError(ScheduleError):
    """A trace has something that no step expresses."""


def steps_of_schedule(schedule: Schedule, dag: ComputeDAG) -> tuple[Step, ...] | None:
    """The steps that make the same loops as a schedule of the graph's operations; None if there are none."""
    try:
        return _Translation(schedule, dag).run()
    except NoStepError:
        return None


def untranslated(schedule: Schedule, dag: ComputeDAG) -> str | None:
    """What in a schedule's trace has no step; None if everything has one."""
    try:
        _Translation(schedule, dag).run()
    except NoStepError as error:
        return error.message
    return None


class _Translation:
    """Follows a trace step by step: which stage has which number, and which axis is which iterator."""

    def __init__(self, schedule: Schedule, dag: ComputeDAG) -> None:
        self.schedule = schedule
        self.dag = dag
        self.state: StateObject = dag.init_state
        self.labels: list[str] = [self._label(operation) for operation in dag.ops]
        self.axes: dict[str, list[AxisKey]] = {label: self._fresh(label) for label in self.labels}
        self.before: TraceStep | None = None
        self.following: TraceStep | None = None
        # The last split with the state before it: a split of its outermost part joins it, so that a search sees one
        # tiling and not a chain of splits.
        self.last_split: tuple[StateObject, SplitStep] | None = None

    def _label(self, operation: Operation) -> str:
        if operation not in self.schedule.stage_map:
            raise NoStepError(f"operation {operation.name} is not part of the schedule")
        return self.schedule.stage_map[operation].label

    def _fresh(self, label: str) -> list[AxisKey]:
        stage = self.state.stages[self.labels.index(label)]
        return [(label, number) for number in range(len(stage.iters))]

    def run(self) -> tuple[Step, ...]:
        """The steps."""
        steps = self.schedule.trace.steps
        for position, step in enumerate(steps, 1):
            self.following = steps[position] if position < len(steps) else None
            handler = _HANDLERS.get(step.primitive)
            if handler is None:
                raise NoStepError(f"there is no step for {step}")
            try:
                handler(self, step)
            except NoStepError:
                raise
            except ScheduleError as error:
                raise NoStepError(f"{step}: {error.message}") from error
            self.before = step
        return self.state.transform_steps

    # -- names ----------------------------------------------------------------------------------------------------

    def apply(self, step: Step) -> None:
        self.state = self.state.apply(step, self.dag)

    def number(self, label: str | None) -> int:
        if label not in self.labels:
            raise NoStepError(f"stage {label} is not one of the graph's")
        return self.labels.index(label)

    def iterator(self, label: str | None, axis: Any) -> int:
        key = _key(axis)
        found = self.axes[self.labels[self.number(label)]]
        if key not in found:
            raise NoStepError(
                f"there is no step for axis {axis} of stage {label}: it was split or fused already"
            )
        return found.index(key)

    def add_stage(self, position: int, restarted: int | None) -> None:
        """Name the stage that a step added, as the schedule does."""
        name = self.state.stages[position].op.name
        taken = {*self.labels, *(group.label for group in self.schedule.groups)}
        label, number = name, 1
        while label in taken:
            label, number = f"{name}_{number}", number + 1
        self.labels.insert(position, label)
        for changed in (position, restarted):
            if changed is not None:
                self.axes[self.labels[changed]] = self._fresh(self.labels[changed])

    # -- primitives -----------------------------------------------------------------------------------------------

    def split(self, step: TraceStep) -> None:
        axis, factor, nparts = step.arguments
        stage_id, iter_id = self.number(step.stage), self.iterator(step.stage, axis)
        length = _integer(step, factor if nparts is None else nparts)
        extent = self.state.stages[stage_id].iters[iter_id].extent
        before, wanted = self.state, SplitStep(stage_id, iter_id, extent, (length,), nparts is None)
        if self.last_split is not None and self.state.transform_steps[-1] is self.last_split[1]:
            earlier = self.last_split[1]
            if (
                nparts is None
                and earlier.inner_to_outer
                and (earlier.stage_id, earlier.iter_id) == (stage_id, iter_id)
            ):
                before = self.state = self.last_split[0]
                wanted = replace(earlier, lengths=(length, *earlier.lengths))
        self.apply(wanted)
        self.last_split = before, wanted
        self.axes[self.labels[stage_id]][iter_id : iter_id + 1] = list(step.results)

    def fuse(self, step: TraceStep) -> None:
        stage_id = self.number(step.stage)
        ids = tuple(self.iterator(step.stage, axis) for axis in step.arguments)
        self.apply(FuseStep(stage_id, ids))
        start, end = (ids[0], ids[-1] + 1) if ids else (0, 0)
        self.axes[self.labels[stage_id]][start:end] = list(step.results)

    def reorder(self, step: TraceStep) -> None:
        stage_id = self.number(step.stage)
        moved = [self.iterator(step.stage, axis) for axis in step.arguments]
        order = list(range(len(self.state.stages[stage_id].iters)))
        for position, number in zip(sorted(moved), moved, strict=True):
            order[position] = number
        self.apply(ReorderStep(stage_id, tuple(order)))
        keys = self.axes[self.labels[stage_id]]
        self.axes[self.labels[stage_id]] = [keys[number] for number in order]

    def annotate(self, step: TraceStep) -> None:
        annotation = ANNOTATION_TEXTS.index(step.primitive)
        self.apply(
            AnnotationStep(self.number(step.stage), self.iterator(step.stage, step.arguments[0]), annotation)
        )

    def bind(self, step: TraceStep) -> None:
        axis, thread = step.arguments
        tag = thread.thread_tag if isinstance(thread, IterVar) else ""
        if tag not in ANNOTATION_TEXTS[IteratorAnnotation.VTHREAD :]:
            raise NoStepError(f"there is no step for {step}")
        annotation = ANNOTATION_TEXTS.index(tag)
        self.apply(AnnotationStep(self.number(step.stage), self.iterator(step.stage, axis), annotation))

    def pragma(self, step: TraceStep) -> None:
        axis, name, value = step.arguments
        place = self.number(step.stage), self.iterator(step.stage, axis)
        if value is None:
            self.apply(PragmaStep(*place, name))
        elif name == UNROLL_PRAGMA and self._is_explicit(step, self.following):
            self.apply(PragmaStep(*place, f"{UNROLL_PRAGMA}${_integer(step, value)}"))
        elif self.before is None or not self._is_explicit(self.before, step):
            raise NoStepError(f"there is no step for {step}")

    def _is_explicit(self, step: TraceStep, following: TraceStep | None) -> bool:
        """True if a step limits unrolling and the next makes it explicit: the pragma step means both."""
        if following is None or step.primitive != "pragma" or following.primitive != "pragma":
            return False
        axis, name, _ = step.arguments
        return (
            name == UNROLL_PRAGMA
            and (step.stage, axis) == (following.stage, following.arguments[0])
            and following.arguments[1] == "unroll_explicit"
            and following.arguments[2] in (1, True)
        )

    def set_scope(self, step: TraceStep) -> None:
        stage_id = self.number(step.stage)
        if not self.state.stages[stage_id].iters:
            raise NoStepError(f"there is no step for {step}: the stage has no loop")
        self.apply(PragmaStep(stage_id, 0, f"{SCOPE_PRAGMA}${step.arguments[0]}"))

    def storage_align(self, step: TraceStep) -> None:
        axis, factor, offset = step.arguments
        place = self.number(step.stage), self.iterator(step.stage, axis)
        self.apply(StorageAlignStep(*place, _integer(step, factor), _integer(step, offset)))

    def compute_at(self, step: TraceStep) -> None:
        target, axis = step.arguments
        assert isinstance(target, StageRef)
        place = self.number(target.label), self.iterator(target.label, axis)
        self.apply(ComputeAtStep(self.number(step.stage), *place))

    def compute_inline(self, step: TraceStep) -> None:
        self.apply(ComputeInlineStep(self.number(step.stage)))

    def compute_root(self, step: TraceStep) -> None:
        self.apply(ComputeRootStep(self.number(step.stage)))

    def cache_write(self, step: TraceStep) -> None:
        tensors, scope = step.arguments
        stage_id = self.number(tensors[0].label)
        self.apply(CacheWriteStep(stage_id, scope))
        self.add_stage(stage_id, stage_id + 1)

    def cache_read(self, step: TraceStep) -> None:
        tensor, scope, readers = step.arguments
        stage_id = self.number(tensor.label)
        if tensor.index:
            raise NoStepError(f"there is no step for {step}: it copies another output than the first")
        self.apply(CacheReadStep(stage_id, scope, tuple(self.number(reader.label) for reader in readers)))
        self.add_stage(stage_id + 1, None)

    def rfactor(self, step: TraceStep) -> None:
        tensor, axis, factor_axis = step.arguments
        assert isinstance(tensor, TensorRef)
        stage_id = self.number(tensor.label)
        count = len(self.state.stages[stage_id].op.axis)
        position = factor_axis if factor_axis >= 0 else count + 1 + factor_axis
        self.apply(RfactorStep(stage_id, self.iterator(tensor.label, axis), position))
        self.add_stage(stage_id, stage_id + 1)


def _key(axis: Any) -> AxisKey:
    if isinstance(axis, Result):
        return axis.name
    if isinstance(axis, RootAxis):
        return axis.stage, axis.index
    raise NoStepError(f"{axis!r} is not an axis of a stage")


def _integer(step: TraceStep, value: Any) -> int:
    if isinstance(value, IntImm):
        return value.value
    if isinstance(value, int):
        return int(value)
    raise NoStepError(f"there is no step for {step}: {value} is not a constant")


_HANDLERS: Final[dict[str, Callable[[_Translation, TraceStep], None]]] = {
    "split": _Translation.split,
    "fuse": _Translation.fuse,
    "reorder": _Translation.reorder,
    "vectorize": _Translation.annotate,
    "unroll": _Translation.annotate,
    "parallel": _Translation.annotate,
    "bind": _Translation.bind,
    "pragma": _Translation.pragma,
    "set_scope": _Translation.set_scope,
    "storage_align": _Translation.storage_align,
    "compute_at": _Translation.compute_at,
    "compute_inline": _Translation.compute_inline,
    "compute_root": _Translation.compute_root,
    "cache_write": _Translation.cache_write,
    "cache_read": _Translation.cache_read,
    "rfactor": _Translation.rfactor,
}
