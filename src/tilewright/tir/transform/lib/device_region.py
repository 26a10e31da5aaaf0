"""Which statements are device code."""

from __future__ import annotations

from tilewright.tir.stmt import AttrStmt, Stmt

DEVICE_ATTRIBUTES = frozenset({"thread_extent", "pipeline_exec_scope", "device_scope"})
"""Attributes below which everything runs on the device."""


def enters_device(stmt: Stmt) -> bool:
    """True for a statement that is device code with all that is below it."""
    return isinstance(stmt, AttrStmt) and stmt.attr_key in DEVICE_ATTRIBUTES
