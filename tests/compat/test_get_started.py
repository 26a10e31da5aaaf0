"""The programs that a first tutorial on tensor expressions walks through: vector add and matrix product."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tilewright as tvm
import tilewright.testing
from tilewright import te

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")


def evaluate_addition(func: tvm.runtime.Module, target: tvm.target.Target) -> float:
    """Run with symbolic size 1025, compare, and time."""
    dev = tvm.device(target.kind.name, 0)
    count = 1025
    a = tvm.nd.array(np.random.uniform(size=count).astype(A.dtype), dev)
    b = tvm.nd.array(np.random.uniform(size=count).astype(B.dtype), dev)
    c = tvm.nd.array(np.zeros(count, dtype=C.dtype), dev)
    func(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
    return func.time_evaluator(func.entry_name, dev, number=10)(a, b, c).mean


def test_vector_add_on_the_host() -> None:
    """The default schedule, then a parallel one, then one that is split, parallel and vectorised."""
    tgt = tvm.target.Target(target="llvm", host="llvm")
    s = te.create_schedule(C.op)
    assert evaluate_addition(tvm.build(s, [A, B, C], tgt, name="myadd"), tgt) > 0
    s[C].parallel(C.op.axis[0])
    text = str(tvm.lower(s, [A, B, C], simple_mode=True))
    assert "T.parallel" in text
    assert evaluate_addition(tvm.build(s, [A, B, C], tgt, name="myadd_parallel"), tgt) > 0
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=4)
    s[C].parallel(outer)
    s[C].vectorize(inner)
    assert evaluate_addition(tvm.build(s, [A, B, C], tgt, name="myadd_vector"), tgt) > 0


def test_vector_add_for_a_gpu_prints() -> None:
    """The schedule with blocks and threads gives CUDA source on a machine that has no GPU."""
    tgt_gpu = tvm.target.Target(target="cuda", host="llvm")
    s = te.create_schedule(C.op)
    bx, tx = s[C].split(C.op.axis[0], factor=64)
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(tx, te.thread_axis("threadIdx.x"))
    fadd = tvm.build(s, [A, B, C], target=tgt_gpu, name="myadd")
    dev_module = fadd.imported_modules[0]
    assert dev_module.type_key == "cuda"
    source = dev_module.get_source()
    assert "__global__ void" in source and "blockIdx.x" in source and "threadIdx.x" in source


def test_saving_and_loading(tmp_path: Path) -> None:
    """An object file can be written, a library exported and loaded again."""
    s = te.create_schedule(C.op)
    fadd = tvm.build(s, [A, B, C], "llvm", name="myadd")
    fadd.save(str(tmp_path / "myadd.o"))
    assert (tmp_path / "myadd.o").stat().st_size > 0
    path = str(tmp_path / "myadd.so")
    fadd.export_library(path)
    loaded = tvm.runtime.load_module(path)
    dev = tvm.cpu()
    a = tvm.nd.array(np.random.uniform(size=1024).astype(A.dtype), dev)
    b = tvm.nd.array(np.random.uniform(size=1024).astype(A.dtype), dev)
    c = tvm.nd.empty((1024,), A.dtype, dev)
    loaded(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


M = K = N = 64
k = te.reduce_axis((0, K), "k")
X = te.placeholder((M, K), name="A")
Y = te.placeholder((K, N), name="B")
Z = te.compute((M, N), lambda x, y: te.sum(X[x, k] * Y[k, y], axis=k), name="C")


def evaluate_product(s: te.Schedule, arguments: list[te.Tensor]) -> None:
    """The product of random matrices is NumPy's."""
    target = tvm.target.Target(target="llvm", host="llvm")
    dev = tvm.device(target.kind.name, 0)
    a = tvm.nd.array(np.random.rand(M, K).astype("float32"), dev)
    b = tvm.nd.array(np.random.rand(K, N).astype("float32"), dev)
    func = tvm.build(s, arguments, target=target, name="mmult")
    c = tvm.nd.array(np.zeros((M, N), dtype="float32"), dev)
    func(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), np.dot(a.numpy(), b.numpy()), rtol=1e-5)
    assert func.time_evaluator(func.entry_name, dev, number=1)(a, b, c).mean > 0


def test_matrix_product_step_by_step() -> None:
    """Blocking, vectorisation and loop permutation leave the result as it is."""
    s = te.create_schedule(Z.op)
    evaluate_product(s, [X, Y, Z])
    xo, yo, xi, yi = s[Z].tile(Z.op.axis[0], Z.op.axis[1], 32, 32)
    (axis_k,) = s[Z].op.reduce_axis
    ko, ki = s[Z].split(axis_k, factor=4)
    s[Z].reorder(xo, yo, ko, ki, xi, yi)
    evaluate_product(s, [X, Y, Z])
    s[Z].vectorize(yi)
    s[Z].reorder(xo, yo, ko, xi, ki, yi)
    evaluate_product(s, [X, Y, Z])


def test_matrix_product_with_packing_and_cache() -> None:
    """The second operand is packed, blocks are kept in a cache and written back, the outer loop is parallel."""
    bn = 32
    packed = te.compute((N // bn, K, bn), lambda x, y, z: Y[y, x * bn + z], name="packedB")
    product = te.compute(
        (M, N),
        lambda x, y: te.sum(X[x, k] * packed[y // bn, k, tvm.tir.indexmod(y, bn)], axis=k),
        name="C",
    )
    s = te.create_schedule(product.op)
    cached = s.cache_write(product, "global")
    xo, yo, xi, yi = s[product].tile(product.op.axis[0], product.op.axis[1], bn, bn)
    s[cached].compute_at(s[product], yo)
    xc, yc = s[cached].op.axis
    (axis_k,) = s[cached].op.reduce_axis
    ko, ki = s[cached].split(axis_k, factor=4)
    s[cached].reorder(ko, xc, ki, yc)
    s[cached].unroll(ki)
    s[cached].vectorize(yc)
    x, _, z = s[packed].op.axis
    s[packed].vectorize(z)
    s[packed].parallel(x)
    s[product].parallel(xo)
    evaluate_product(s, [X, Y, product])
