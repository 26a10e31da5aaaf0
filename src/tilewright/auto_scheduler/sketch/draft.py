"""A state that steps are taken on one after the other; what rules and samplers work with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.auto_scheduler.state_nodes import Iterator, IteratorAnnotation, Stage, StateObject
from tilewright.auto_scheduler.steps import (
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    Step,
)
from tilewright.auto_scheduler.steps.loops import UNROLL_PRAGMA


class Draft:
    """Stages and iterators are given by number: a step replaces the iterators that it changes."""

    def __init__(self, state: StateObject, dag: Any) -> None:
        self.state = state
        self.dag = dag

    def copy(self) -> Draft:
        """Another draft that starts from here."""
        return Draft(self.state, self.dag)

    def take(self, step: Step) -> None:
        """Take a step."""
        self.state = self.state.apply(step, self.dag)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages as they are now."""
        return self.state.stages

    def iters(self, stage_id: int) -> tuple[Iterator, ...]:
        """The iterators of a stage."""
        return self.state.stages[stage_id].iters

    @property
    def last_step(self) -> int:
        """The number of the step that was taken last."""
        return len(self.state.transform_steps) - 1

    def split(self, stage_id: int, iter_id: int, lengths: Sequence[int | None]) -> int:
        """Split an iterator into one more than there are lengths; the number of the step."""
        extent = self.iters(stage_id)[iter_id].extent
        self.take(SplitStep(stage_id, iter_id, extent, tuple(lengths), True))
        return self.last_step

    def follow_split(self, stage_id: int, iter_id: int, step: int, count: int) -> None:
        """Split as an earlier step did."""
        self.take(FollowSplitStep(stage_id, iter_id, step, count))

    def follow_fused_split(self, stage_id: int, iter_id: int, steps: Sequence[int], level: int) -> None:
        """Split by the product of what earlier steps have at one level."""
        self.take(FollowFusedSplitStep(stage_id, iter_id, tuple(steps), level, True))

    def fuse(self, stage_id: int, iter_ids: Sequence[int]) -> int:
        """Fuse iterators; the number of the one they become."""
        self.take(FuseStep(stage_id, tuple(iter_ids)))
        return iter_ids[0] if iter_ids else 0

    def reorder(self, stage_id: int, order: Sequence[Iterator]) -> None:
        """Put the iterators of a stage into an order."""
        places = {id(one): number for number, one in enumerate(self.iters(stage_id))}
        self.take(ReorderStep(stage_id, tuple(places[id(one)] for one in order)))

    def annotate(self, stage_id: int, iter_id: int, annotation: IteratorAnnotation) -> None:
        """Say how an iterator runs."""
        self.take(AnnotationStep(stage_id, iter_id, annotation))

    def unroll_up_to(self, stage_id: int, most: int) -> None:
        """Let the loops of a stage be unrolled up to so many statements."""
        self.take(PragmaStep(stage_id, 0, f"{UNROLL_PRAGMA}${most}"))

    def compute_at(self, stage_id: int, target_id: int, iter_id: int) -> None:
        """Compute a stage inside a loop of another."""
        self.take(ComputeAtStep(stage_id, target_id, iter_id))

    def compute_inline(self, stage_id: int) -> None:
        """Put a stage's expression wherever it is read."""
        self.take(ComputeInlineStep(stage_id))

    def compute_root(self, stage_id: int) -> None:
        """Compute the whole of a stage first."""
        self.take(ComputeRootStep(stage_id))

    def cache_read(self, stage_id: int, scope: str, readers: Sequence[int]) -> int:
        """A copy for some readers; the number of its stage."""
        self.take(CacheReadStep(stage_id, scope, tuple(readers)))
        return stage_id + 1

    def cache_write(self, stage_id: int, scope: str) -> int:
        """Compute a stage in other memory first; the number of the new stage."""
        self.take(CacheWriteStep(stage_id, scope))
        return stage_id

    def rfactor(self, stage_id: int, iter_id: int, factor_iter_id: int) -> int:
        """Reduce in two parts; the number of the stage of the first."""
        self.take(RfactorStep(stage_id, iter_id, factor_iter_id))
        return stage_id
