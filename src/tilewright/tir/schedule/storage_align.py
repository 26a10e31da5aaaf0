"""``storage_align``: stride requirements of a buffer, set on the block that writes it."""

from __future__ import annotations

from tilewright.tir.schedule.analysis import fail, is_allocated, scope_of
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.state import ScheduleState

ANNOTATION = "buffer_dim_align"
"""Rows of (number of the written buffer, dimension, factor, offset)."""


def storage_align(
    state: ScheduleState, block: StmtSRef, buffer_index: int, axis: int, factor: int, offset: int
) -> None:
    """Let the stride of a dimension leave the remainder ``offset`` when divided by ``factor``."""
    name = "storage_align"
    stmt = block.block
    if not 0 <= buffer_index < len(stmt.writes):
        fail(
            name, block, f"it writes {len(stmt.writes)} regions; {buffer_index} is the number of none of them"
        )
    buffer = stmt.writes[buffer_index].buffer
    if not is_allocated(scope_of(block), buffer):
        fail(name, block, f"{buffer.name} is an input or output: its strides are the caller's")
    count = len(buffer.shape)
    if not -count <= axis < count:
        fail(name, block, f"{buffer.name} has {count} dimensions; {axis} is the number of none of them")
    if factor <= 0:
        fail(name, block, f"the factor {factor} is not positive")
    if not 0 <= offset < factor:
        fail(name, block, f"the offset {offset} is not a remainder of a division by {factor}")
    axis %= count
    rows = [list(row) for row in stmt.annotations.get(ANNOTATION, ())]
    rows = [row for row in rows if (int(row[0]), int(row[1])) != (buffer_index, axis)]
    annotations = {**stmt.annotations, ANNOTATION: [*rows, [buffer_index, axis, factor, offset]]}
    made = stmt.replace(annotations=annotations)
    state.replace({stmt: made}, {stmt: made})
