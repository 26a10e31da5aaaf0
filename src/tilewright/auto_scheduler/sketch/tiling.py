"""Tilings of several levels, and stages that follow them."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.auto_scheduler.sketch.draft import Draft
from tilewright.auto_scheduler.sketch.queries import NO_SPLIT_AT_INNER, names_in_attribute
from tilewright.auto_scheduler.state_nodes import Iterator, IteratorKind
from tilewright.support.errors import ScheduleError

CPU_STRUCTURE = "SSRSRS"
GPU_STRUCTURE = "SSSRRSRS"
"""The levels of a tiling from the outside in: S over results, R over what is reduced."""


def tile(draft: Draft, stage_id: int, structure: str) -> list[int]:
    """Tile a stage, with lengths left open; the steps that split loops over its results."""
    letters = structure.upper()
    levels: dict[IteratorKind, list[list[Iterator]]] = {
        IteratorKind.SPATIAL: [[] for _ in range(letters.count("S"))],
        IteratorKind.REDUCTION: [[] for _ in range(letters.count("R"))],
    }
    if sum(map(len, levels.values())) != len(letters):
        raise ScheduleError(f"a tiling is written with the letters S and R, not {structure!r}")
    whole = names_in_attribute(draft.stages[stage_id], NO_SPLIT_AT_INNER)
    innermost: dict[IteratorKind, list[Iterator]] = {kind: [] for kind in levels}
    followed: list[int] = []
    for iterator in draft.iters(stage_id):
        kind = iterator.iter_kind
        if iterator.name in whole:
            innermost[kind].append(iterator)
            continue
        count = len(levels[kind])
        place = draft.stages[stage_id].index_of(iterator)
        if count > 1:
            number = draft.split(stage_id, place, [None] * (count - 1))
            if kind == IteratorKind.SPATIAL:
                followed.append(number)
        for level, part in enumerate(draft.iters(stage_id)[place : place + count]):
            levels[kind][level].append(part)
    for kind, iterators in innermost.items():
        levels[kind][-1] += iterators
    order: list[Iterator] = []
    for letter in letters:
        kind = IteratorKind.SPATIAL if letter == "S" else IteratorKind.REDUCTION
        order += levels[kind].pop(0)
    draft.reorder(stage_id, order)
    return followed


def follow_tiling(draft: Draft, stage_id: int, followed: Sequence[int], count: int) -> int:
    """Split the loops of a stage into ``count`` outer levels and one inner as another stage was tiled; the number of
    the last loop of the outer levels."""
    whole = names_in_attribute(draft.stages[stage_id], NO_SPLIT_AT_INNER)
    levels: list[list[Iterator]] = [[] for _ in range(count + 1)]
    steps = list(followed)
    for iterator in draft.iters(stage_id):
        if iterator.name in whole:
            levels[-1].append(iterator)
            continue
        place = draft.stages[stage_id].index_of(iterator)
        draft.follow_split(stage_id, place, steps.pop(0), count)
        for level, part in enumerate(draft.iters(stage_id)[place : place + count + 1]):
            levels[level].append(part)
    draft.reorder(stage_id, [one for level in levels for one in level])
    return count * len(followed) - 1


def fuse_reductions(draft: Draft, stage_id: int) -> int:
    """Make one loop of all that reduce; its number."""
    iterators = draft.iters(stage_id)
    space = [one for one in iterators if one.iter_kind == IteratorKind.SPATIAL]
    reduced = [one for one in iterators if one.iter_kind == IteratorKind.REDUCTION]
    if list(iterators) != [*space, *reduced]:
        draft.reorder(stage_id, [*space, *reduced])
    if len(reduced) > 1:
        draft.fuse(stage_id, range(len(space), len(space) + len(reduced)))
    return len(space)


def outermost_reduction_end(draft: Draft, stage_id: int) -> int:
    """The last loop of the outermost level that reduces: what is read there is used by all tiles inside."""
    seen = False
    for number, iterator in enumerate(draft.iters(stage_id)):
        if iterator.iter_kind == IteratorKind.REDUCTION:
            seen = True
        elif seen:
            return number - 1
    if not seen:
        raise ScheduleError(f"stage {draft.stages[stage_id].op.name} reduces nothing")
    return len(draft.iters(stage_id)) - 1
