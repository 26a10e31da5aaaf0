"""Steps that say where a stage is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.auto_scheduler.state_nodes import ComputeAtKind, Stage, StageKind, StateObject
from tilewright.auto_scheduler.steps.base import Step, recorded_as
from tilewright.support.errors import ScheduleError

if TYPE_CHECKING:
    from tilewright.auto_scheduler.compute_dag import ComputeDAG
    from tilewright.auto_scheduler.replay import Replay


def _computed(state: StateObject, stage_id: int, what: str) -> Stage:
    """A stage that may be given a place."""
    stage = state.stage(stage_id, what)
    if stage.op_type == StageKind.PLACEHOLDER:
        raise ScheduleError(f"{what}: stage {stage.op.name} is an input")
    return stage


def _moved(stage: Stage, place: ComputeAtKind) -> Stage:
    """A stage at another place. How much of it is computed there follows from bound inference."""
    return replace(stage, compute_at=place, iters=tuple(replace(one, range=None) for one in stage.iters))


@recorded_as("CA")
@dataclass(frozen=True, slots=True)
class ComputeAtStep(Step):
    """Compute a stage inside a loop of another."""

    target_stage_id: int
    target_iter_id: int

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = _computed(state, self.stage_id, "compute_at")
        target = state.stage(self.target_stage_id, "compute_at")
        target.iterator(self.target_iter_id, "compute_at")
        around: int | None = self.target_stage_id
        while around is not None:
            if around == self.stage_id:
                raise ScheduleError(
                    f"compute_at: stage {target.op.name} is itself computed inside stage {stage.op.name}"
                )
            place = state.attach_map.stage_to_attach_iter.get(around)
            around = None if place is None else place[0]
        places = state.attach_map.placed(self.stage_id, self.target_stage_id, self.target_iter_id)
        return state.with_stage(self.stage_id, _moved(stage, ComputeAtKind.ITER), attach_map=places)

    def apply_to_schedule(self, replay: Replay) -> None:
        target = replay.stages[self.target_stage_id]
        axis = replay.axis(self.target_stage_id, self.target_iter_id)
        replay.call(replay.stages[self.stage_id], "compute_at", target, axis)


@recorded_as("CI")
@dataclass(frozen=True, slots=True)
class ComputeInlineStep(Step):
    """Put the expression of a stage wherever it is read."""

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = _computed(state, self.stage_id, "compute_inline")
        if stage.op.reduce_axis:
            raise ScheduleError(f"compute_inline: stage {stage.op.name} is a reduction")
        inside = state.attach_map.attached_to(self.stage_id)
        if inside:
            held = state.stages[inside[0]].op.name
            raise ScheduleError(f"compute_inline: stage {held} is computed inside stage {stage.op.name}")
        made = replace(stage, compute_at=ComputeAtKind.INLINED)
        return state.with_stage(self.stage_id, made, attach_map=state.attach_map.without(self.stage_id))

    def apply_to_schedule(self, replay: Replay) -> None:
        replay.call(replay.stages[self.stage_id], "compute_inline")


@recorded_as("CR")
@dataclass(frozen=True, slots=True)
class ComputeRootStep(Step):
    """Compute the whole of a stage before its readers."""

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = _computed(state, self.stage_id, "compute_root")
        made = _moved(stage, ComputeAtKind.ROOT)
        return state.with_stage(self.stage_id, made, attach_map=state.attach_map.without(self.stage_id))

    def apply_to_schedule(self, replay: Replay) -> None:
        replay.call(replay.stages[self.stage_id], "compute_root")
