"""Parallel, unrolled and vectorized loops for processors."""

from __future__ import annotations

import random
from typing import Any

from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.sketch.draft import Draft
from tilewright.auto_scheduler.state_nodes import ComputeAtKind, IteratorAnnotation, IteratorKind, StageKind

CPU_UNROLL_STEPS = (0, 16, 64, 512)
GPU_UNROLL_STEPS = (0, 16, 64, 512, 1024)
"""How many statements a loop may be unrolled to."""

_TASKS_A_CORE = 16
"""How many pieces of work each core gets at most by fusing loops."""


def parallelize(task: Any, draft: Draft) -> None:
    """Run the outermost loops of every stage at the root in parallel."""
    for stage_id, stage in enumerate(draft.stages):
        if stage.compute_at == ComputeAtKind.ROOT and stage.op_type != StageKind.PLACEHOLDER:
            _parallelize(task, draft, stage_id, 0)


def _parallelize(task: Any, draft: Draft, stage_id: int, first: int) -> None:
    """Fuse and run in parallel as many loops as there is work for, from the ``first`` on."""
    inside = draft.state.attach_map.iter_to_attached_stages
    fused: list[int] = []
    pieces = 1
    for number in range(first, len(draft.iters(stage_id))):
        iterator = draft.iters(stage_id)[number]
        if iterator.iter_kind == IteratorKind.REDUCTION or iterator.annotation != IteratorAnnotation.NONE:
            break
        fused.append(number)
        pieces *= queries.extent(iterator)
        if pieces > task.hardware_params.num_cores * _TASKS_A_CORE or (stage_id, number) in inside:
            break
    if pieces == 1 and fused and (held := inside.get((stage_id, fused[-1]))):
        # Nothing to divide around what is computed here, but perhaps in it and after it.
        for attached in held:
            _parallelize(task, draft, attached, 0)
        if fused[-1] + 1 < len(draft.iters(stage_id)):
            _parallelize(task, draft, stage_id, fused[-1] + 1)
        return
    if fused:
        place = draft.fuse(stage_id, fused) if len(fused) > 1 else fused[0]
        draft.annotate(stage_id, place, IteratorAnnotation.PARALLEL)


def unroll(task: Any, draft: Draft, generator: random.Random) -> None:
    """Unroll the loops that operations ask for, and let those of reductions be unrolled up to a number of
    statements."""
    on_gpu = queries.is_gpu_task(task)
    for stage_id, stage in enumerate(draft.stages):
        if not queries.is_computed(stage) or not stage.iters:
            continue
        _unroll_inner(draft, stage_id)
        if queries.has_reduction(stage) or (on_gpu and queries.is_tiled(stage)):
            draft.unroll_up_to(stage_id, generator.choice(GPU_UNROLL_STEPS if on_gpu else CPU_UNROLL_STEPS))


def _unroll_inner(draft: Draft, stage_id: int) -> None:
    """Unroll the innermost loop of each axis that the operation names."""
    wanted = queries.names_in_attribute(draft.stages[stage_id], queries.ALWAYS_UNROLL_INNER)
    seen: set[str] = set()
    for number in reversed(range(len(draft.iters(stage_id)))) if wanted else ():
        iterator = draft.iters(stage_id)[number]
        names = queries.original_names(iterator.name)
        if names <= seen:
            continue
        seen |= names
        if len(names) == 1 and names <= wanted and iterator.annotation == IteratorAnnotation.NONE:
            draft.annotate(stage_id, number, IteratorAnnotation.UNROLL)


def vectorize(draft: Draft, longest: int, generator: random.Random) -> None:
    """Vectorize the innermost loops of every stage, several fused where they are contiguous."""
    inside = draft.state.attach_map.iter_to_attached_stages
    for stage_id, stage in enumerate(draft.stages):
        if not queries.is_computed(stage):
            continue
        lanes, count = 1, 0
        while count < len(stage.iters):
            number = len(stage.iters) - 1 - count
            iterator = stage.iters[number]
            if (
                (stage_id, number) in inside
                or iterator.iter_kind == IteratorKind.REDUCTION
                or iterator.annotation != IteratorAnnotation.NONE
                # Two loops of a tile are not contiguous.
                or (queries.is_tiled(stage) and count > 0)
            ):
                break
            lanes *= queries.extent(iterator)
            if lanes > longest:
                break
            count += 1
        if count > 1:
            count = 1 + generator.randrange(count - 1)
        if count == 0:
            continue
        first = len(stage.iters) - count
        place = draft.fuse(stage_id, range(first, len(stage.iters))) if count > 1 else first
        draft.annotate(stage_id, place, IteratorAnnotation.VECTORIZE)
