"""Steps on the loops of a stage other than splits: fuse, reorder, annotate, pragma, align."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tilewright.auto_scheduler.state_nodes import (
    ANNOTATION_TEXTS,
    Iterator,
    IteratorAnnotation,
    IteratorKind,
    Stage,
    StateObject,
)
from tilewright.auto_scheduler.steps.base import Step, recorded_as
from tilewright.ir import operators
from tilewright.ir.expr import Range
from tilewright.support.errors import ScheduleError
from tilewright.te.operation import thread_axis

if TYPE_CHECKING:
    from tilewright.auto_scheduler.compute_dag import ComputeDAG
    from tilewright.auto_scheduler.replay import Replay

UNROLL_PRAGMA = "auto_unroll_max_step"
SKIP_PRAGMA = "debug_skip_region"
SCOPE_PRAGMA = "storage_scope"
"""The pragma ``storage_scope$local`` keeps the result of a stage in that memory. TVM has no step for it; written as a
pragma, it keeps the form of its records."""


def after_loop_step(stage: Stage, iters: tuple[Iterator, ...], step: Step) -> Stage:
    """A stage with other loops, remembering the step that made them."""
    return replace(stage, iters=iters, loop_steps=(*stage.loop_steps, replace(step, stage_id=0)))


@recorded_as("AN")
@dataclass(frozen=True, slots=True)
class AnnotationStep(Step):
    """Unroll, vectorize or parallelise a loop, or bind it to a thread."""

    iter_id: int
    annotation: int

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "annotate")
        iterator = stage.iterator(self.iter_id, "annotate")
        if not 0 < self.annotation < len(ANNOTATION_TEXTS):
            raise ScheduleError(f"annotate: {self.annotation} is not the number of an annotation")
        if iterator.annotation != IteratorAnnotation.NONE:
            raise ScheduleError(
                f"annotate: iterator {iterator.name} of stage {stage.op.name} is annotated already "
                f"({ANNOTATION_TEXTS[iterator.annotation]})"
            )
        made = replace(iterator, annotation=IteratorAnnotation(self.annotation))
        iters = (*stage.iters[: self.iter_id], made, *stage.iters[self.iter_id + 1 :])
        return state.with_stage(self.stage_id, replace(stage, iters=iters))

    def apply_to_schedule(self, replay: Replay) -> None:
        stage, axis = replay.stages[self.stage_id], replay.axis(self.stage_id, self.iter_id)
        text = ANNOTATION_TEXTS[self.annotation]
        if self.annotation == IteratorAnnotation.TENSORIZE:
            raise ScheduleError("annotate: a record does not say which intrinsic a tensorized loop uses")
        if self.annotation < IteratorAnnotation.VTHREAD:
            replay.call(stage, text, axis)
        else:
            replay.call(stage, "bind", axis, thread_axis(text))


@recorded_as("FU")
@dataclass(frozen=True, slots=True)
class FuseStep(Step):
    """Make one loop of consecutive ones. Of none: a new loop of one iteration."""

    fused_ids: tuple[int, ...]

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "fuse")
        if not self.fused_ids:
            single = Iterator("singleton", Range(0, 1), IteratorKind.SPECIAL)
            places = state.attach_map.with_iters_moved(self.stage_id, lambda number: number + 1)
            return state.with_stage(
                self.stage_id, after_loop_step(stage, (single, *stage.iters), self), attach_map=places
            )
        iters = [stage.iterator(number, "fuse") for number in self.fused_ids]
        first, last = self.fused_ids[0], self.fused_ids[-1]
        self._check(state, stage, iters)
        fused = _fused(iters)

        def moved(number: int) -> int:
            return number if number <= first else first if number <= last else number - (last - first)

        changed = after_loop_step(stage, (*stage.iters[:first], fused, *stage.iters[last + 1 :]), self)
        places = state.attach_map.with_iters_moved(self.stage_id, moved)
        return state.with_stage(self.stage_id, changed, attach_map=places)

    def _check(self, state: StateObject, stage: Stage, iters: list[Iterator]) -> None:
        names = ", ".join(one.name for one in iters)
        if any(other != one + 1 for one, other in pairwise(self.fused_ids)):
            raise ScheduleError(f"fuse: {names} of stage {stage.op.name} do not follow one another")
        if {IteratorKind.SPATIAL, IteratorKind.REDUCTION} <= {one.iter_kind for one in iters}:
            raise ScheduleError(
                f"fuse: {names} of stage {stage.op.name}: a reduction loop and a data loop cannot become one"
            )
        for one in iters:
            if one.annotation != IteratorAnnotation.NONE:
                raise ScheduleError(
                    f"fuse: iterator {one.name} of stage {stage.op.name} is annotated already"
                )
        inside = state.attach_map.iter_to_attached_stages
        for number in self.fused_ids[:-1]:
            if (self.stage_id, number) in inside:
                held = state.stages[inside[self.stage_id, number][0]].op.name
                raise ScheduleError(
                    f"fuse: stage {held} is computed between {names} of stage {stage.op.name}; place it elsewhere first"
                )

    def apply_to_schedule(self, replay: Replay) -> None:
        axes = [replay.axis(self.stage_id, number) for number in self.fused_ids]
        replay.call(replay.stages[self.stage_id], "fuse", *axes)


def _fused(iters: list[Iterator]) -> Iterator:
    """One iterator for several. One of one stays what it is."""
    if len(iters) == 1:
        return iters[0]
    total: Range | None = None
    if all(one.range is not None for one in iters):
        extent = operators.as_expr(1)
        for one in iters:
            assert one.range is not None
            extent = operators.multiply(extent, one.range.extent)
        total = Range.from_min_extent(operators.const(0, extent.dtype), extent)
    kinds = {one.iter_kind for one in iters}
    parts = tuple(part for one in iters for part in (one.orig_iters or (one,)))
    name = "".join(f"{one.name}@" for one in iters)
    kind = kinds.pop() if len(kinds) == 1 else IteratorKind.MIXED
    return Iterator(name, total, kind, IteratorAnnotation.NONE, parts)


@recorded_as("PR")
@dataclass(frozen=True, slots=True)
class PragmaStep(Step):
    """Attach a hint to a loop; ``auto_unroll_max_step$16`` and ``storage_scope$local`` carry a value."""

    iter_id: int
    pragma_type: str

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "pragma")
        stage.iterator(self.iter_id, "pragma")
        if self.pragma_type == SKIP_PRAGMA:
            return replace(state, attach_map=state.attach_map.without(self.stage_id))
        if self.pragma_type.startswith(UNROLL_PRAGMA):
            attributes = replace(stage.attrs, auto_unroll_max_step=self.value())
            return state.with_stage(self.stage_id, replace(stage, attrs=attributes))
        return state

    def value(self) -> int:
        """The number after the sign ``$``."""
        digits = self.pragma_type.partition("$")[2]
        if not digits.isascii() or not digits.isdigit():
            raise ScheduleError(
                f"pragma: {self.pragma_type!r} does not end in a number, as {UNROLL_PRAGMA}$16 does"
            )
        return int(digits)

    def apply_to_schedule(self, replay: Replay) -> None:
        stage, axis = replay.stages[self.stage_id], replay.axis(self.stage_id, self.iter_id)
        if self.pragma_type.startswith(UNROLL_PRAGMA):
            replay.call(stage, "pragma", axis, UNROLL_PRAGMA, self.value())
            replay.call(stage, "pragma", axis, "unroll_explicit", True)
        elif self.pragma_type.startswith(f"{SCOPE_PRAGMA}$"):
            replay.call(stage, "set_scope", self.pragma_type.partition("$")[2])
        else:
            replay.call(stage, "pragma", axis, self.pragma_type)


@recorded_as("RE")
@dataclass(frozen=True, slots=True)
class ReorderStep(Step):
    """Put all loops of a stage in another order."""

    after_ids: tuple[int, ...]

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "reorder")
        if sorted(self.after_ids) != list(range(len(stage.iters))):
            names = ", ".join(one.name for one in stage.iters)
            raise ScheduleError(
                f"reorder: the order {list(self.after_ids)} does not name every iterator of stage {stage.op.name} "
                f"once; they are {names}"
            )
        changed = after_loop_step(stage, tuple(stage.iters[number] for number in self.after_ids), self)
        places = state.attach_map.with_iters_moved(self.stage_id, self.after_ids.index)
        return state.with_stage(self.stage_id, changed, attach_map=places)

    def apply_to_schedule(self, replay: Replay) -> None:
        axes = [replay.axis(self.stage_id, number) for number in self.after_ids]
        replay.call(replay.stages[self.stage_id], "reorder", *axes)


@recorded_as("SA")
@dataclass(frozen=True, slots=True)
class StorageAlignStep(Step):
    """Make the stride of an axis a multiple of ``factor`` plus ``offset``."""

    iter_id: int
    factor: int
    offset: int

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "storage_align")
        stage.iterator(self.iter_id, "storage_align")
        attributes = replace(stage.attrs, storage_offset=self.offset)
        return state.with_stage(self.stage_id, replace(stage, attrs=attributes))

    def apply_to_schedule(self, replay: Replay) -> None:
        axis = replay.axis(self.stage_id, self.iter_id)
        replay.call(replay.stages[self.stage_id], "storage_align", axis, self.factor, self.offset)
