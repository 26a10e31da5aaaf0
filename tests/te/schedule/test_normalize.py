"""Making a schedule ready: inlining, places that moved, loops from zero."""

from __future__ import annotations

import numpy as np
import pytest
from tests.te.schedule.checks import check, random, state

import tilewright as tvm
from tilewright import te
from tilewright.ir.expr import ProducerLoad
from tilewright.ir.functor import post_order
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.relations import Rebase
from tilewright.te.schedule.stage import AttachType


def chain() -> list[te.Tensor]:
    """Three elementwise computations, the middle one read at other indices."""
    a = te.placeholder((6, 5), name="A")
    b = te.compute((6, 5), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((5, 6), lambda i, j: b[j, i] * 2.0, name="C")
    return [a, b, c, te.compute((5, 6), lambda i, j: c[i, j] - b[5 - j, 4 - i], name="D")]


def test_the_given_schedule_stays() -> None:
    """A normalised schedule is a copy."""
    *_, c, d = chain()
    s = te.create_schedule(d.op)
    s[c].compute_inline()
    before = state(s)
    assert s.normalize() is not s
    assert state(s) == before


def test_indices_that_are_wider_than_their_axis() -> None:
    """An index of int64 takes the place of an axis of int32 that the inlined expression compares."""
    a, places = te.placeholder((6,), name="A"), te.placeholder((3,), "int64", name="places")
    b = te.compute((8,), lambda i: te.if_then_else(i < 6, a[te.min(i, 5)], 0.0), name="B")
    c = te.compute((3,), lambda i: b[places[i]], name="C")
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    built = tvm.build(s, [a, places, c], "llvm")
    data, result = random(6), tvm.nd.empty((3,))
    built(tvm.nd.array(data), tvm.nd.array(np.asarray([7, 0, 5], "int64")), result)
    np.testing.assert_array_equal(result.numpy(), [0.0, data[0], data[5]])


def test_inlined_stages_go_into_their_readers() -> None:
    """With indices put in, through several levels and into several readers."""
    a, b, c, d = chain()
    s = te.create_schedule(d.op)
    s[b].compute_inline()
    s[c].compute_inline()
    normal = s.normalize()
    assert normal.stages[1].attach_type == AttachType.INLINED_ALREADY
    reads = {part.producer for part in post_order(normal[d].op.body[0]) if isinstance(part, ProducerLoad)}
    assert reads == {a}
    values = random(6, 5)
    plus = values + 1
    check(s, [a, d], [values], plus.T * 2 - plus[::-1, ::-1].T)


def test_long_chains_are_put_in_once() -> None:
    """An element that is read twice is one expression, however many levels read it twice."""
    tensor = te.placeholder((4,), name="A")
    tensors = [tensor]
    for number in range(200):
        below = tensors[-1]
        made = te.compute((4,), lambda i, below=below: below[i] * 0.5 + below[i], name=f"B{number}")
        tensors.append(made)
    s = te.create_schedule(tensors[-1].op)
    for inner in tensors[1:-1]:
        s[inner].compute_inline()
    body = s.normalize().stages[-1].op.body[0]
    assert len(post_order(body)) < 1000
    assert [part.producer for part in post_order(body) if isinstance(part, ProducerLoad)] == [tensor] * 2


def test_inlining_into_a_reduction_and_a_pair() -> None:
    """Reductions of several outputs stay one reduction."""
    a = te.placeholder((4, 7), name="A")
    b = te.compute((4, 7), lambda i, j: a[i, j] * 3.0, name="B")
    k = te.reduce_axis((0, 7), name="k")
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] + y[1]),
        lambda s, t: (tvm.tir.const(0, s), tvm.tir.const(0, t)),
    )
    one, two = te.compute((4,), lambda i: both((b[i, k], b[i, k] * b[i, k]), axis=k), name="R")
    s = te.create_schedule(one.op)
    s[b].compute_inline()
    values = random(4, 7)
    check(s, [a, one, two], [values], [(values * 3).sum(1), (values * values * 9).sum(1)])


def test_inlining_into_a_statement_is_refused() -> None:
    """An extern reads memory."""
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.extern((4,), [b], lambda ins, outs: tvm.tir.Evaluate(0), name="C")
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    with pytest.raises(ScheduleError, match="compute_inline on stage B: its reader C is not a computation"):
        s.normalize()


def test_places_follow_splits_and_fusions() -> None:
    """An axis that was split after a stage was placed at it gives its place to the inner part; a fused one to
    the fused axis."""
    a, b, c, d = chain()
    s = te.create_schedule(d.op)
    s[c].compute_at(s[d], d.op.axis[1])
    s[b].compute_at(s[d], d.op.axis[0])
    outer, inner = s[d].split(d.op.axis[1], factor=4)
    normal = s.normalize()
    assert normal[c].attach_ivar is inner
    fused = s[d].fuse(d.op.axis[0], outer)
    normal = s.normalize()
    assert normal[b].attach_ivar is fused
    values = random(6, 5)
    plus = values + 1
    check(s, [a, d], [values], plus.T * 2 - plus[::-1, ::-1].T)


def test_root_axes_are_moved_to_zero() -> None:
    """Each leaf that is a root gets a rebased axis; its binding moves along, its alignment stays."""
    a, b, _, d = chain()
    s = te.create_schedule(d.op)
    thread = te.thread_axis("threadIdx.x")
    s[b].bind(b.op.axis[0], thread)
    s[b].storage_align(b.op.axis[0], 8, 1)
    normal = s.normalize()
    assert [type(one) for one in normal[b].relations] == [Rebase, Rebase]
    moved = normal[b].leaf_iter_vars[0]
    assert normal[b].attributes(moved).bind_thread is thread
    assert normal[b].attributes(b.op.axis[0]).bind_thread is None
    assert normal[b].attributes(b.op.axis[0]).align_factor == 8
    assert a.op in normal
