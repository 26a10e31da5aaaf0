"""The trace is what Perfetto and chrome://tracing read."""

import json
from itertools import pairwise

import pytest

from tilewright.driver import profile


def test_events_have_what_viewers_need(small_profile):
    """Each event has a phase, a process, a thread and a time; spans last, and names of processes are given."""
    trace = json.loads(profile.trace.trace_json(small_profile))
    assert trace["displayTimeUnit"] == "ms"
    events = trace["traceEvents"]
    for event in events:
        assert {"ph", "pid", "tid", "ts", "name", "args"} <= set(event)
        assert event["ph"] in ("X", "M", "C") and event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["cat"] in ("kernel", "pass")
    named = {event["pid"] for event in events if event["name"] == "process_name"}
    assert named == {event["pid"] for event in events}


def test_kernels_follow_each_other_and_sum_to_the_table(small_profile):
    """The spans of a run do not overlap, and last as long as the kernels in the table."""
    events = profile.trace.trace_events(small_profile)
    spans = [event for event in events if event.get("cat") == "kernel"]
    assert len(spans) == len(small_profile.kernels.steps)
    total = sum(event["dur"] for event in spans) / 1e6
    assert total == pytest.approx(small_profile.kernels.total_seconds)
    for first, second in pairwise(spans):
        assert second["ts"] == pytest.approx(first["ts"] + first["dur"])
    counters = [event["args"]["live bytes"] for event in events if event["ph"] == "C"]
    assert tuple(counters) == small_profile.memory.live_bytes


def test_passes_nest(small_profile):
    """A pass that runs inside another begins and ends there."""
    runs = small_profile.compiling.runs
    around = [run for run in runs if run.name == "relay.prepare"][0]
    inner = [
        run for run in runs if run.depth == around.depth + 1 and run.begin_seconds >= around.begin_seconds
    ]
    first = inner[0]
    assert first.begin_seconds + first.seconds <= around.begin_seconds + around.seconds + 1e-6
