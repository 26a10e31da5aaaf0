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

_LEFT_SCALAR = 0.25
"""How often a long innermost loop is left for the compiler to vectorize."""

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


def vectorize(task: Any, draft: Draft, longest: int, generator: random.Random) -> None:
    """Vectorize the innermost loops of every stage, several fused where they are contiguous. A loop that is too long is
    split; the search tries other lengths."""
    for stage_id, stage in enumerate(draft.stages):
        if not queries.is_computed(stage) or not stage.iters:
            continue
        count = _contiguous(draft, stage_id, longest)
        if count > 1:
            count = 1 + generator.randrange(count - 1)
        place = len(stage.iters) - max(count, 1)
        if count > 1:
            draft.fuse(stage_id, range(place, len(stage.iters)))
        elif count == 0:
            lanes = _lanes(task, draft, stage_id, longest, generator)
            if lanes is None:
                continue
            draft.split(stage_id, place, [lanes])
            place += 1
        draft.annotate(stage_id, place, IteratorAnnotation.VECTORIZE)


def _contiguous(draft: Draft, stage_id: int, longest: int) -> int:
    """How many of the innermost loops of a stage are one vectorized loop of at most so many iterations."""
    stage = draft.stages[stage_id]
    lanes, count = 1, 0
    while count < len(stage.iters):
        lanes *= queries.extent(stage.iters[-1 - count])
        # Two loops of a tile are not contiguous.
        if not _is_free(draft, stage_id, count) or (queries.is_tiled(stage) and count > 0) or lanes > longest:
            break
        count += 1
    return count


def _is_free(draft: Draft, stage_id: int, from_inside: int) -> bool:
    """True if the loop so many from the inside goes over results, has nothing computed in it, and no annotation."""
    stage = draft.stages[stage_id]
    number = len(stage.iters) - 1 - from_inside
    iterator = stage.iters[number]
    return (
        (stage_id, number) not in draft.state.attach_map.iter_to_attached_stages
        and iterator.iter_kind == IteratorKind.SPATIAL
        and iterator.annotation == IteratorAnnotation.NONE
    )


def _lanes(task: Any, draft: Draft, stage_id: int, longest: int, generator: random.Random) -> int | None:
    """The length of a vectorized loop to split off the innermost one: one vector or a few, without a rest where that is
    possible; None where the loop cannot be vectorized, or by chance."""
    if not _is_free(draft, stage_id, 0) or generator.random() < _LEFT_SCALAR:
        return None
    length = queries.extent(draft.iters(stage_id)[-1])
    vector = max(1, task.hardware_params.vector_unit_bytes // 4)
    sizes = [vector * times for times in (1, 2, 4) if 1 < vector * times <= min(longest, length)]
    whole = [size for size in sizes if length % size == 0]
    return generator.choice(whole or sizes) if sizes else None
