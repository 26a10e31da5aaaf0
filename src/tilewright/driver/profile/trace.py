"""A profile as a trace in Chrome's format, for Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from typing import Any

from tilewright.driver.profile.collect import ProfileReport

_COMPILER, _MODEL = 1, 2


def _named(kind: str, process: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": 1, "ts": 0, "name": kind, "args": {"name": name}}


def trace_events(report: ProfileReport) -> list[dict[str, Any]]:
    """The events: every pass of the compiler, then one run of the model with the memory in use."""
    events = [_named("process_name", _MODEL, f"run {report.model}"), _named("thread_name", _MODEL, "kernels")]
    if report.compiling is not None:
        events += [
            _named("process_name", _COMPILER, f"compile {report.model}"),
            _named("thread_name", _COMPILER, "passes"),
        ]
        events += [
            _span(_COMPILER, run.name, "pass", run.begin_seconds, run.seconds, {})
            for run in report.compiling.runs
        ]
    at = 0.0
    live = dict(zip(report.memory.steps, report.memory.live_bytes, strict=True))
    for step in report.kernels.steps:
        # The median times of all runs, one after the other: what the table adds up.
        details = {
            "kernel": step.kernel,
            "node": step.name,
            "model_nodes": list(step.model_nodes),
            "result": ", ".join(step.shapes),
            "flops": step.flops,
            "bytes": step.size_bytes,
        }
        label = step.model_nodes[0] if step.model_nodes else step.name
        events.append(_span(_MODEL, label, "kernel", at, step.seconds, details))
        counted = {"live bytes": live.get(step.node, 0)}
        events.append({"ph": "C", "pid": _MODEL, "tid": 1, "ts": at * 1e6, "name": "arena", "args": counted})
        at += step.seconds
    return events


def _span(
    process: int, name: str, category: str, begin: float, seconds: float, details: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": process,
        "tid": 1,
        "ts": begin * 1e6,
        "dur": seconds * 1e6,
        "name": name,
        "cat": category,
        "args": details,
    }


def trace_json(report: ProfileReport) -> str:
    """The trace as a file's text."""
    about = {"model": report.model, "target": report.target, "tilewright": report.version}
    return json.dumps(
        {"traceEvents": trace_events(report), "displayTimeUnit": "ms", "otherData": about}, ensure_ascii=False
    )
