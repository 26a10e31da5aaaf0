"""Whatever the schedule of blocks, the result is that of the unscheduled program."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.tir.schedule.programs import PROGRAMS
from tests.tir.schedule.random_schedule import RandomSchedule

import tilewright as tvm
from tilewright import tir

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


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_unscheduled_program_is_what_numpy_gives(make: Any) -> None:
    """Before any step."""
    program = make()
    program.check(program.function)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@oracle(60)
@given(data=st.data())
def test_scheduled_blocks_agree(make: Any, data: Any) -> None:
    """The blocks under their new loops compute what the program says, before any pass."""
    program = make()
    schedule = RandomSchedule(data.draw, program.function).build(data.draw(st.integers(1, 14)))
    note(f"{make.__name__}:\n{schedule.trace.simplified(False)}\n{schedule.mod.script()}")
    program.check(schedule.mod["main"], compiled=False)


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@oracle(12)
@given(data=st.data())
def test_machine_code_agrees(make: Any, data: Any) -> None:
    """And as machine code."""
    program = make()
    schedule = RandomSchedule(data.draw, program.function).build(data.draw(st.integers(1, 14)))
    note(f"{make.__name__}:\n{schedule.trace.simplified(False)}\n{schedule.mod.script()}")
    program.check(schedule.mod["main"])


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@oracle(8)
@given(data=st.data())
def test_traces_replay(make: Any, data: Any) -> None:
    """The trace, replayed as it is, simplified, or from JSON, gives the same program."""
    program = make()
    schedule = RandomSchedule(data.draw, program.function).build(data.draw(st.integers(1, 14)))
    for trace in (schedule.trace, schedule.trace.simplified(False)):
        again = tir.Schedule(program.function)
        trace.apply_to_schedule(again, remove_postproc=False)
        tvm.ir.assert_structural_equal(again.mod, schedule.mod)
    read = tir.Schedule(program.function)
    tir.schedule.Trace.apply_json_to_schedule(schedule.trace.as_json(), read)
    tvm.ir.assert_structural_equal(read.mod, schedule.mod)
