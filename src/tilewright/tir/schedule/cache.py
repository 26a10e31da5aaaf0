"""``cache_read`` and ``cache_write``: copies of buffers in another storage scope."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith import IntervalSet
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, IterVar, Range, Var, is_const
from tilewright.support.recursion import recursion_room
from tilewright.tir.schedule.analysis import (
    all_loops_above,
    analyzer_at,
    fail,
    loops_above,
    require_movable,
    require_stage_pipeline,
    scope_of,
)
from tilewright.tir.schedule.annotate import require_still_independent
from tilewright.tir.schedule.block_bodies import BufferReplacer, has_view, is_hidden, new_buffer, regions_of
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.nest import blocks_in, insert, new_nest
from tilewright.tir.schedule.regions import covers, exact_box, is_straight
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
    if len(writers) > 1:
        fail(name, block, f"more than one block writes {buffer.name}")
    if block in writers:
        fail(name, block, f"it writes {buffer.name} itself: what it reads cannot be copied before it runs")
    # A block that reads what it writes keeps doing so; what it leaves behind is copied.
    readers = [one for one in info.child_blocks if one not in writers and regions_of(one.block.reads, buffer)]
    _require_same_layout(name, block, readers, buffer, storage_scope)
    place = _nearest_place(writers[0], readers) if writers else scope
    box = None
    if writers:
        box = _box_at(name, state, block, place, writers[0], buffer)
        _require_covered(name, state, writers[0], readers, buffer)
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
    _require_own_values(name, state, block, buffer)
    _require_same_layout(name, block, [block], buffer, storage_scope)
    readers = [one for one in info.child_blocks if one is not block and regions_of(one.block.reads, buffer)]
    place = _nearest_place(block, readers) if readers else scope
    box = _box_at(name, state, block, place, block, buffer)
    _require_covered(name, state, block, readers, buffer)
    cache = new_buffer(buffer, f"{buffer.name}_{storage_scope}", buffer.shape, storage_scope)
    _exchange(state, scope, [block], buffer, cache)
    inside = [blocks_in(item) for item in stmt_list(_body(place))]
    # What no block of the scope reads is copied last.
    position = 1 + next(number for number, found in enumerate(inside) if block.block in found)
    position = position if readers else len(inside)
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


def _require_same_layout(
    name: str, block: StmtSRef, users: Sequence[StmtSRef], buffer: Buffer, storage_scope: str
) -> None:
    """Refuse a buffer that blocks reach through views or by its pointer where that would not work on the copy, which is
    compact and in other memory."""
    if any(is_hidden(one.block, buffer) for one in users):
        if buffer.strides or not is_const(buffer.elem_offset, 0):
            fail(
                name,
                block,
                f"{buffer.name} is used through a view or by its pointer, and is not compact itself",
            )
        if any(has_view(one.block, buffer) for one in users) and storage_scope != (
            buffer.scope() or "global"
        ):
            fail(name, block, f"{buffer.name} is used through a view, which is not in {storage_scope} memory")


def _require_own_values(name: str, state: ScheduleState, block: StmtSRef, buffer: Buffer) -> None:
    """Refuse a block that uses what was in the buffer before: the copy has not got that. A block of blocks may read
    what one inside has written."""
    info = state.get_block_scope(scope_of(block))
    inside = state.child_blocks(block)
    readers = [one for one in inside if regions_of(one.block.reads, buffer)]
    if not (readers and regions_of(block.block.reads, buffer) and is_straight(block.block)):
        require_movable(name, info, block)
        return
    require_movable(name, info, block, reads_own=True)
    for reader in readers:
        before = inside[: inside.index(reader)]
        if not any(covers(state, block, writer, reader, buffer) for writer in before):
            fail(
                name, block, f"{reader.label} inside reads {buffer.name} where nothing inside has written it"
            )


def _common_place(block: StmtSRef, other: StmtSRef) -> StmtSRef:
    """The innermost loop or block around both of these blocks of a scope."""
    scope = scope_of(block)
    pairs = zip([scope, *loops_above(block)], [scope, *loops_above(other)], strict=False)
    return [one for one, another in pairs if one is another][-1]


def _nearest_place(writer: StmtSRef, readers: Sequence[StmtSRef]) -> StmtSRef:
    """The innermost loop or block around a block and any of those that read what it writes."""
    above = [scope_of(writer), *loops_above(writer)]
    return max([_common_place(writer, one) for one in readers], key=above.index)


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
    name: str, state: ScheduleState, writer: StmtSRef, readers: Sequence[StmtSRef], buffer: Buffer
) -> None:
    """Refuse a loop in which a block reads what was written in another iteration: that was not copied."""
    for reader in readers:
        place = _common_place(writer, reader)
        if not place.is_block and not covers(state, place, writer, reader, buffer):
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
    insert(state, place, position, new_nest(analyzer_at(place), copy, wanted, False))
    if not place.is_block:
        require_still_independent(name, state, place)
    return state.references[copy]
