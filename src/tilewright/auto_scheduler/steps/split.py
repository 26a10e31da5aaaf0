"""Steps that split a loop: by given lengths, or by those of earlier splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tilewright.auto_scheduler.state_nodes import (
    ANNOTATION_TEXTS,
    Iterator,
    IteratorAnnotation,
    StateObject,
)
from tilewright.auto_scheduler.steps.base import Step, recorded_as
from tilewright.auto_scheduler.steps.loops import after_loop_step
from tilewright.ir.expr import IterVar, Range
from tilewright.support.errors import ScheduleError

if TYPE_CHECKING:
    from tilewright.auto_scheduler.compute_dag import ComputeDAG
    from tilewright.auto_scheduler.replay import Replay

Lengths = tuple[int | None, ...]


@recorded_as("SP")
@dataclass(frozen=True, slots=True)
class SplitStep(Step):
    """Split a loop into one more loop than there are lengths.

    From the inside out, the lengths are those of the inner loops, and the outermost takes what is left; otherwise they
    are those of the outer ones. A length of None is still open: a search fills it in. ``extent`` is what the loop had
    when it was split, where that was known.
    """

    iter_id: int
    extent: int | None
    lengths: tuple[int | None, ...]
    inner_to_outer: bool

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "split")
        iterator = stage.iterator(self.iter_id, "split")
        if iterator.annotation != IteratorAnnotation.NONE:
            raise ScheduleError(
                f"split: iterator {iterator.name} of stage {stage.op.name} is annotated already "
                f"({ANNOTATION_TEXTS[iterator.annotation]})"
            )
        if not self.lengths:
            raise ScheduleError(f"split: no lengths for iterator {iterator.name} of stage {stage.op.name}")
        for length in self.lengths:
            if length is not None and length <= 0:
                raise ScheduleError(
                    f"split: length {length} for iterator {iterator.name} of stage {stage.op.name} is not positive"
                )
        parts = _parts(iterator, self.lengths, self.inner_to_outer)
        iters = (*stage.iters[: self.iter_id], *parts, *stage.iters[self.iter_id + 1 :])
        # A stage computed in the loop is computed in the innermost of its parts then.
        places = state.attach_map.with_iters_moved(
            self.stage_id, lambda number: number + len(self.lengths) if number >= self.iter_id else number
        )
        return state.with_stage(
            self.stage_id,
            after_loop_step(stage, iters, self),
            attach_map=places,
            concrete=state.concrete and None not in self.lengths,
        )

    def apply_to_schedule(self, replay: Replay) -> None:
        stage = replay.stages[self.stage_id]
        rest: IterVar = replay.axis(self.stage_id, self.iter_id)
        if self.inner_to_outer:
            for length in reversed(self.lengths):
                rest, _ = replay.call(stage, "split", rest, factor=_known(length))
        else:
            for length in self.lengths:
                _, rest = replay.call(stage, "split", rest, nparts=_known(length))


def _known(length: int | None) -> int:
    if length is None:
        raise ScheduleError("split: a length is not known yet; the search fills in the lengths of a sketch")
    return length


def _parts(iterator: Iterator, lengths: Lengths, inner_to_outer: bool) -> list[Iterator]:
    """The iterators of a split, outermost first."""
    rest = iterator.extent
    found: list[int | None] = []
    for length in reversed(lengths) if inner_to_outer else lengths:
        # A factor larger than what it splits shrinks to it.
        size = None if length is None or rest is None else max(min(length, rest), 1)
        rest = None if size is None or rest is None else -(-rest // size)
        found.append(size)
    found.append(rest)
    if inner_to_outer:
        found.reverse()
    return [
        Iterator(f"{iterator.name}.{number}", None if size is None else Range(0, size), iterator.iter_kind)
        for number, size in enumerate(found)
    ]


def _followed(steps: Sequence[Step], number: int, what: str) -> SplitStep:
    if not 0 <= number < len(steps):
        raise ScheduleError(
            f"{what}: there are {len(steps)} steps before it, there is no step {number} to follow"
        )
    step = steps[number]
    if not isinstance(step, SplitStep):
        raise ScheduleError(f"{what}: step {number} is not a split by lengths ({step.as_text()})")
    return step


@dataclass(frozen=True, slots=True)
class _Following(Step):
    """A split whose lengths are those of earlier splits."""

    iter_id: int

    def as_split(self, steps: Sequence[Step], extent: int | None) -> SplitStep:
        """This step with its lengths written out; ``steps`` are those before it."""
        raise NotImplementedError

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        stage = state.stage(self.stage_id, "follow_split")
        extent = stage.iterator(self.iter_id, "follow_split").extent
        return self.as_split(state.transform_steps, extent).apply_to_state(state, dag)

    def apply_to_schedule(self, replay: Replay) -> None:
        self.as_split(replay.steps, None).apply_to_schedule(replay)


@recorded_as("FSP")
@dataclass(frozen=True, slots=True)
class FollowSplitStep(_Following):
    """Split a loop as an earlier step split another: by its first ``n_split - 1`` lengths, and the product of the
    others."""

    src_step_id: int
    n_split: int

    def as_split(self, steps: Sequence[Step], extent: int | None) -> SplitStep:
        return SplitStep(self.stage_id, self.iter_id, extent, self.extract_split_lengths(steps), True)

    def extract_split_lengths(self, steps: Sequence[Step]) -> Lengths:
        """The lengths to split by."""
        followed = _followed(steps, self.src_step_id, "follow_split").lengths
        if not 1 <= self.n_split <= len(followed):
            raise ScheduleError(
                f"follow_split: step {self.src_step_id} has {len(followed)} lengths, {self.n_split} cannot follow them"
            )
        others = followed[self.n_split - 1 :]
        known = [length for length in others if length is not None]
        last = prod(known) if len(known) == len(others) else None
        return (*followed[: self.n_split - 1], last)


@recorded_as("FFSP")
@dataclass(frozen=True, slots=True)
class FollowFusedSplitStep(_Following):
    """Split a loop by the product of what several earlier splits have at one level: the loop of a producer after
    theirs were fused."""

    src_step_ids: tuple[int, ...]
    level: int
    factor_or_nparts: bool

    def as_split(self, steps: Sequence[Step], extent: int | None) -> SplitStep:
        lengths = (self.extract_split_length(steps),)
        return SplitStep(self.stage_id, self.iter_id, extent, lengths, self.factor_or_nparts)

    def extract_split_length(self, steps: Sequence[Step]) -> int | None:
        """The length to split by."""
        total = 1
        for number in self.src_step_ids:
            followed = _followed(steps, number, "follow_fused_split").lengths
            if not 0 <= self.level < len(followed):
                raise ScheduleError(
                    f"follow_fused_split: step {number} has {len(followed)} lengths, there is no level {self.level}"
                )
            length = followed[self.level]
            if length is None:
                return None
            total *= length
        return total
