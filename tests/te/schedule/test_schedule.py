"""Schedules as a whole: their stages, copies, and what is not part of them."""

from __future__ import annotations

import pytest
from tests.te.schedule.checks import check, random, refused, state

import tilewright as tvm
from tilewright import te
from tilewright.support.errors import ScheduleError


def chain() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Two elementwise computations, one after the other."""
    a = te.placeholder((12,), name="A")
    b = te.compute((12,), lambda i: a[i] + 1.0, name="B")
    return a, b, te.compute((12,), lambda i: b[i] * 2.0, name="C")


def test_stages_stand_producers_first() -> None:
    """One stage an operation; a tensor and its operation name the same one."""
    a, b, c = chain()
    s = te.create_schedule(c.op)
    assert [stage.label for stage in s.stages] == ["A", "B", "C"]
    assert s[b] is s[b.op]
    assert [s[one].is_output for one in (a, b, c)] == [False, False, True]
    assert list(s[c].leaf_iter_vars) == list(c.op.axis)
    assert repr(s[c]) == "stage(C, ComputeOp)"


def test_equal_names_get_numbers() -> None:
    """Labels are unique, so that messages and traces name one stage."""
    a = te.placeholder((3,), name="X")
    b = te.compute((3,), lambda i: a[i], name="X")
    c = te.compute((3,), lambda i: b[i], name="X")
    s = te.create_schedule(c)
    assert [stage.label for stage in s.stages] == ["X", "X_1", "X_2"]


def test_several_outputs_of_one_schedule() -> None:
    """Operations may be given as tensors, more than once, and in any number."""
    a, b, c = chain()
    s = te.create_schedule([c, b.op, c.op])
    assert s.outputs == [c.op, b.op]
    assert a.op in s and te.placeholder((1,)).op not in s


def test_what_is_not_part_of_a_schedule() -> None:
    """Foreign operations, other objects, nothing at all."""
    _, _, c = chain()
    s = te.create_schedule(c.op)
    with pytest.raises(ScheduleError, match="operation other is not part of this schedule"):
        s[te.placeholder((3,), name="other")]
    with pytest.raises(ScheduleError, match="indexed by a tensor or an operation, not 3"):
        s[3]  # type: ignore[index]
    with pytest.raises(ScheduleError, match="created from operations, not 'C'"):
        te.create_schedule("C")  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="at least one operation"):
        te.create_schedule([])


def test_a_copy_is_independent() -> None:
    """Steps on the copy leave the original as it was, and the other way round."""
    a, b, c = chain()
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    before = state(s)
    copied = s.copy()
    copied[c].unroll(outer)
    copied.cache_read(a, "local", [b])
    assert state(s) == before
    assert copied[b].attach_stage is copied[c]
    values = random(12)
    check(copied, [a, c], [values], (values + 1) * 2)
    check(s, [a, c], [values], (values + 1) * 2)


def test_an_error_carries_the_line_of_the_program() -> None:
    """The message points at the call that was wrong."""
    _, _, c = chain()
    s = te.create_schedule(c.op)
    message = refused(s, lambda: s[c].split(c.op.axis[0], factor=-1), "split on stage C, axis i")
    assert "test_schedule.py" in message


def test_a_long_chain() -> None:
    """A thousand operations in a row are scheduled and lowered without deep recursion."""
    tensor = a = te.placeholder((4,), name="A")
    for index in range(1000):
        tensor = te.compute((4,), lambda i, source=tensor: source[i] + 1.0, name=f"T{index}")
    s = te.create_schedule(tensor.op)
    assert len(s.stages) == 1001
    assert "main" in [
        variable.name_hint for variable in tvm.driver.schedule_to_module(s, [a, tensor]).functions
    ]
