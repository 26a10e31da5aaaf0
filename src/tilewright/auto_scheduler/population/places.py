"""Where a stage that is not tiled may be computed."""

from __future__ import annotations

import random
from typing import Any

from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.sketch.draft import Draft
from tilewright.auto_scheduler.state_nodes import ComputeAtKind, IteratorAnnotation, IteratorKind, StateObject


def places_for(task: Any, state: StateObject, stage_id: int) -> list[tuple[int, int]]:
    """The loops that a stage can be computed in, each as a stage and the number of its loop."""
    target = queries.single_consumer(task, state, stage_id)
    if target is None:
        return []
    inside = state.attach_map.iter_to_attached_stages
    reader = state.stages[target]
    placed_itself = reader.compute_at == ComputeAtKind.ITER
    tiled = queries.is_tiled(reader)
    found: list[tuple[int, int]] = []
    seen_reduction = False
    for number, iterator in enumerate(reader.iters):
        if iterator.iter_kind == IteratorKind.REDUCTION:
            seen_reduction = True
            if not tiled:
                break
        elif seen_reduction:
            # Inside the reduction it would be computed again and again.
            break
        if iterator.annotation == IteratorAnnotation.UNROLL:
            break
        if queries.extent(iterator) == 1:
            continue
        if placed_itself and iterator.iter_kind == IteratorKind.SPATIAL and iterator.name.endswith(".0"):
            # The outer loops of a stage that is computed in a tile have one iteration.
            continue
        found.append((target, number))
        if (target, number) in inside:
            break
    if placed_itself:
        around = state.attach_map.stage_to_attach_iter[target][0]
        for number, iterator in enumerate(state.stages[around].iters):
            if (
                iterator.iter_kind == IteratorKind.REDUCTION
                or (around, number) in inside
                or iterator.annotation == IteratorAnnotation.UNROLL
            ):
                break
            if queries.extent(iterator) > 1:
                found.append((around, number))
    return found


def is_movable(task: Any, state: StateObject, stage_id: int) -> bool:
    """True for a stage whose place the search chooses: one with loops of its own that are not tiled."""
    stage = state.stages[stage_id]
    return (
        queries.is_computed(stage)
        and not queries.is_output(task, state, stage_id)
        and not queries.is_tiled(stage)
        and not queries.needs_tiling(task, state, stage_id)
    )


def can_be_inlined(state: StateObject, stage_id: int) -> bool:
    """True if a stage's expression can stand where it is read."""
    return not queries.has_reduction(state.stages[stage_id]) and not state.attach_map.attached_to(stage_id)


def choose_places(task: Any, draft: Draft, generator: random.Random) -> None:
    """Give every stage that may be anywhere a place: inlined, at the root, or in a loop of its reader."""
    for stage_id in reversed(range(len(draft.stages))):
        if not is_movable(task, draft.state, stage_id):
            continue
        found = places_for(task, draft.state, stage_id)
        choice = generator.randrange(len(found) + 2)
        if choice == 0 and can_be_inlined(draft.state, stage_id):
            draft.compute_inline(stage_id)
        elif choice <= 1:
            draft.compute_root(stage_id)
        else:
            draft.compute_at(stage_id, *found[choice - 2])
