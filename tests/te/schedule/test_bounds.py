"""Bound inference: what each stage must compute where it is placed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.te.schedule.checks import check, parts

import tilewright as tvm
from tilewright import te, tir
from tilewright.arith import Analyzer
from tilewright.ir.expr import IntImm
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.bounds import BoundInference, attach_path, infer_bound


def ranges(s: te.Schedule, tensor: te.Tensor) -> list[Any]:
    """The extents of a stage's root axes."""
    found = infer_bound(s.normalize())
    analyzer = Analyzer()
    extents = [analyzer.simplify(found[axis].extent) for axis in tensor.op.axis]
    return [extent.value if isinstance(extent, IntImm) else str(extent) for extent in extents]


def windows(size: Any) -> list[te.Tensor]:
    """A reader of three by two windows with a stride of two in the second dimension."""
    a = te.placeholder((size, size), name="A")
    b = te.compute((size, size), lambda i, j: a[i, j] + 1.0, name="B")
    r, q = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 2), name="q")
    c = te.compute((8, 6), lambda i, j: te.sum(b[i + r, j * 2 + q], axis=[r, q]), name="C")
    return [a, b, c]


def test_at_the_root_only_what_is_read() -> None:
    """An output covers its domain, its producer what that needs."""
    _, b, c = windows(20)
    s = te.create_schedule(c.op)
    assert ranges(s, c) == [8, 6]
    assert ranges(s, b) == [10, 12]


@pytest.mark.parametrize(
    ("place", "wanted"), [(0, [3, 12]), (1, [3, 2]), (2, [1, 2]), (3, [1, 1])], ids=["i", "j", "r", "q"]
)
def test_at_each_loop(place: int, wanted: list[int]) -> None:
    """The deeper the place, the less is needed."""
    _, b, c = windows(20)
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], s[c].leaf_iter_vars[place])
    assert ranges(s, b) == wanted


def test_at_a_tile() -> None:
    """Tiles of four by three need six by six."""
    _, b, c = windows(20)
    s = te.create_schedule(c.op)
    _, outer, _, _ = s[c].tile(*c.op.axis, 4, 3)
    s[b].compute_at(s[c], outer)
    assert ranges(s, b) == [6, 6]


def test_symbolic_sizes() -> None:
    """A block of eight and the two beyond it; at the root the whole."""
    n = te.var("n")
    a = te.placeholder((n + 2,), name="A")
    b = te.compute((n + 2,), lambda i: a[i], name="B")
    c = te.compute((n,), lambda i: b[i] + b[i + 2], name="C")
    s = te.create_schedule(c.op)
    assert ranges(s, b) == ["n + 2"]
    outer, _ = s[c].split(c.op.axis[0], factor=8)
    s[b].compute_at(s[c], outer)
    assert ranges(s, b) == [10]


def test_several_readers_are_united() -> None:
    """What one reads at the front and another at the back is all in between."""
    a = te.placeholder((40,), name="A")
    b = te.compute((40,), lambda i: a[i], name="B")
    c = te.compute((4,), lambda i: b[i + 3], name="C")
    d = te.compute((4,), lambda i: b[i + 20] + c[i], name="D")
    s = te.create_schedule(d.op)
    found = infer_bound(s.normalize())[b.op.axis[0]]
    assert (found.min.value, found.extent.value) == (3, 21)


def test_an_index_that_cannot_be_bounded_needs_everything() -> None:
    """A gather reads anywhere, within the tensor."""
    a = te.placeholder((30,), name="A")
    where = te.placeholder((4,), name="W", dtype="int32")
    b = te.compute((30,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: b[where[i]], name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    assert ranges(s, b) == [30]


def test_reads_outside_of_the_tensor_do_not_count() -> None:
    """Padding guarded by a condition needs the tensor, not the border."""
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((14,), lambda i: te.if_then_else(te.all(i >= 2, i < 12), b[i - 2], 0.0), name="C")
    assert ranges(te.create_schedule(c.op), b) == [10]


@pytest.mark.parametrize("shift", [0, 3, -3])
def test_iterations_that_read_nothing(shift: int) -> None:
    """Where a condition keeps most iterations from reading, memory for one row serves, never less than none."""
    a, other = te.placeholder((9, 8), name="A"), te.placeholder((9, 8), name="D")
    b = te.compute((1, 8), lambda i, j: te.sqrt(a[i, j]), name="B")
    c = te.compute(
        (9, 8),
        lambda i, j: te.if_then_else(te.all(i >= shift, i < shift + 1), b[i - shift, j], other[i, j]),
        name="C",
    )
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    assert ranges(s, b) == [1, 8]
    generator = np.random.default_rng(0)
    arrays = [generator.random((9, 8), dtype="float32") for _ in range(2)]
    out = tvm.nd.empty((9, 8), "float32")
    tvm.build(s, [a, other, c], "llvm")(*[tvm.nd.array(one) for one in arrays], out)
    wanted = arrays[1].copy()
    if shift >= 0:
        wanted[shift] = np.sqrt(arrays[0][0])
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-6)


def test_reads_that_never_happen() -> None:
    """A constant index outside the tensor, behind a condition that does not hold, widens nothing."""
    a = te.placeholder((2,), name="A")
    b = te.compute((2,), lambda i: a[i] * 2.0, name="B")
    c = te.compute(
        (3,), lambda i: te.if_then_else(i < 0, b[-2], te.if_then_else(i > 9, b[3], b[1])), name="C"
    )
    s = te.create_schedule(c.op)
    assert ranges(s, b) == [2]
    tvm.lower(s, [a, c])


def test_nothing_is_read_of_a_tensor_without_elements() -> None:
    """A chain over no rows computes no rows, in every stage."""
    a = te.placeholder((0, 3), name="A")
    b = te.compute((0, 3), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((0, 3), lambda i, j: b[i, j] * 2.0, name="C")
    s = te.create_schedule(c.op)
    assert ranges(s, b) == [0, 3]
    tvm.build(s, [a, c])(*(tvm.nd.array(np.empty((0, 3), "float32")) for _ in range(2)))


def test_the_path_to_a_stage() -> None:
    """The loops around a place, innermost first, through several stages."""
    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: a[i, j], name="B")
    c = te.compute((8, 8), lambda i, j: b[i, j], name="C")
    d = te.compute((8, 8), lambda i, j: c[i, j], name="D")
    s = te.create_schedule(d.op)
    s[c].compute_at(s[d], d.op.axis[0])
    s[b].compute_at(s[c], c.op.axis[1])
    assert attach_path(s[b]) == [c.op.axis[1], c.op.axis[0], d.op.axis[0]]
    assert attach_path(s[d]) == []


def test_memory_by_default_follows_the_threads() -> None:
    """At the root global, inside a block shared, inside a thread local."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i], name="B")
    c = te.compute((64,), lambda i: b[i], name="C")
    wanted = {None: "GLOBAL", "block": "SHARED", "thread": "LOCAL"}
    for place, rank in wanted.items():
        s = te.create_schedule(c.op)
        block, thread = s[c].split(c.op.axis[0], factor=8)
        s[c].bind(block, te.thread_axis("blockIdx.x"))
        s[c].bind(thread, te.thread_axis("threadIdx.x"))
        if place is not None:
            s[b].compute_at(s[c], block if place == "block" else thread)
        assert BoundInference(s).storage_rank(s[b]).name == rank


@pytest.mark.parametrize(("scope", "place"), [("local", None), ("shared", None), ("local", "block")])
def test_memory_of_a_thread_that_does_not_run_yet(scope: str, place: str | None) -> None:
    """A stage outside its reader's threads cannot keep its result in the memory of one of them."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i], name="B")
    c = te.compute((64,), lambda i: b[i], name="C")
    s = te.create_schedule(c.op)
    block, thread = s[c].split(c.op.axis[0], factor=8)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, te.thread_axis("threadIdx.x"))
    s[b].set_scope(scope)
    if place is not None:
        s[b].compute_at(s[c], block)
    with pytest.raises(
        ScheduleError, match=rf"set_scope on stage B, axis i\.\w+: its memory \({scope}\) is not shared"
    ):
        tvm.lower(s, [a, c])


def test_an_output_cannot_be_in_a_group_that_is_placed() -> None:
    """The group's place would hold the output."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i], name="B")
    c = te.compute((8,), lambda i: b[i], name="C")
    s = te.create_schedule([c.op, b.op])
    s.create_group(b, a).compute_at(s[c], c.op.axis[0])
    with pytest.raises(ScheduleError, match="compute_at on stage B: an output is computed at the root"):
        tvm.lower(s, [a, b, c])


def test_env_threads_need_a_range() -> None:
    """A thread around a stage says how many it is."""
    b = te.compute((8,), lambda i: i, name="B")
    s = te.create_schedule(b.op)
    s[b].env_threads(te.thread_axis("threadIdx.x"))
    with pytest.raises(ScheduleError, match=r"env_threads on stage B, axis threadIdx\.x: .* needs a range"):
        tvm.lower(s, [b])


@pytest.mark.parametrize(
    ("tag", "scope"), [("threadIdx.x", "local"), ("vthread", "local"), ("blockIdx.y", "shared")]
)
def test_private_memory_bound_to_a_thread_again(tag: str, scope: str) -> None:
    """Where each thread has the memory to itself, an axis that is split for the thread and bound to it has one element
    inside: the thread computes its own, without a guard."""
    a = te.placeholder((1, 3, 2), name="A")
    b = te.compute((1, 3, 2), lambda i, j, k: a[i, j, k] * 2.0, name="B")
    c = te.compute((1, 3, 2), lambda i, j, k: b[i, j, k] + 1.0, name="C")
    s = te.create_schedule(c.op)
    thread = te.thread_axis(tag)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].set_scope(scope)
    _, inner = s[b].split(b.op.axis[1], 3)
    s[c].bind(c.op.axis[0], te.thread_axis("blockIdx.x"))
    s[c].bind(c.op.axis[1], thread)
    s[b].bind(inner, thread)
    assert not parts(tvm.lower(s, [a, c])["main"], tir.IfThenElse)
    values = np.arange(6, dtype="float32").reshape(1, 3, 2)
    check(s, [a, c], [values], values * 2 + 1)
