"""``cache_read`` and ``cache_write``: copies of buffers in another storage scope."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith import IntervalSet
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, IterVar, Range, Var
from tilewright.support.recursion import recursion_room
from tilewright.tir.schedule.analysis import (
    all_loops_above,
    analyzer_for,
    fail,
    loops_above,
    require_movable,
    require_stage_pipeline,
    scope_of,
)
from tilewright.tir.schedule.annotate import require_still_independent
from tilewright.tir.schedule.block_bodies import BufferReplacer, is_hidden, new_buffer, regions_of
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.nest import blocks_in, insert, new_nest
from tilewright.tir.schedule.regions import covers, exact_box
from tilewright.tir.schedule.state import ScheduleState
from tilewright.tir.stmt import Block, BufferStore, ForKind, Stmt, stmt_list


def cache_read(state: ScheduleState, block: StmtSRef, index: int, storage_scope: str) -> StmtSRef:
    """Copy a buffer that a block reads to other memory; all blocks of the scope read the copy. The copying block."""
    name = "cache_read"
    buffer = _region(name, block, block.block.reads, index, "reads").buffer
    scope = scope_of(block)
    info = state.get_block_scope(scope)
    require_stage_pipeline(name, info, block)
    writers = [one for one in info.child_blocks if regions_of(one.block.writes, buffer)]
    readers = [one for one in info.child_blocks if regions_of(one.block.reads, buffer)]
    if len(writers) > 1:
        fail(name, block, f"more than one block writes {buffer.name}")
    if any(one in readers for one in writers):
        fail(name, block, f"{writers[0].label} reads and writes {buffer.name}")
    if any(is_hidden(one.block, buffer) for one in readers):
        fail(name, block, f"{buffer.name} is used through a view or by its pointer")
    place = _common_place([*writers, *readers]) if writers else scope
    box = None
    if writers:
        box = _box_at(name, state, block, place, writers[0], buffer)
        _require_covered(name, state, place, writers[0], readers, buffer)
    cache = new_buffer(buffer, f"{buffer.name}_{storage_scope}", buffer.shape, storage_scope)
    _exchange(state, scope, readers, buffer, cache)
    inside = [blocks_in(item) for item in stmt_list(_body(place))]
    position = min(
        number for number, found in enumerate(inside) if any(one.block in found for one in readers)
    )
    if any(one.block in found for one in writers for found in inside[position:]):
        fail(
            name,
            block,
            f"there is no place between the block that writes {buffer.name} and those that read it",
        )
    return _insert_copy(name, state, place, position, buffer, cache, cache, box)


def cache_write(state: ScheduleState, block: StmtSRef, index: int, storage_scope: str) -> StmtSRef:
    """Let a block write to other memory, from where another block copies. The copying block."""
    name = "cache_write"
    buffer = _region(name, block, block.block.writes, index, "writes").buffer
    scope = scope_of(block)
    info = state.get_block_scope(scope)
    require_stage_pipeline(name, info, block)
    require_movable(name, info, block)
    if is_hidden(block.block, buffer):
        fail(name, block, f"{buffer.name} is used through a view or by its pointer")
    readers = [one for one in info.child_blocks if one is not block and regions_of(one.block.reads, buffer)]
    place = _common_place([block, *readers]) if readers else scope
    box = _box_at(name, state, block, place, block, buffer)
    _require_covered(name, state, place, block, readers, buffer)
    cache = new_buffer(buffer, f"{buffer.name}_{storage_scope}", buffer.shape, storage_scope)
    _exchange(state, scope, [block], buffer, cache)
    inside = [blocks_in(item) for item in stmt_list(_body(place))]
    position = 1 + next(number for number, found in enumerate(inside) if block.block in found)
    if any(one.block in found for one in readers for found in inside[:position]):
        fail(name, block, f"there is no place between it and the blocks that read {buffer.name}")
    return _insert_copy(name, state, place, position, cache, buffer, cache, box)


def _region(
    name: str, block: StmtSRef, regions: Sequence[BufferRegion], index: int, verb: str
) -> BufferRegion:
    """The region of this number."""
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(regions):
        fail(name, block, f"it {verb} {len(regions)} regions; {index!r} is the number of none of them")
    return regions[index]


def _common_place(blocks: Sequence[StmtSRef]) -> StmtSRef:
    """The innermost loop or block around all of these blocks."""
    scope = scope_of(blocks[0])
    shared = [scope, *loops_above(blocks[0])]
    for one in blocks[1:]:
        above = [scope, *loops_above(one)]
        shared = [a for a, b in zip(shared, above, strict=False) if a is b]
    return shared[-1]


def _body(place: StmtSRef) -> Stmt:
    assert place.stmt is not None
    return place.stmt.body


def _box_at(
    name: str, state: ScheduleState, block: StmtSRef, place: StmtSRef, writer: StmtSRef, buffer: Buffer
) -> list[IntervalSet]:
    """The region of a buffer that is written in one iteration at the place."""
    regions = regions_of(writer.block.writes, buffer)
    box = exact_box(state, place, writer, regions[0]) if len(regions) == 1 else None
    if box is None:
        fail(name, block, f"it cannot be told which part of {buffer.name} {writer.label} writes")
    return box


def _require_covered(
    name: str,
    state: ScheduleState,
    place: StmtSRef,
    writer: StmtSRef,
    readers: Sequence[StmtSRef],
    buffer: Buffer,
) -> None:
    """Refuse a loop in which a block reads what was written in another iteration: that was not copied."""
    if place.is_block:
        return
    for reader in readers:
        if not covers(state, place, writer, reader, buffer):
            fail(
                name,
                reader,
                f"it cannot be shown that it reads of {buffer.name} only what one iteration writes",
            )


def _exchange(
    state: ScheduleState, scope: StmtSRef, blocks: Sequence[StmtSRef], old: Buffer, new: Buffer
) -> None:
    """Let blocks use another buffer, which the scope allocates."""
    rewriter = BufferReplacer(old, new)
    changes: dict[Stmt, Stmt] = {}
    with recursion_room():
        for one in blocks:
            changes[one.block] = rewriter.visit(one.block)
    state.replace_in_scope(scope, changes, rewriter.blocks, added=[new])


def _insert_copy(
    name: str,
    state: ScheduleState,
    place: StmtSRef,
    position: int,
    source: Buffer,
    target: Buffer,
    cache: Buffer,
    box: list[IntervalSet] | None,
) -> StmtSRef:
    """Put a block that copies a box, or all, of one buffer to another among the statements of a place."""
    around = all_loops_above(place) + ([] if place.is_block else [place])
    for one in around:
        if one.loop.kind == ForKind.VECTORIZED:
            fail(name, one, "it is vectorized: no block can be put into lanes")
    axes = [
        IterVar(Range(0, extent), Var(f"v{number}", extent.dtype), IterVar.DataPar)
        for number, extent in enumerate(source.shape)
    ]
    indices = [axis.var for axis in axes]
    points = tuple(Range.from_min_extent(one, operators.const(1, one.dtype)) for one in indices)
    copy = Block(
        axes,
        [BufferRegion(source, points)],
        [BufferRegion(target, points)],
        cache.name,
        BufferStore(target, BufferLoad(source, indices), indices),
    )
    wanted = {} if box is None else dict(zip(indices, box, strict=True))
    insert(state, place, position, new_nest(analyzer_for(around), copy, wanted, False))
    if not place.is_block:
        require_still_independent(name, state, place)
    return state.references[copy]
