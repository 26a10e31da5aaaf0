"""``set_scope``: other memory for a buffer that a block allocates."""

from __future__ import annotations

from tilewright.ir.buffer import Buffer
from tilewright.support.recursion import recursion_room
from tilewright.tir.schedule.analysis import fail, is_allocated, loops_above, scope_of
from tilewright.tir.schedule.annotate import require_still_independent
from tilewright.tir.schedule.block_bodies import BufferReplacer, has_view, new_buffer
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.state import ScheduleState

_NAME = "set_scope"


def written_index(block: StmtSRef, given: int | str) -> int:
    """The number of a buffer among those that a block writes; it is given by its number or its name."""
    names = [region.buffer.name for region in block.block.writes]
    if isinstance(given, str):
        if names.count(given) != 1:
            fail(_NAME, block, f"it does not write one buffer {given!r}; it writes {', '.join(names)}")
        return names.index(given)
    if isinstance(given, bool) or not 0 <= given < len(names):
        fail(_NAME, block, f"it writes {len(names)} regions; {given!r} is the number of none of them")
    return given


def set_scope(state: ScheduleState, block: StmtSRef, index: int, storage_scope: str) -> None:
    """Put a buffer that a block writes into other memory."""
    buffer = block.block.writes[index].buffer
    place = _allocating(block, buffer)
    if storage_scope == (buffer.scope() or "global"):
        return
    if buffer.strides or has_view(place.block, buffer):
        fail(
            _NAME, block, f"{buffer.name} is used through a view, or has strides, which other memory has not"
        )
    rewriter = BufferReplacer(buffer, new_buffer(buffer, buffer.name, buffer.shape, storage_scope))
    with recursion_room():
        made = rewriter.visit(place.block)
    state.replace({place.block: made}, rewriter.blocks)
    for user in state.child_blocks(place):
        above = loops_above(user)
        if above:
            require_still_independent(_NAME, state, above[-1])


def _allocating(block: StmtSRef, buffer: Buffer) -> StmtSRef:
    """The block that allocates a buffer, around the one that writes it."""
    place = scope_of(block)
    while not is_allocated(place, buffer):
        if place.parent is None:
            fail(_NAME, block, f"{buffer.name} is an input or output: its memory is the caller's")
        place = scope_of(place)
    return place
