"""Runs functions where they cannot hurt: each in a fork of this process, within a time limit.

A fork knows whatever this process knows, closures and registered functions included, and gives back JSON. A process
with other threads cannot fork; there the functions run one after the other in this process, and one that was too slow
is reported once it has ended.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.compile.workers import Failed, WorkerPool, can_fork

Action = Callable[[], Any]


@dataclass(frozen=True)
class Answer:
    """The result of a function, or what it raised; ``timed_out`` if it was not ready in time."""

    value: Any = None
    problem: str | None = None
    timed_out: bool = False


_actions: Sequence[Action] = ()


def run_isolated(actions: Sequence[Action], seconds: float, processes: int, doing: str) -> list[Answer]:
    """Run every function, so many at a time, each within so many seconds."""
    global _actions
    if not can_fork():
        return [_here(action, seconds) for action in actions]
    _actions = actions
    pool = WorkerPool(max(1, min(processes, len(actions))), doing)
    try:
        outcomes = pool.run(perform, [str(number).encode() for number in range(len(actions))], seconds)
    finally:
        pool.close()
        _actions = ()
    return [
        Answer(problem=outcome.reason, timed_out=outcome.timed_out)
        if isinstance(outcome, Failed)
        else Answer(**json.loads(outcome.result))
        for outcome in outcomes
    ]


def perform(payload: bytes) -> bytes:
    """What a fork does: call the function of this number."""
    try:
        said = {"value": _actions[int(payload)]()}
    except Exception:  # noqa: BLE001 - whatever it raises is its answer
        said = {"problem": traceback.format_exc()}
    return json.dumps(said).encode()


def _here(action: Action, seconds: float) -> Answer:
    starts = time.monotonic()
    try:
        answer = Answer(value=action())
    except Exception:  # noqa: BLE001 - whatever it raises is its answer
        answer = Answer(problem=traceback.format_exc())
    # A fork would not have come so far.
    if time.monotonic() - starts > seconds:
        return Answer(problem=f"took longer than {seconds:g} s", timed_out=True)
    return answer
