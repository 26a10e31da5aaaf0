"""Loops out of leaves."""

from __future__ import annotations

import pytest

from tilewright import te, tir
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.bounds import infer_bound
from tilewright.te.schedule.loop_nest import guard, likely, make_loop_nest, wrap
from tilewright.tir.stmt import NO_OP, ForKind


def nest_of(s: te.Schedule, tensor: te.Tensor, **options: object) -> tuple[tir.Stmt, dict[object, object]]:
    """The loops of a stage around nothing, and the values of its leaves."""
    normal = s.normalize()
    values: dict[object, object] = {}
    made = make_loop_nest(normal[tensor], infer_bound(normal), values, **options)
    return wrap(made, NO_OP), values


def test_one_loop_a_leaf() -> None:
    """Kinds follow what was asked; pragmas stand around their loop."""
    b = te.compute((4, 8), lambda i, j: i + j, name="B")
    s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    s[b].pragma(b.op.axis[1], "hint", 7)
    loop, _ = nest_of(s, b)
    assert isinstance(loop, tir.For) and loop.kind == ForKind.PARALLEL and loop.extent.value == 4
    hint = loop.body
    assert isinstance(hint, tir.AttrStmt) and (hint.attr_key, hint.value.value) == ("pragma_hint", 7)
    assert isinstance(hint.body, tir.For) and hint.body.body is NO_OP


def test_an_axis_of_one_iteration_is_bound() -> None:
    """It is a value, not a loop, unless trivial loops are kept."""
    b = te.compute((1, 8), lambda i, j: i + j, name="B")
    s = te.create_schedule(b.op)
    outer, values = nest_of(s, b)
    assert isinstance(outer, tir.LetStmt) and outer.value.value == 0
    assert 0 in [getattr(value, "value", None) for value in values.values()]
    kept, _ = nest_of(s, b, keep_trivial=True)
    assert isinstance(kept, tir.For) and kept.extent.value == 1


def test_fresh_variables_for_a_second_nest() -> None:
    """Loops of the initialisation have variables of their own."""
    b = te.compute((4, 8), lambda i, j: i + j, name="B")
    s = te.create_schedule(b.op)
    first, _ = nest_of(s, b)
    second, _ = nest_of(s, b, fresh_vars=True)
    assert first.loop_var is not second.loop_var and second.loop_var.name.endswith(".init")


def test_threads_are_attributes() -> None:
    """A bound axis has no loop; its value is the thread."""
    b = te.compute((4, 8), lambda i, j: i + j, name="B")
    s = te.create_schedule(b.op)
    thread, virtual = te.thread_axis("threadIdx.x"), te.thread_axis("vthread")
    s[b].bind(b.op.axis[0], virtual)
    s[b].bind(b.op.axis[1], thread)
    outer, values = nest_of(s, b)
    assert (outer.attr_key, outer.value.value) == ("virtual_thread", 4)
    assert (outer.body.attr_key, outer.body.value.value) == ("thread_extent", 8)
    assert list(values.values()) == [virtual.var, thread.var]


def test_the_start_of_a_bound_reduction_has_no_loop() -> None:
    """It names stage and axis."""
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: te.sum(i + k, axis=k), name="B")
    s = te.create_schedule(b.op)
    s[b].bind(k, te.thread_axis("threadIdx.x"))
    with pytest.raises(ScheduleError, match="bind on stage B, axis k"):
        nest_of(s, b, fresh_vars=True)


def test_guards() -> None:
    """Conditions nest in order, each with the hint that it holds; what always holds needs none."""
    x = te.var("x")
    inner = guard([x < 3, x > 1], NO_OP)
    assert isinstance(inner, tir.IfThenElse) and isinstance(inner.then_case, tir.IfThenElse)
    assert inner.condition.op.name == "tir.likely"
    assert likely(tir.const(True)) is not None and not isinstance(likely(tir.const(True)), tir.Call)
