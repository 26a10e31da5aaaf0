"""What schedules for blocks of threads rely on: loops with the extent that was asked for, caches in the layout of the
threads, and memory that several threads use."""

from __future__ import annotations

import numpy as np

import tilewright as tvm
from tilewright import te
from tilewright.te.schedule import Schedule
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import Allocate, AttrStmt
from tilewright.tir.stmt_functor import post_order_visit


def nodes(function: tvm.tir.PrimFunc, kind: type) -> list:
    """All statements of a class."""
    found: list = []
    post_order_visit(function.body, lambda node: found.append(node) if isinstance(node, kind) else None)
    return found


def test_an_exact_split_keeps_its_factor() -> None:
    """Sixteen threads for ten elements; those past the end do nothing."""
    a = te.placeholder((10,), name="a")
    b = te.compute((10,), lambda i: a[i] * 2, name="b")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split_exact(b.op.axis[0], 16)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    function = tvm.lower(s, [a, b])["main"]
    extents = {node.node.thread_tag: int(node.value) for node in nodes(function, AttrStmt)}
    assert extents == {"blockIdx.x": 1, "threadIdx.x": 16}
    x, y = np.arange(10, dtype="float32"), np.zeros(10, "float32")
    interpret(function, x, y)
    np.testing.assert_array_equal(y, 2 * x)
    assert "split_exact" in str(s.trace)


def rows_in_registers() -> tuple[Schedule, list[te.Tensor]]:
    """Each of four threads keeps every fourth pair of a row, for a sum and for the result."""
    a = te.placeholder((3, 24), name="a")
    k = te.reduce_axis((0, 24), name="k")
    total = te.compute((3,), lambda i: te.sum(a[i, k], axis=k), name="total")
    b = te.compute((3, 24), lambda i, j: a[i, j] / total[i], name="b")
    s = te.create_schedule(b.op)
    copy = s.cache_read(a, "local", [total.op, b.op])
    thread = te.thread_axis((0, 4), "threadIdx.x")

    def split(stage: te.schedule.Stage, axis: tvm.tir.IterVar) -> list[tvm.tir.IterVar]:
        pair, element = stage.split(axis, factor=2)
        step, own = stage.split(pair, factor=4)
        return [step, own, element]

    split(s[copy], s[copy].op.axis[1])
    kept = s.cache_write(copy, "local")
    s[copy].compute_inline()
    step, own, element = split(s[b], s[b].op.axis[1])
    s[b].reorder(own, step, element)
    s[b].bind(s[b].op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].bind(own, thread)
    s[kept].compute_at(s[b], own)
    s[total].compute_at(s[b], own)
    s[total].set_scope("local")
    step, share, element = split(s[total], s[total].op.reduce_axis[0])
    s[total].reorder(share, step, element)
    s[total].bind(share, thread)
    return s, [a, b]


def test_a_cache_in_the_layout_of_the_threads() -> None:
    """A thread has memory for the six elements that it reads, not for all between the first and the last."""
    s, args = rows_in_registers()
    function = tvm.lower(s, args)["main"]
    sizes = {
        node.buffer_var.name: int(np.prod([int(extent) for extent in node.extents]))
        for node in nodes(function, Allocate)
    }
    assert sizes["a.local.local"] == 6
    x = np.random.default_rng(0).random((3, 24)).astype("float32")
    y = np.zeros_like(x)
    interpret(function, x, y)
    np.testing.assert_allclose(y, x / x.sum(1, keepdims=True), rtol=1e-5)


def test_a_copy_for_a_reader_of_a_reader() -> None:
    """The tensor behind both readers reads what they have become."""
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1, name="b")
    c = te.compute((8,), lambda i: a[i] * b[i], name="c")
    d = te.compute((8,), lambda i: c[i] - 1, name="d")
    s = te.create_schedule(d.op)
    copy = s.cache_read(a, "local", [b.op, c.op])
    stages = {stage.op.name: stage.op for stage in s.stages}
    assert stages["d"].input_tensors[0].op is stages["c"]
    assert {tensor.op for tensor in stages["c"].input_tensors} == {copy.op, stages["b"]}
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    interpret(tvm.lower(s, [a, d])["main"], x, y)
    np.testing.assert_array_equal(y, x * (x + 1) - 1)


def test_a_kernel_does_not_overwrite_what_it_reads() -> None:
    """Neighbours read an element after its own thread is done with it."""
    a = te.placeholder((16,), name="a")
    b = te.compute((16,), lambda i: a[i] * 2, name="b")
    k = te.reduce_axis((0, 16), name="k")
    c = te.compute((16,), lambda i: te.sum(b[k], axis=k), name="c")
    d = te.compute((16,), lambda i: c[i] + 1, name="d")
    s = te.create_schedule(d.op)
    for tensor in (b, c, d):
        s[tensor].bind(s[tensor].op.axis[0], te.thread_axis("blockIdx.x"))
    share, _ = s[c].split(s[c].op.reduce_axis[0], factor=4)
    s[c].bind(share, te.thread_axis("threadIdx.x"))
    function = tvm.lower(s, [a, d])["main"]
    x, y = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    interpret(function, x, y)
    np.testing.assert_array_equal(y, np.full(16, 2 * x.sum() + 1))
