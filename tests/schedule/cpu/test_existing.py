"""Schedules by the names of operators, and one injective stage of a schedule that exists."""

from __future__ import annotations

import pytest
from tests.topi.scheduling import Loops, placeholder

from tilewright import te
from tilewright.support.errors import ScheduleError
from tilewright.topi import generic, x86


def test_one_stage_of_an_existing_schedule() -> None:
    """Only the stage that is named is touched."""
    x = placeholder(64, 512)
    first = te.compute(x.shape, lambda i, j: x[i, j] + 1.0, name="first")
    second = te.compute(x.shape, lambda i, j: first[j % 64, i] * 2.0, name="second")
    schedule = te.create_schedule(second.op)
    assert generic.schedule_injective_from_existing(schedule, first) is schedule
    loops = Loops(schedule, [x, second])
    assert loops.parallel == 1 and loops.widest_store >= 16 and schedule[second].relations == []


def test_a_reduction_is_not_an_injective_stage() -> None:
    """It says so, with the stage's name."""
    x = placeholder(8, 8)
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((8,), lambda i: te.sum(x[i, k], axis=k), name="total")
    with pytest.raises(ScheduleError, match="stage total"):
        generic.schedule_injective_from_existing(te.create_schedule(total.op), total)


@pytest.mark.parametrize("module", [generic, x86])
def test_every_name_schedules(module: object) -> None:
    """Each schedule takes the outputs, alone or in a list, and a layout where one is usual."""
    x = placeholder(4, 4)
    out = te.compute((4, 4), lambda i, j: x[i, j] + 1.0, name="out")
    plain = {"schedule_default", "schedule_injective_from_existing"}
    names = [name for name in dir(module) if name.startswith("schedule_") and name not in plain]
    assert len(names) >= 30
    for name in names:
        assert isinstance(getattr(module, name)([out], "NCHW"), te.Schedule), name
        assert getattr(module, name).__name__ == name
