"""Threads: bindings, shared memory, virtual threads and reductions across threads. The numbers come from the
interpreter's threads, and each schedule prints as CUDA source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.te.schedule.checks import random

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import ScheduleError
from tilewright.tir.interpreter import interpret


def on_threads(s: te.Schedule, arguments: list[Any], inputs: list[np.ndarray], expected: Any) -> str:
    """The lowered schedule gives the expected values with barriers inserted, and its CUDA source is returned."""
    wanted = expected if isinstance(expected, tuple) else (expected,)
    outputs = [np.full(one.shape, 55, one.dtype) for one in wanted]
    synchronized = tir.transform.ThreadSync("shared")(tvm.lower(s, arguments))
    interpret(synchronized["main"], *inputs, *outputs)
    for got, want in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return tvm.build(s, arguments, "cuda", name="kernel").imported_modules[0].get_source()


def matmul(m: Any, n: Any, depth: Any) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A product with the second operand transposed."""
    a = te.placeholder((m, depth), name="A")
    b = te.placeholder((n, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    return a, b, te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")


@pytest.mark.parametrize("size", [64, 50, "n"])
def test_blocks_and_threads(size: int | str) -> None:
    """Elementwise over blocks and threads; threads past the end do nothing."""
    extent = te.var(size) if isinstance(size, str) else size
    a = te.placeholder((extent,), name="A")
    b = te.compute((extent,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    block, thread = s[b].split(b.op.axis[0], factor=16)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    values = random(64 if size == "n" else size)
    source = on_threads(s, [a, b], [values], values + 1)
    assert "blockIdx.x" in source and "__global__" in source


@pytest.mark.parametrize("shape", [(16, 16, 16), (13, 11, 10)])
def test_product_through_shared_memory(shape: tuple[int, int, int]) -> None:
    """Tiles are fetched by all threads of a block into shared memory, with barriers, and accumulated locally."""
    m, n, depth = shape
    a, b, c = matmul(m, n, depth)
    s = te.create_schedule(c.op)
    shared = [s.cache_read(one, "shared", [c]) for one in (a, b)]
    local = s.cache_write(c, "local")
    tx, ty = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    block_i, thread_i = s[c].split(c.op.axis[0], factor=4)
    block_j, thread_j = s[c].split(c.op.axis[1], factor=4)
    s[c].reorder(block_i, block_j, thread_i, thread_j)
    s[c].bind(block_i, te.thread_axis("blockIdx.y"))
    s[c].bind(block_j, te.thread_axis("blockIdx.x"))
    s[c].bind(thread_i, ty)
    s[c].bind(thread_j, tx)
    s[local].compute_at(s[c], thread_j)
    k_outer, k_inner = s[local].split(s[local].op.reduce_axis[0], factor=4)
    s[local].reorder(k_outer, k_inner, *s[local].op.axis)
    for one in shared:
        s[one].compute_at(s[local], k_outer)
        rows, columns = s[one].op.axis
        s[one].bind(s[one].split(rows, nparts=4)[0], ty)
        s[one].bind(s[one].split(columns, nparts=4)[0], tx)
    x, y = random(m, depth), random(n, depth)
    source = on_threads(s, [a, b, c], [x, y], x @ y.T)
    assert "__shared__" in source and "__syncthreads" in source


def test_virtual_threads() -> None:
    """A virtual thread is unrolled into the thread that runs it."""
    a = te.placeholder((24,), name="A")
    b = te.compute((24,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((24,), lambda i: b[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    virtual, rest = s[c].split(c.op.axis[0], nparts=2)
    thread, inner = s[c].split(rest, nparts=4)
    s[c].bind(virtual, te.thread_axis("vthread"))
    s[c].bind(thread, te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], thread)
    assert inner in s[c].leaf_iter_vars
    values = random(24)
    source = on_threads(s, [a, c], [values], values * 2 + 1)
    assert "vthread" not in source


def test_a_producer_in_shared_memory_serves_all_threads() -> None:
    """The memory of a block holds what all of its threads read; that of a thread only its own."""
    a = te.placeholder((32,), name="A")
    b = te.compute((32,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((31,), lambda i: b[i] + b[i + 1], name="C")
    values = random(32)
    doubled = values * 2
    for scope, extent in (("shared", 9), ("local", 2)):
        s = te.create_schedule(c.op)
        block, thread = s[c].split(c.op.axis[0], factor=8)
        s[c].bind(block, te.thread_axis("blockIdx.x"))
        s[c].bind(thread, te.thread_axis("threadIdx.x"))
        s[b].set_scope(scope)
        s[b].compute_at(s[c], block if scope == "shared" else thread)
        on_threads(s, [a, c], [values], doubled[:-1] + doubled[1:])
        bounds = te.schedule.infer_bound(s.normalize())
        assert bounds[b.op.axis[0]].extent.value == extent


def test_a_whole_axis_on_a_thread_at_any_place() -> None:
    """A producer's own axis bound without a split, over a range that starts elsewhere than at zero."""
    a = te.placeholder((32,), name="A")
    b = te.compute((32,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((32,), lambda i: b[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    block, thread = s[c].split(c.op.axis[0], factor=8)
    tx = te.thread_axis("threadIdx.x")
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, tx)
    s[b].set_scope("shared")
    s[b].compute_at(s[c], block)
    s[b].bind(b.op.axis[0], tx)
    values = random(32)
    on_threads(s, [a, c], [values], values * 2 + 1)


@pytest.mark.parametrize("depth", [16, 21, 5])
def test_reduction_across_threads(depth: int) -> None:
    """Each thread reduces its share, then all combine; shares need not be equal."""
    a = te.placeholder((6, depth), name="A")
    k = te.reduce_axis((0, depth), name="k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, thread = s[b].split(k, factor=4)
    tx = te.thread_axis("threadIdx.x")
    s[b].bind(b.op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].reorder(b.op.axis[0], thread, s[b].leaf_iter_vars[1])
    s[b].bind(thread, tx)
    s[b].set_store_predicate(tx.var.equal(0))
    values = random(6, depth)
    source = on_threads(s, [a, b], [values], values.sum(1))
    assert "threadIdx.x" in source


def test_reduction_across_threads_of_two_rows_at_once() -> None:
    """With a second thread index for the rows, each row has its own group of threads; the last block is partly
    empty."""
    a = te.placeholder((7, 32), name="A")
    k = te.reduce_axis((0, 32), name="k")
    b = te.compute((7,), lambda i: te.max(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    block, row = s[b].split(b.op.axis[0], factor=4)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(row, te.thread_axis("threadIdx.y"))
    s[b].bind(k, te.thread_axis("threadIdx.x"))
    values = random(7, 32)
    on_threads(s, [a, b], [values], values.max(1))


def test_reduction_of_pairs_across_threads() -> None:
    """Index and value are combined together."""

    def combine(x: Any, y: Any) -> Any:
        keep = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
        return tir.Select(keep, x[0], y[0]), tir.Select(keep, x[1], y[1])

    reducer = te.comm_reducer(combine, lambda i, v: (te.max_value(i), te.min_value(v)), name="argmax")
    a = te.placeholder((3, 19), name="A")
    k = te.reduce_axis((0, 19), name="k")
    place, value = te.compute((3,), lambda i: reducer((k.var, a[i, k]), axis=k), name="R")
    s = te.create_schedule(place.op)
    loop, thread = s[place].split(k, factor=8)
    s[place].bind(place.op.axis[0], te.thread_axis("blockIdx.x"))
    s[place].reorder(place.op.axis[0], thread, loop)
    s[place].bind(thread, te.thread_axis("threadIdx.x"))
    values = random(3, 19)
    on_threads(s, [a, place, value], [values], (values.argmax(1).astype("int32"), values.max(1)))


def test_a_factored_reduction_across_threads() -> None:
    """rfactor, then the second step across threads with the first step inside: the tutorial's way."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(k, factor=8)
    factored = s.rfactor(b, inner)
    tx = te.thread_axis("threadIdx.x")
    s[b].bind(s[b].op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].bind(s[b].op.reduce_axis[0], tx)
    s[factored].compute_at(s[b], s[b].op.reduce_axis[0])
    s[b].set_store_predicate(tx.var.equal(0))
    values = random(5, 29)
    on_threads(s, [a, b], [values], values.sum(1))


def test_softmax_of_rows_by_blocks() -> None:
    """Two reductions across threads and an elementwise stage share one kernel."""
    a = te.placeholder((4, 24), name="A")
    k1, k2 = te.reduce_axis((0, 24), name="k1"), te.reduce_axis((0, 24), name="k2")
    largest = te.compute((4,), lambda i: te.max(a[i, k1], axis=k1), name="M")
    power = te.compute((4, 24), lambda i, j: te.exp(a[i, j] - largest[i]), name="E")
    total = te.compute((4,), lambda i: te.sum(power[i, k2], axis=k2), name="S")
    out = te.compute((4, 24), lambda i, j: power[i, j] / total[i], name="O")
    s = te.create_schedule(out.op)
    tx = te.thread_axis("threadIdx.x")
    s[power].compute_inline()
    row, column = out.op.axis
    s[out].bind(row, te.thread_axis("blockIdx.x"))
    _, thread = s[out].split(column, factor=8)
    s[out].bind(thread, tx)
    for stage in (largest, total):
        s[stage].set_scope("shared")
        s[stage].compute_at(s[out], row)
        loop, part = s[stage].split(stage.op.reduce_axis[0], factor=8)
        s[stage].reorder(part, loop)
        s[stage].bind(part, tx)
    values = random(4, 24)
    powers = np.exp(values - values.max(1, keepdims=True))
    on_threads(s, [a, out], [values], powers / powers.sum(1, keepdims=True))


def test_a_loop_inside_of_the_bound_axis_is_needed() -> None:
    """A bound reduction axis inside a reduction loop is refused with stage and axis."""
    a = te.placeholder((6, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, thread = s[b].split(k, factor=4)
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    with pytest.raises(ScheduleError, match=r"bind on stage B, axis k\.inner: it must be outside"):
        tvm.lower(s, [a, b])


def test_storing_without_threads_on_a_gpu_is_refused() -> None:
    """A schedule without bindings is not a GPU program: the error names the memory that the host would touch."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    with pytest.raises(tvm.TVMError, match="(?i)bind"):
        tvm.build(te.create_schedule(b.op), [a, b], "cuda")
