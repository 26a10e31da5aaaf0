"""``rfactor``: reductions in two steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.te.schedule.checks import check, random, refused

import tilewright as tvm
from tilewright import te, tir


def sums() -> tuple[te.Tensor, te.Tensor]:
    """A sum over two of three axes."""
    a = te.placeholder((4, 5, 13), name="A")
    j, k = te.reduce_axis((0, 5), name="j"), te.reduce_axis((0, 13), name="k")
    return a, te.compute((4,), lambda i: te.sum(a[i, j, k], axis=[j, k]), name="B")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("position", [0, 1, -1, -2])
def test_a_whole_axis(which: int, position: int) -> None:
    """The new dimension stands where ``factor_axis`` says, negative numbers counting from the end."""
    a, b = sums()
    s = te.create_schedule(b.op)
    axis = b.op.reduce_axis[which]
    factored = s.rfactor(b, axis, position)
    extent = axis.dom.extent.value
    wanted = [extent, 4] if position in (0, -2) else [4, extent]
    assert [one.value for one in factored.shape] == wanted
    values = random(4, 5, 13)
    check(s, [a, b], [values], values.sum((1, 2)))


@pytest.mark.parametrize("factor", [2, 4, 13, 20])
@pytest.mark.parametrize("outer", [False, True])
def test_a_part_of_a_split_that_does_not_divide(factor: int, outer: bool) -> None:
    """No element is added twice or left out."""
    a, b = sums()
    s = te.create_schedule(b.op)
    parts = s[b].split(b.op.reduce_axis[1], factor=factor)
    factored = s.rfactor(b, parts[0] if outer else parts[1])
    s[factored].parallel(s[factored].op.axis[0])
    values = random(4, 5, 13)
    check(s, [a, b], [values], values.sum((1, 2)))


def test_a_fused_axis_and_steps_on_data_axes() -> None:
    """The reduction's axes are fused and split; steps on data axes are the user's to take again."""
    a, b = sums()
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=3)
    _, inner = s[b].split(s[b].fuse(*b.op.reduce_axis), factor=8)
    factored = s.rfactor(b, inner, 1)
    assert s[b].leaf_iter_vars == [*s[b].op.axis, *s[b].op.reduce_axis]
    s[factored].vectorize(s[factored].op.axis[1])
    s[factored].reorder(*s[factored].op.reduce_axis, *s[factored].op.axis)
    values = random(4, 5, 13)
    check(s, [a, b], [values], values.sum((1, 2)), compiled=True)


def test_factored_twice() -> None:
    """The first step of a factored reduction can be factored again."""
    a, b = sums()
    s = te.create_schedule(b.op)
    first = s.rfactor(b, b.op.reduce_axis[0])
    _, inner = s[first].split(s[first].op.reduce_axis[0], factor=5)
    second = s.rfactor(first, inner)
    assert [extent.value for extent in second.shape] == [5, 5, 4]
    values = random(4, 5, 13)
    check(s, [a, b], [values], values.sum((1, 2)))


def test_the_first_step_inside_of_the_second() -> None:
    """Placed at the factored axis, the partial results need no tensor of their own."""
    a, b = sums()
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.reduce_axis[1], factor=4)
    factored = s.rfactor(b, inner)
    s[factored].compute_at(s[b], s[b].op.reduce_axis[0])
    values = random(4, 5, 13)
    check(s, [a, b], [values], values.sum((1, 2)))


def test_symbolic_sizes_and_a_condition() -> None:
    """A reduction under a condition, of a size known when the program runs."""
    n = te.var("n")
    a = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k, where=k > i), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(k, factor=4)
    s.rfactor(b, inner)
    values = random(7, 7)
    check(s, [a, b], [values], np.triu(values, 1).sum(1))


def argmin() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """The place and value of the least element; the lower place of equals."""

    def combine(x: Any, y: Any) -> Any:
        keep = te.any(x[1] < y[1], te.all(x[1] == y[1], x[0] < y[0]))
        return tir.Select(keep, x[0], y[0]), tir.Select(keep, x[1], y[1])

    reducer = te.comm_reducer(combine, lambda i, v: (te.max_value(i), te.max_value(v)), name="argmin")
    a = te.placeholder((3, 17), name="A", dtype="int32")
    k = te.reduce_axis((0, 17), name="k")
    place, value = te.compute((3,), lambda i: reducer((k.var, a[i, k]), axis=k), name="R")
    return a, place, value


def test_a_tuple() -> None:
    """Both parts of a tuple reduction are factored together."""
    a, place, value = argmin()
    s = te.create_schedule(place.op)
    _, inner = s[place].split(place.op.reduce_axis[0], factor=4)
    factored = s.rfactor(place, inner)
    assert [one.op.name for one in factored] == ["R.rf", "R.rf"]
    values = np.random.default_rng(1).integers(-9, 9, (3, 17)).astype("int32")
    check(s, [a, place, value], [values], [values.argmin(1).astype("int32"), values.min(1)], compiled=True)


def test_rfactor_refuses() -> None:
    """Data axes, foreign axes, places that are none, stages without a reduction, bound axes, initial values."""
    a, b = sums()
    s = te.create_schedule(b.op)
    j, k = b.op.reduce_axis
    refused(s, lambda: s.rfactor(b, b.op.axis[0]), "rfactor on stage B, axis i", "not a reduction axis")
    refused(s, lambda: s.rfactor(b, te.reduce_axis((0, 3), name="r")), "rfactor on stage B, axis r")
    refused(s, lambda: s.rfactor(b, k, 2), "rfactor on stage B, axis k", "factor_axis 2")
    refused(s, lambda: s.rfactor(b, k, -3), "rfactor on stage B, axis k", "factor_axis -3")
    refused(s, lambda: s.rfactor(b, k, "x"), "rfactor on stage B, axis k", "'x'")  # type: ignore[arg-type]
    refused(
        s, lambda: s.rfactor(te.placeholder((1,), name="X"), k), "rfactor of", "not a tensor of this schedule"
    )
    s[b].bind(j, te.thread_axis("threadIdx.x"))
    refused(s, lambda: s.rfactor(b, j), "rfactor on stage B, axis j", "bound to a thread")
    c = te.compute((4,), lambda i: a[i, 0, 0], name="C")
    s = te.create_schedule(c.op)
    refused(s, lambda: s.rfactor(c, c.op.axis[0]), "rfactor on stage C, axis i", "not a reduction")
    started = te.compute((4,), lambda i: te.sum(a[i, j, k], axis=[j, k], init=1.0), name="D")
    s = te.create_schedule(started.op)
    refused(s, lambda: s.rfactor(started, k), "rfactor on stage D, axis k", "initial value")


def test_a_row_that_does_not_divide_is_reduced_in_vectors() -> None:
    """The guard of the last step is split off with it: the steps before are whole vectors."""
    a = te.placeholder((3, 50), name="A")
    k = te.reduce_axis((0, 50), name="k")
    b = te.compute((3,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, lane = s[b].split(s[b].op.reduce_axis[0], factor=16)
    partial = s.rfactor(b, lane, factor_axis=1)
    s[partial].reorder(s[partial].op.axis[0], s[partial].op.reduce_axis[0], s[partial].op.axis[1])
    s[partial].vectorize(s[partial].op.axis[1])
    text = str(tvm.lower(s, [a, b]))
    assert (
        'T.load("float32x16", A.data' in text and 'T.load("float32x2", A.data' in text and "if " not in text
    )


def test_axes_that_nobody_touched_stay_the_same() -> None:
    """The first step reduces over the very axes of the program, which come first; split ones keep their variables."""
    a = te.placeholder((4, 8, 6))
    k1, k2 = te.reduce_axis((0, 8), "k1"), te.reduce_axis((0, 6), "k2")
    b = te.compute((4,), lambda i: te.sum(a[i, k1, k2], axis=[k1, k2]))
    schedule = te.create_schedule(b.op)
    outer, inner = schedule[b].split(k1, factor=2)
    first = schedule.rfactor(b, inner).op
    assert first.reduce_axis[0] is k2
    assert first.reduce_axis[1].var is outer.var and len(first.reduce_axis) == 2
