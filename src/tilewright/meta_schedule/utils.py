"""Helpers that callers of MetaSchedule use."""

from __future__ import annotations

from tilewright.support.options import compile_processes


def cpu_count(logical: bool = True) -> int:
    """The number of processors that this process may use."""
    return compile_processes()
