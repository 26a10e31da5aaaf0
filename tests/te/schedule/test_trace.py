"""The trace of a schedule: what it says, and that it replays."""

from __future__ import annotations

import pytest
from tests.te.schedule.checks import random

import tilewright as tvm
from tilewright import te, tir
from tilewright.driver.build_module import schedule_to_module
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.trace import identifier


def program() -> list[te.Tensor]:
    """A product and an elementwise stage after it."""
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return [a, b, c, te.compute((8, 8), lambda i, j: c[i, j] + 1.0, name="D")]


def all_steps(s: te.Schedule, a: te.Tensor, b: te.Tensor, c: te.Tensor, d: te.Tensor) -> None:
    """One of each step that has an effect on a host."""
    copy = s.cache_read(a, "local", [c])
    cache = s.cache_write(c, "global")
    fused = s[d].fuse(*d.op.axis)
    outer, inner = s[d].split(fused, factor=16)
    s[d].parallel(outer)
    s[d].vectorize(inner)
    s[c].compute_at(s[d], outer)
    s[c].compute_root()
    part = s[cache].split(s[cache].op.reduce_axis[0], nparts=2)[0]
    factored = s.rfactor(cache, part)
    s[factored].unroll(s[factored].op.axis[0])
    s[factored].reorder(s[factored].op.axis[1], s[factored].op.axis[0])
    s[factored].pragma(s[factored].op.axis[2], "auto_unroll_max_step", 4)
    s[copy].storage_align(copy.op.axis[0], 4, 1)
    s[copy].double_buffer()
    s[copy].set_scope("global")
    s[factored].prefetch(b, s[factored].op.axis[2], 1)
    group = s.create_group(cache, factored)
    group.compute_root()
    s[c].compute_inline()


def test_steps_print_as_python() -> None:
    """Each line is a statement on a schedule ``s``."""
    a, b, c, d = program()
    s = te.create_schedule(d.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].reorder(inner, outer)
    s[c].bind(outer, te.thread_axis("threadIdx.x"))
    s[c].compute_at(s[d], d.op.axis[0])
    s.cache_read(b, "shared", [c])
    assert str(s.trace).splitlines() == [
        "i_outer, i_inner = s[C].split(s[C].op.axis[0], factor=4)",
        "s[C].reorder(i_inner, i_outer)",
        's[C].bind(i_outer, te.thread_axis("threadIdx.x"))',
        "s[C].compute_at(s[D], s[D].op.axis[0])",
        "B_shared = s.cache_read(B, 'shared', [C])",
    ]
    assert len(s.trace) == 5 and [step.primitive for step in s.trace][0] == "split"
    assert a.op in s


def test_a_trace_is_a_program() -> None:
    """What it prints, run as Python on a new schedule, gives the same loops."""
    a, b, c, d = program()
    s = te.create_schedule(d.op)
    x_outer, y_outer, _, y_inner = s[c].tile(c.op.axis[0], c.op.axis[1], 4, 3)
    s[c].unroll(y_inner)
    s[c].compute_at(s[d], d.op.axis[0])
    s[d].split(d.op.axis[1], nparts=2)
    again = te.create_schedule(d.op)
    exec(str(s.trace), {"s": again, "te": te, "A": a, "B": b, "C": c, "D": d})
    first, second = schedule_to_module(s, [a, b, d]), schedule_to_module(again, [a, b, d])
    tvm.ir.assert_structural_equal(first, second)
    assert x_outer is not y_outer


def test_every_step_replays() -> None:
    """All steps on another schedule of the same program give the same trace and loops."""
    a, b, c, d = program()
    s = te.create_schedule(d.op)
    all_steps(s, a, b, c, d)
    again = te.create_schedule(d.op)
    s.trace.replay(again)
    assert str(again.trace) == str(s.trace)
    tvm.ir.assert_structural_equal(schedule_to_module(s, [a, b, d]), schedule_to_module(again, [a, b, d]))


def test_a_trace_replays_on_the_same_program_written_again() -> None:
    """Stages are found by label, so tensors of another run of the program do."""
    first, second = program(), program()
    s = te.create_schedule(first[3].op)
    all_steps(s, *first)
    again = te.create_schedule(second[3].op)
    s.trace.replay(again)
    assert str(again.trace) == str(s.trace)
    function = tvm.lower(again, [second[0], second[1], second[3]])["main"]
    x, y, out = random(8, 8), random(8, 8) * 2, random(8, 8)
    tir.interpreter.interpret(function, x, y, out)
    assert abs(out - (x @ y + 1)).max() < 1e-4


def test_a_stage_that_is_missing() -> None:
    """Replaying on another program names the stage."""
    _, _, c, d = program()
    s = te.create_schedule(d.op)
    s[c].split(c.op.axis[0], factor=4)
    other = te.compute((3,), lambda i: i, name="other")
    with pytest.raises(ScheduleError, match="a stage C, which this schedule does not have"):
        s.trace.replay(te.create_schedule(other.op))


@pytest.mark.parametrize(("name", "wanted"), [("a.b", "a_b"), ("0x", "_0x"), ("plain", "plain")])
def test_names_that_python_takes(name: str, wanted: str) -> None:
    """Dots and leading digits are replaced."""
    assert identifier(name) == wanted
