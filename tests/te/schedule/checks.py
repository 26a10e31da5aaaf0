"""What tests of schedules ask again and again: that a result is right at every level, and that a refusal changes
nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.driver.build_module import schedule_to_module
from tilewright.support.errors import ScheduleError
from tilewright.tir.interpreter import interpret


def state(schedule: te.Schedule) -> list[Any]:
    """All that a step could change, for comparison."""
    stages = [
        (
            stage.label,
            stage.op,
            list(stage.leaf_iter_vars),
            list(stage.all_iter_vars),
            list(stage.relations),
            dict(stage.axis_attributes),
            (stage.attach_type, stage.attach_ivar, stage.attach_stage, stage.group),
            (stage.scope, stage.double_buffered, stage.env_thread_axes, stage.store_predicate),
        )
        for stage in (*schedule.stages, *schedule.groups)
    ]
    return [schedule.trace.as_python(), list(schedule.outputs), dict(schedule.stage_map), stages]


def refused(schedule: te.Schedule, step: Callable[[], Any], *parts: str) -> str:
    """The step raises ``ScheduleError`` with all these parts in its message, and the schedule stays as it was."""
    before = state(schedule)
    with pytest.raises(ScheduleError) as caught:
        step()
    message = str(caught.value)
    for part in parts:
        assert part in message, message
    assert state(schedule) == before
    return message


def levels(schedule: te.Schedule, arguments: Sequence[Any], compiled: bool) -> list[Any]:
    """Functions that run the schedule: its loops as they are, after all lowering passes, and as machine code."""
    loops = schedule_to_module(schedule, arguments)["main"]
    lowered = tvm.lower(schedule, arguments)["main"]
    made: list[Any] = [lambda *arrays: interpret(loops, *arrays), lambda *arrays: interpret(lowered, *arrays)]
    return [*made, tvm.build(schedule, arguments, "llvm")] if compiled else made


def check(
    schedule: te.Schedule,
    arguments: Sequence[Any],
    inputs: Sequence[np.ndarray],
    expected: np.ndarray | Sequence[np.ndarray],
    *,
    compiled: bool = False,
) -> None:
    """Every level gives the expected outputs, which are the last arguments. Machine code takes longest to make,
    so it is run where that is asked for."""
    wanted = expected if isinstance(expected, (list, tuple)) else [expected]
    for run in levels(schedule, arguments, compiled):
        outputs = [np.full(one.shape, 77, one.dtype) for one in wanted]
        run(*inputs, *outputs)
        for got, want in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def parts(statement: Any, kind: type) -> list[Any]:
    """The nodes of a class in a statement or function, each before those inside it."""
    found: list[Any] = []
    body = statement.body if isinstance(statement, tir.PrimFunc) else statement
    tir.stmt_functor.post_order_visit(body, found.append)
    return [node for node in reversed(found) if isinstance(node, kind)]


def random(*shape: int) -> np.ndarray:
    """Values between minus one and one, the same ones in each run."""
    return np.random.default_rng(7).uniform(-1, 1, shape).astype("float32")
