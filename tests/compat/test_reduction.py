"""Reductions as a tutorial on them shows: rows, factoring, threads, two-dimensional windows, own reducers."""

from __future__ import annotations

import numpy as np

import tilewright as tvm
import tilewright.testing
from tilewright import te
from tilewright.tir.interpreter import interpret

n = te.var("n")
m = te.var("m")


def row_sum() -> tuple[te.Tensor, te.Tensor]:
    """A sum over the rows of a matrix of any size."""
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    return a, te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")


def check_rows(s: te.Schedule, a: te.Tensor, b: te.Tensor) -> None:
    """The compiled schedule sums rows."""
    values = np.random.uniform(size=(50, 37)).astype("float32")
    result = tvm.nd.array(np.zeros(50, dtype="float32"))
    tvm.build(s, [a, b], "llvm")(tvm.nd.array(values), result)
    tvm.testing.assert_allclose(result.numpy(), values.sum(axis=1), rtol=1e-4)


def test_splitting_both_axes() -> None:
    """Data and reduction axes are split, neither dividing its extent."""
    a, b = row_sum()
    s = te.create_schedule(b.op)
    text = str(tvm.lower(s, [a, b], simple_mode=True))
    assert text.count("for ") == 2
    s[b].split(b.op.reduce_axis[0], factor=16)
    s[b].split(b.op.axis[0], factor=32)
    check_rows(s, a, b)


def test_factoring_and_parallelising() -> None:
    """rfactor makes a stage of partial sums, whose first axis can run in parallel."""
    a, b = row_sum()
    s = te.create_schedule(b.op)
    _, ki = s[b].split(b.op.reduce_axis[0], factor=16)
    bf = s.rfactor(b, ki)
    assert s[b].op.body[0].source[0].producer == bf
    assert [axis.dom.extent for axis in s[bf].op.axis][0].value == 16
    s[bf].parallel(bf.op.axis[0])
    check_rows(s, a, b)


def test_cross_thread_reduction() -> None:
    """With threads on the factored axis, the partial sums are combined across threads, and one thread stores."""
    a, b = row_sum()
    s = te.create_schedule(b.op)
    _, ki = s[b].split(b.op.reduce_axis[0], factor=16)
    bf = s.rfactor(b, ki)
    xo, xi = s[b].split(s[b].op.axis[0], factor=32)
    s[b].bind(xo, te.thread_axis("blockIdx.x"))
    s[b].bind(xi, te.thread_axis("threadIdx.y"))
    tx = te.thread_axis("threadIdx.x")
    s[b].bind(s[b].op.reduce_axis[0], tx)
    s[bf].compute_at(s[b], s[b].op.reduce_axis[0])
    s[b].set_store_predicate(tx.var.equal(0))
    fcuda = tvm.build(s, [a, b], "cuda")
    source = fcuda.imported_modules[0].get_source()
    assert "threadIdx.x" in source and "threadIdx.y" in source
    values = np.random.uniform(size=(50, 37)).astype("float32")
    result = np.zeros(50, "float32")
    interpret(tvm.lower(s, [a, b])["main"], values, result)
    np.testing.assert_allclose(result, values.sum(axis=1), rtol=1e-4)


def test_convolution_by_two_reductions() -> None:
    """A reduction over two axes at once: convolution with a kernel of symbolic size, here with fixed sizes."""
    size = te.var("size")
    image = te.placeholder((size, size), name="Input")
    kernel = te.placeholder((3, 3), name="Filter")
    di = te.reduce_axis((0, 3), name="di")
    dj = te.reduce_axis((0, 3), name="dj")
    output = te.compute(
        (size - 2, size - 2),
        lambda i, j: te.sum(image[i + di, j + dj] * kernel[di, dj], axis=[di, dj]),
        name="Output",
    )
    s = te.create_schedule(output.op)
    values = np.random.rand(9, 9).astype("float32")
    weights = np.random.rand(3, 3).astype("float32")
    result = np.zeros((7, 7), "float32")
    tvm.build(s, [image, kernel, output], "llvm")(values, weights, result)
    windows = np.lib.stride_tricks.sliding_window_view(values, (3, 3))
    np.testing.assert_allclose(result, np.einsum("ijrs,rs->ij", windows, weights), rtol=1e-5)


def test_own_reducer() -> None:
    """A product, by a reducer of one's own."""
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: product(a[i, k], axis=k), name="B")
    values = np.random.uniform(0.5, 1.5, size=(6, 11)).astype("float32")
    result = np.zeros(6, "float32")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(values, result)
    np.testing.assert_allclose(result, values.prod(axis=1), rtol=1e-4)
