"""Whatever the schedule, the result is that of the unscheduled program."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.te.programs import PROGRAMS
from tests.te.random_schedule import RandomSchedule

import tilewright as tvm
from tilewright import te
from tilewright.driver.build_module import schedule_to_module
from tilewright.support.errors import ScheduleError
from tilewright.tir.interpreter import interpret

SCALE = int(os.environ.get("TILEWRIGHT_ORACLE_SCALE", "1"))
"""Multiplies the number of schedules; set it high to search for hours."""


def oracle(examples: int) -> Any:
    """Settings for a search that takes its time; the default one tries the same schedules each time."""
    return settings(
        max_examples=examples * SCALE,
        deadline=None,
        derandomize=SCALE == 1,
        suppress_health_check=list(HealthCheck),
    )


def legal(make: Any, draw: Any, steps: int) -> tuple[Any, te.Schedule] | None:
    """A program and a schedule; None where a place that was chosen turns out not to hold all readers."""
    program = make()
    schedule = RandomSchedule(draw, program).build(steps)
    note(f"{make.__name__}:\n{schedule.trace}")
    try:
        schedule_to_module(schedule, program.arguments)
    except ScheduleError as error:
        if "compute_at" not in str(error):
            raise
        return None
    return program, schedule


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_unscheduled_program_is_what_numpy_gives(make: Any) -> None:
    """The default schedule gives what NumPy gives, by interpretation and as machine code."""
    program = make()
    outputs = program.arguments[len(program.arguments) - program.outputs :]
    schedule = te.create_schedule([tensor.op for tensor in outputs])
    arrays = program.arrays(0)
    interpret(schedule_to_module(schedule, program.arguments)["main"], *arrays)
    program.check(arrays)
    arrays = program.arrays(1)
    tvm.build(schedule, program.arguments, "llvm")(*arrays)
    program.check(arrays)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@oracle(60)
@given(data=st.data())
def test_scheduled_loops_agree(make: Any, data: Any) -> None:
    """The loops that a schedule gives compute what the program says, before any pass."""
    found = legal(make, data.draw, data.draw(st.integers(1, 12)))
    if found is not None:
        program, schedule = found
        arrays = program.arrays(2)
        interpret(schedule_to_module(schedule, program.arguments)["main"], *arrays)
        program.check(arrays)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@oracle(40)
@given(data=st.data())
def test_lowered_loops_agree(make: Any, data: Any) -> None:
    """They still do after all lowering passes."""
    found = legal(make, data.draw, data.draw(st.integers(1, 12)))
    if found is not None:
        program, schedule = found
        arrays = program.arrays(3)
        interpret(tvm.lower(schedule, program.arguments)["main"], *arrays)
        program.check(arrays)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@oracle(15)
@given(data=st.data())
def test_machine_code_agrees(make: Any, data: Any) -> None:
    """And as machine code."""
    found = legal(make, data.draw, data.draw(st.integers(1, 12)))
    if found is not None:
        program, schedule = found
        arrays = program.arrays(4)
        tvm.build(schedule, program.arguments, "llvm")(*arrays)
        program.check(arrays)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@oracle(10)
@given(data=st.data())
def test_trace_replays(make: Any, data: Any) -> None:
    """The trace of a schedule, replayed on a new one, gives the same loops."""
    found = legal(make, data.draw, data.draw(st.integers(1, 12)))
    if found is not None:
        program, schedule = found
        again = te.create_schedule(RandomSchedule(data.draw, program).schedule.outputs)
        schedule.trace.replay(again)
        assert again.trace.as_python() == schedule.trace.as_python()
        first = schedule_to_module(schedule, program.arguments)
        second = schedule_to_module(again, program.arguments)
        tvm.ir.assert_structural_equal(first, second)
