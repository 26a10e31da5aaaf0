"""Blocks and threads for GPUs."""

from __future__ import annotations

import math
from typing import Any

from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.sketch.draft import Draft
from tilewright.auto_scheduler.state_nodes import ComputeAtKind, IteratorAnnotation, IteratorKind
from tilewright.auto_scheduler.steps import FollowSplitStep
from tilewright.support.errors import ScheduleError

_THREAD_LEVEL = 1
"""Of the lengths of a tiling's splits, those of the loops that become threads; the one before are virtual threads."""


def bind_threads(task: Any, draft: Draft) -> None:
    """Bind the loops of every stage to blocks and threads. Raises ``ScheduleError`` for tile sizes that do not fit."""
    tiled = _roots_of_tilings(task, draft)
    has_ranges = False
    for stage_id in reversed(range(len(draft.stages))):
        stage = draft.stages[stage_id]
        if not queries.is_computed(stage):
            continue
        if queries.has_cross_thread_reduction(draft.state, stage_id):
            if stage.compute_at == ComputeAtKind.ROOT:
                draft.annotate(stage_id, _fuse_outer_space(draft, stage_id), IteratorAnnotation.BLOCK_X)
        elif any(one.annotation == IteratorAnnotation.THREAD_X for one in stage.iters):
            _bind_blocks(draft, stage_id)
        elif stage.compute_at == ComputeAtKind.ROOT:
            if stage_id in tiled:
                _bind_tiles(task, draft, stage_id)
            else:
                _bind_plain(task, draft, stage_id)
        elif stage.op.name.endswith(".shared"):
            # Of what is placed, the size is known after bound inference; most samples do not get here.
            if not has_ranges:
                draft.state = task.compute_dag.infer_bound_from_state(draft.state).state_object
                has_ranges = True
            _fetch_together(draft, stage_id)


def _roots_of_tilings(task: Any, draft: Draft) -> set[int]:
    """The stages whose tiles other stages are computed in."""
    places = draft.state.attach_map.stage_to_attach_iter
    return {
        places[stage_id][0]
        for stage_id in range(len(draft.stages))
        if queries.needs_tiling(task, draft.state, stage_id) and stage_id in places
    }


def _fuse_outer_space(draft: Draft, stage_id: int) -> int:
    """Make one loop of the outermost loops over results; its number."""
    inside = draft.state.attach_map.iter_to_attached_stages
    outer: list[int] = []
    for number, iterator in enumerate(draft.iters(stage_id)):
        if iterator.iter_kind == IteratorKind.REDUCTION or iterator.annotation != IteratorAnnotation.NONE:
            break
        outer.append(number)
        # What is computed in a loop stays in it.
        if (stage_id, number) in inside:
            break
    return draft.fuse(stage_id, outer) if len(outer) != 1 else outer[0]


def _bind_blocks(draft: Draft, stage_id: int) -> None:
    """Blocks for a stage that has its threads, written by the threads of a reduction that is computed in it."""
    if draft.stages[stage_id].compute_at != ComputeAtKind.ROOT:
        return
    first = draft.iters(stage_id)[0]
    if first.annotation == IteratorAnnotation.NONE:
        draft.annotate(stage_id, _fuse_outer_space(draft, stage_id), IteratorAnnotation.BLOCK_X)


def _bind_plain(task: Any, draft: Draft, stage_id: int) -> None:
    """A stage that is not tiled: a warp of its elements in each block; the search tries other sizes."""
    warp = task.hardware_params.warp_size
    fused = _fuse_outer_space(draft, stage_id)
    if queries.extent(draft.iters(stage_id)[fused]) <= warp:
        draft.annotate(stage_id, fused, IteratorAnnotation.THREAD_X)
        return
    draft.split(stage_id, fused, [warp])
    draft.annotate(stage_id, fused, IteratorAnnotation.BLOCK_X)
    draft.annotate(stage_id, fused + 1, IteratorAnnotation.THREAD_X)


def _bind_tiles(task: Any, draft: Draft, stage_id: int) -> None:
    """A tiled stage: its three outer levels are blocks, virtual threads and threads."""
    limits = task.hardware_params
    elements = math.prod(queries.extent(one) for one in draft.iters(stage_id))
    if elements <= limits.warp_size:
        draft.annotate(stage_id, _fuse_outer_space(draft, stage_id), IteratorAnnotation.THREAD_X)
        return
    for level, annotation in enumerate(
        (IteratorAnnotation.BLOCK_X, IteratorAnnotation.VTHREAD, IteratorAnnotation.THREAD_X)
    ):
        numbers = [level]
        while numbers[-1] + 1 < len(draft.iters(stage_id)) and draft.iters(stage_id)[
            numbers[-1] + 1
        ].name.endswith(f".{level}"):
            numbers.append(numbers[-1] + 1)
        place = draft.fuse(stage_id, numbers) if len(numbers) > 1 else numbers[0]
        extent = queries.extent(draft.iters(stage_id)[place])
        if annotation == IteratorAnnotation.VTHREAD and extent > limits.max_vthread_extent:
            raise ScheduleError(f"{extent} virtual threads are more than {limits.max_vthread_extent}")
        if (
            annotation == IteratorAnnotation.THREAD_X
            and not limits.warp_size <= extent <= limits.max_threads_per_block
        ):
            raise ScheduleError(
                f"{extent} threads in a block are not between {limits.warp_size} and {limits.max_threads_per_block}"
            )
        draft.annotate(stage_id, place, annotation)


def _fetch_together(draft: Draft, stage_id: int) -> None:
    """All threads of a block copy a part of what they share; each copy may be a vector."""
    target = draft.state.attach_map.stage_to_attach_iter[stage_id][0]
    followed = _spatial_splits(draft, target)
    count = len(draft.iters(stage_id))
    if count > 1:
        draft.fuse(stage_id, range(count))
    draft.split(stage_id, 0, [1])
    draft.annotate(stage_id, 1, IteratorAnnotation.VECTORIZE)
    draft.follow_fused_split(stage_id, 0, followed, _THREAD_LEVEL)
    draft.annotate(stage_id, 1, IteratorAnnotation.THREAD_X)


def _spatial_splits(draft: Draft, stage_id: int) -> list[int]:
    """The splits of a tiled stage's loops over results: those that the stage it is computed in follows."""
    own = set(queries.split_steps(draft.state, stage_id))
    steps = draft.state.transform_steps
    found = sorted({step.src_step_id for step in steps if isinstance(step, FollowSplitStep)} & own)
    if not found:
        raise ScheduleError(f"no stage follows the tiles of {draft.stages[stage_id].op.name}")
    return found
