"""From a schedule with bounds to a statement: memory around stages, places, and trivial loops."""

from __future__ import annotations

import pytest
from tests.te.schedule.checks import check, parts, random

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule import infer_bound, schedule_ops


def statement(s: te.Schedule, keep_trivial: bool = False) -> tir.Stmt:
    """The statement of a schedule."""
    normal = s.normalize()
    return schedule_ops(normal, infer_bound(normal), keep_trivial)


def chain() -> list[te.Tensor]:
    """Two elementwise computations after an input."""
    a = te.placeholder((6, 8), name="A")
    b = te.compute((6, 8), lambda i, j: a[i, j] + 1.0, name="B")
    return [a, b, te.compute((6, 8), lambda i, j: b[i, j] * 2.0, name="C")]


def test_memory_is_realised_around_producer_and_reader() -> None:
    """A tensor's memory stands around the loops that write and read it, inside the place of its stage."""
    _, b, c = chain()
    s = te.create_schedule(c.op)
    realized = parts(statement(s), tir.ProducerRealize)
    assert {one.producer.op.name: [bound.extent.value for bound in one.bounds] for one in realized} == {
        "B": [6, 8],
        "C": [6, 8],
    }
    s[b].compute_at(s[c], c.op.axis[0])
    (outer, inner) = parts(statement(s), tir.ProducerRealize)
    assert outer.producer is c and inner.producer is b
    assert [bound.extent.value for bound in inner.bounds] == [1, 8]
    assert isinstance(outer.body, tir.For)


def test_the_scope_of_memory() -> None:
    """As it was set, or by the threads around it."""
    _, b, c = chain()
    s = te.create_schedule(c.op)
    s[c].bind(c.op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].compute_at(s[c], c.op.axis[0])
    scopes = {one.producer.op.name: one.storage_scope for one in parts(statement(s), tir.ProducerRealize)}
    assert scopes == {"B": "shared", "C": "global"}
    s[b].set_scope("local")
    scopes = {one.producer.op.name: one.storage_scope for one in parts(statement(s), tir.ProducerRealize)}
    assert scopes["B"] == "local"


def test_double_buffers_only_where_memory_is_filled_again() -> None:
    """At the root there is no next block, so nothing is doubled."""
    a, b, c = chain()
    for placed in (False, True):
        s = te.create_schedule(c.op)
        s[b].double_buffer()
        if placed:
            s[b].compute_at(s[c], c.op.axis[0])
        found = [one for one in parts(statement(s), tir.AttrStmt) if one.attr_key == "double_buffer_scope"]
        assert len(found) == placed
        values = random(6, 8)
        check(s, [a, c], [values], (values + 1) * 2)


def test_double_buffer_in_a_thread_is_by_the_loop_outside() -> None:
    """A bound axis repeats nothing; the loop around it does."""
    _, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].double_buffer()
    s[c].bind(c.op.axis[1], te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], c.op.axis[1])
    assert any(one.attr_key == "double_buffer_scope" for one in parts(statement(s), tir.AttrStmt))


def test_trivial_loops() -> None:
    """They are left out, or kept for those who look at loops."""
    b = te.compute((1, 4), lambda i, j: i + j, name="B")
    s = te.create_schedule(b.op)
    assert len(parts(statement(s), tir.For)) == 1
    assert len(parts(statement(s, keep_trivial=True), tir.For)) == 2


def test_unscheduled_stages_stand_in_order() -> None:
    """A reader follows its producer; two stages at one axis, producers first."""
    a, b, c = chain()
    d = te.compute((6, 8), lambda i, j: c[i, j] - b[i, j], name="D")
    s = te.create_schedule(d.op)
    s[b].compute_at(s[d], d.op.axis[0])
    s[c].compute_at(s[d], d.op.axis[0])
    stores = [one.producer.op.name for one in reversed(parts(statement(s), tir.ProducerStore))]
    assert stores == ["B", "C", "D"]
    values = random(6, 8)
    check(s, [a, d], [values], values + 1)
    assert tvm.tir.analysis.verify_ssa(tvm.lower(s, [a, d])["main"])


def test_overcomputed_stages_have_no_conditions_of_their_own() -> None:
    """A block that reaches past the end is computed whole; an output never is."""
    n = te.size_var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute(
        (n,), lambda i: tir.if_then_else(tir.all(i >= 0, i < n), a[i], tir.const(0.0, "float32")), name="B"
    )
    c = te.compute((n,), lambda i: b[i] * 2.0, name="C")
    counts = []
    for over in (False, True):
        s = te.create_schedule(c.op)
        outer, _ = s[c].split(c.op.axis[0], factor=4)
        s[b].compute_at(s[c], outer)
        if over:
            s[b].overcompute(*b.op.axis)
        counts.append(len(parts(statement(s), tir.IfThenElse)))
        values = random(7)
        check(s, [a, c], [values], values * 2)
    assert counts == [2, 1]
    with pytest.raises(ScheduleError, match="an output has no elements past its ends"):
        s[c].overcompute(*c.op.axis)
    with pytest.raises(ScheduleError, match="it is not a data axis of the operation"):
        s[b].overcompute(*c.op.axis)
