"""What is known about a block of a scheduled program: three properties that steps rely on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.arith.int_set import union_lower_bound
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import Range
from tilewright.tir.schedule.analysis import analyzer_for, bindings
from tilewright.tir.schedule.block_scope import DepKind, StmtSRef
from tilewright.tir.schedule.regions import Box, around, certain_box, contains, touched_box

if TYPE_CHECKING:
    from tilewright.tir.schedule.state import ScheduleState


@dataclass(frozen=True)
class CachedFlags:
    """Three properties of a block."""

    affine_binding: bool
    """The values of its axes are an affine map of the loops around it."""
    region_cover: bool
    """What it reads, earlier blocks of its scope have written, if any of them writes those buffers."""
    stage_pipeline: bool
    """Its own scope is a pipeline: every block in it finds what it reads, and none writes what an earlier one reads."""


def flags_of(state: ScheduleState, block: StmtSRef) -> CachedFlags:
    """The properties of a block as the program is now."""
    scope = state.get_block_scope(block)
    pipeline = all(_is_covered(state, one) for one in scope.child_blocks) and not any(
        one.kind == DepKind.WAR and one.src is not one.dst for one in scope.dependencies
    )
    return CachedFlags(bindings(state, block) is not None, _is_covered(state, block), pipeline)


def _is_covered(state: ScheduleState, block: StmtSRef) -> bool:
    """True if the blocks that write what a block reads write all of that, at each place that they share with it."""
    parent = block.parent
    while parent is not None and not parent.is_block:
        parent = parent.parent
    if parent is None:
        return True
    dependencies = state.get_block_scope(parent).get_deps_by_dst(block)
    writers = dict.fromkeys(one.src for one in dependencies if one.kind == DepKind.RAW)
    for buffer in dict.fromkeys(region.buffer for region in block.block.reads):
        groups: dict[StmtSRef, list[StmtSRef]] = {}
        for writer in writers:
            if any(region.buffer is buffer for region in writer.block.writes):
                groups.setdefault(_common_place(writer, block), []).append(writer)
        for place, producers in groups.items():
            if not _covers(state, place, producers, block, buffer):
                return False
    return True


def _common_place(one: StmtSRef, other: StmtSRef) -> StmtSRef:
    """The innermost loop or block around both."""
    above: set[StmtSRef] = set()
    current: StmtSRef | None = one.parent
    while current is not None:
        above.add(current)
        current = current.parent
    current = other.parent
    while current is not None and current not in above:
        current = current.parent
    assert current is not None
    return current


def _covers(
    state: ScheduleState, place: StmtSRef, writers: list[StmtSRef], reader: StmtSRef, buffer: Buffer
) -> bool:
    """True if the writers together write all that the reader reads of a buffer in one iteration of a place."""
    analyzer = analyzer_for(around(place))
    read = [region for region in reader.block.reads if region.buffer is buffer]
    wanted = touched_box(state, place, reader, read, buffer.scope())
    boxes: list[Box] = []
    for writer in writers:
        for region in writer.block.writes:
            if region.buffer is not buffer:
                continue
            found = certain_box(state, place, writer, region, as_declared=True)
            if found is None:
                continue
            if contains(analyzer, buffer, wanted, *found):
                return True
            boxes.append(found[0])
    together = [union_lower_bound(sides, analyzer) for sides in zip(*boxes, strict=True)]
    limits: list[Range | None] = [None] * len(together)
    return bool(together) and contains(analyzer, buffer, wanted, together, limits)
