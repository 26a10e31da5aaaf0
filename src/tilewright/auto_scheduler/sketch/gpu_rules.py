"""The rules that only GPUs have: shared memory, reductions by several threads."""

from __future__ import annotations

from typing import Any

from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.sketch.draft import Draft
from tilewright.auto_scheduler.sketch.rule import Condition, Derived, SketchRule
from tilewright.auto_scheduler.sketch.tiling import fuse_reductions, outermost_reduction_end
from tilewright.auto_scheduler.state_nodes import IteratorAnnotation, StateObject
from tilewright.te.operation import ComputeOp


class AddCacheRead(SketchRule):
    """Copy what a tiled stage reads into shared memory, a tile of the reduction at a time."""

    name = "AddCacheRead"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        readers = queries.consumers(task, state, stage_id)
        if len(readers) != 1:
            return Condition.PASS
        (target,) = readers
        if (
            not queries.needs_tiling(task, state, target)
            or queries.has_cross_thread_reduction(state, target)
            or stage_id not in queries.direct_producers(task, state, target)
        ):
            return Condition.PASS
        return Condition.APPLY_AND_SKIP_REST

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        (target,) = queries.consumers(task, state, stage_id)
        draft = Draft(state, task.compute_dag)
        added = draft.cache_read(stage_id, "shared", [target])
        draft.compute_at(added, target + 1, outermost_reduction_end(draft, target + 1))
        # The stage that was copied may still be inlined into the copy.
        follows = stage_id if isinstance(state.stages[stage_id].op, ComputeOp) else stage_id - 1
        return [(draft.state, follows)]


class SpecialComputeLocation(SketchRule):
    """Compute what is read by a stage with unrolled constant indices in that stage's innermost loop that is not
    unrolled."""

    name = "SpecialComputeLocationGPU"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        if not queries.producers(task, state, stage_id):
            return Condition.PASS
        readers = queries.consumers(task, state, stage_id)
        if len(readers) != 1 or queries.CONST_TENSOR_INDICES not in state.stages[readers[0]].op.attrs:
            return Condition.PASS
        return Condition.APPLY_AND_SKIP_REST

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        (target,) = queries.consumers(task, state, stage_id)
        draft = Draft(state, task.compute_dag)
        for number, iterator in enumerate(state.stages[target].iters):
            if iterator.annotation == IteratorAnnotation.UNROLL:
                if number > 0:
                    draft.compute_at(stage_id, target, number - 1)
                break
        return [(draft.state, stage_id - 1)]


class CrossThreadReduction(SketchRule):
    """Let the threads of a warp reduce together where there are few results."""

    name = "CrossThreadReduction"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        stage = state.stages[stage_id]
        if queries.has_cache_write(state, stage_id) or not isinstance(stage.op, ComputeOp):
            return Condition.PASS
        space, reduced = queries.space_and_reduction_lengths(stage)
        if queries.needs_tiling(task, state, stage_id):
            return Condition.APPLY if space <= reduced else Condition.PASS
        return Condition.APPLY if reduced > max(1, task.hardware_params.warp_size) else Condition.PASS

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        draft = Draft(state, task.compute_dag)
        fused = fuse_reductions(draft, stage_id)
        place = self._shared_place(task, draft, stage_id)
        if place is None:
            draft.split(stage_id, fused, [task.hardware_params.warp_size])
            self._bind(draft, stage_id, fused)
            return [(draft.state, stage_id - 1)]
        target, common = place
        followed = queries.split_steps(draft.state, target)
        if not followed:
            # A stage that was not split reduces nothing itself: its results are written by the same threads.
            last = len(draft.iters(target)) - 1
            followed = [draft.split(target, last, [task.hardware_params.warp_size])]
            draft.annotate(target, last + 1, IteratorAnnotation.THREAD_X)
        draft.follow_split(stage_id, fused, followed[0], 1)
        self._bind(draft, stage_id, fused)
        draft.compute_at(stage_id, target, common - 1)
        return [(draft.state, stage_id - 1)]

    def _bind(self, draft: Draft, stage_id: int, outer: int) -> None:
        """Give the inner part of a reduction to threads, each of which goes over the outer part."""
        order = list(draft.iters(stage_id))
        order[outer], order[outer + 1] = order[outer + 1], order[outer]
        draft.reorder(stage_id, order)
        draft.annotate(stage_id, outer, IteratorAnnotation.THREAD_X)

    def _shared_place(self, task: Any, draft: Draft, stage_id: int) -> tuple[int, int] | None:
        """The stage whose rows a reduction can be computed in, and how many of its loops they are."""
        target = queries.single_consumer(task, draft.state, stage_id)
        if target is None or queries.needs_tiling(task, draft.state, target):
            return None
        analyzer = queries.analyzer(task, draft.state)
        common = analyzer.get_num_common_outer_iterator(draft.stages[stage_id].op, draft.stages[target].op)
        split = queries.split_steps(draft.state, target)
        if common <= 0 or len(split) > 1:
            return None
        # The innermost loop is for the threads.
        if not split and common >= len(draft.iters(target)):
            return None
        return target, common
