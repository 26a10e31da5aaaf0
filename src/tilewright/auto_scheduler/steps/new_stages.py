"""Steps that add a stage: copies in other memory, and reductions in two parts.

They renumber the stages after the one they add. What the operations are after them is found by taking them on a
schedule of the graph; the graph keeps what it found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.auto_scheduler.state_nodes import (
    IteratorKind,
    Stage,
    StageKind,
    StateObject,
    initial_stage,
)
from tilewright.auto_scheduler.steps.base import Step, recorded_as
from tilewright.support.errors import ScheduleError
from tilewright.te.tensor import Operation

if TYPE_CHECKING:
    from tilewright.auto_scheduler.compute_dag import ComputeDAG
    from tilewright.auto_scheduler.replay import Replay


def _grown(state: StateObject, dag: ComputeDAG, step: Step, stage: Stage) -> tuple[ComputeDAG, StateObject]:
    """The graph after a step that adds stages, and the state that knows of it."""
    added = (*state.added, (step, stage.loop_steps))
    grown = dag.with_added_stages(added)
    return grown, replace(state, added=added, current_compute_dag=grown)


def _with_operations(stages: list[Stage], operations: list[Operation]) -> tuple[Stage, ...]:
    """The stages with their operations as they are now."""
    return tuple(
        stage if stage.op is operation else replace(stage, op=operation)
        for stage, operation in zip(stages, operations, strict=True)
    )


@recorded_as("CHR")
@dataclass(frozen=True, slots=True)
class CacheReadStep(Step):
    """A copy of a stage's result in another memory, for some of its readers. Its stage comes right after."""

    scope_name: str
    reader_stage_ids: tuple[int, ...]

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "cache_read")
        for number in self.reader_stage_ids:
            reader = state.stage(number, "cache_read")
            if not any(tensor.op is stage.op for tensor in reader.op.input_tensors):
                raise ScheduleError(f"cache_read: stage {reader.op.name} does not read stage {stage.op.name}")
        # The copy does not depend on the loops of what it copies.
        grown, made = _grown(state, dag, self, replace(stage, loop_steps=()))
        position = self.stage_id + 1
        stages = list(state.stages)
        stages.insert(position, initial_stage(grown.ops[position]))
        return replace(
            made,
            stages=_with_operations(stages, grown.ops),
            attach_map=state.attach_map.with_stages_inserted(position),
        )

    def apply_to_schedule(self, replay: Replay) -> None:
        source = replay.stages[self.stage_id]
        readers = [replay.stages[number] for number in self.reader_stage_ids]
        replay.cache_read(source, self.scope_name, readers)


@recorded_as("CHW")
@dataclass(frozen=True, slots=True)
class CacheWriteStep(Step):
    """Compute a stage in another memory and copy the result. The new stage comes right before."""

    scope_name: str

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "cache_write")
        if stage.op_type == StageKind.PLACEHOLDER:
            raise ScheduleError(f"cache_write: stage {stage.op.name} is an input")
        return _split_stage(state, dag, self, stage)

    def apply_to_schedule(self, replay: Replay) -> None:
        replay.cache_write(replay.stages[self.stage_id], self.scope_name)


@recorded_as("RF")
@dataclass(frozen=True, slots=True)
class RfactorStep(Step):
    """Reduce over all loops but one first, and over that one afterwards. The stage of the first part comes right
    before."""

    iter_id: int
    factor_iter_id: int

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "rfactor")
        iterator = stage.iterator(self.iter_id, "rfactor")
        if iterator.iter_kind != IteratorKind.REDUCTION:
            raise ScheduleError(
                f"rfactor: iterator {iterator.name} of stage {stage.op.name} is not one of a reduction"
            )
        return _split_stage(state, dag, self, stage)

    def apply_to_schedule(self, replay: Replay) -> None:
        axis = replay.axis(self.stage_id, self.iter_id)
        replay.rfactor(replay.stages[self.stage_id], axis, self.factor_iter_id)


def _split_stage(state: StateObject, dag: ComputeDAG, step: Step, stage: Stage) -> StateObject:
    """A stage became two: the new one before it, and itself with fresh loops."""
    inside = state.attach_map.attached_to(step.stage_id)
    if inside:
        held = state.stages[inside[0]].op.name
        raise ScheduleError(
            f"stage {held} is computed inside stage {stage.op.name}, whose loops this step replaces; place it later"
        )
    grown, made = _grown(state, dag, step, stage)
    position = step.stage_id
    fresh = replace(initial_stage(grown.ops[position + 1]), compute_at=stage.compute_at)
    stages = [
        *state.stages[:position],
        initial_stage(grown.ops[position]),
        fresh,
        *state.stages[position + 1 :],
    ]
    return replace(
        made,
        stages=_with_operations(stages, grown.ops),
        attach_map=state.attach_map.with_stages_inserted(position),
    )
