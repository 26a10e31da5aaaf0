"""The peak memory that a function allocates."""

from __future__ import annotations

from tilewright.support.errors import ExpressionError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, Stmt


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """The greatest number of bytes that is allocated at one moment, every allocation rounded up to the alignment.

    Allocations whose size is not constant do not count.
    """
    if workspace_byte_alignment < 1:
        raise ExpressionError(f"an alignment is one byte or more, not {workspace_byte_alignment}")
    peak = 0
    stack: list[tuple[Stmt, int]] = [(func.body, 0)]
    while stack:
        stmt, used = stack.pop()
        if isinstance(stmt, Allocate):
            size = (stmt.constant_size() or 0) * stmt.dtype.itemsize * stmt.dtype.lanes
            used += -(-size // workspace_byte_alignment) * workspace_byte_alignment
            peak = max(peak, used)
        stack.extend((child, used) for child in stmt.children() if isinstance(child, Stmt))
    return peak
