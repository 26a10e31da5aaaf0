"""Checks of schedules that their tests share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.tir.function import PrimFunc
from tilewright.tir.schedule.schedule import Schedule
from tilewright.tir.schedule.trace import Trace


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = ("python", "json"),
) -> Schedule:
    """Take the steps of ``sch`` again on ``mod``, once from their text in Python and once from their JSON, and check
    that the result is that of ``sch``. The last of the new schedules is returned."""
    trace = sch.trace
    if trace is None:
        raise ValueError("the schedule keeps no trace")
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    unknown = [name for name in formats if name not in _REPLAYS]
    if unknown or not formats:
        raise ValueError(f"text_format is {text_format!r}: it should name some of {', '.join(_REPLAYS)}")
    for name in formats:
        made = Schedule(mod, debug_mask=debug_mask)
        _REPLAYS[name](trace, made)
        assert_structural_equal(sch.mod, made.mod)
    return made


def _from_json(trace: Trace, made: Schedule) -> None:
    Trace.apply_json_to_schedule(trace.as_json(), made)


def _from_python(trace: Trace, made: Schedule) -> None:
    names: dict[str, Any] = {"sch": made}
    for line in trace.as_python():
        exec(line, names)


_REPLAYS = {"json": _from_json, "python": _from_python}
