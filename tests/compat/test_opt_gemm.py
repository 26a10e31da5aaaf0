"""The six steps of a tutorial on a fast matrix product, small, each compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
import tilewright.testing
from tilewright import te

M = K = N = 128
BN, KFACTOR = 32, 4

k = te.reduce_axis((0, K), "k")
A = te.placeholder((M, K), name="A")
B = te.placeholder((K, N), name="B")


def plain() -> te.Tensor:
    """The product as it is written."""
    return te.compute((M, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")


def packed() -> tuple[te.Tensor, te.Tensor]:
    """The product of a packed second operand."""
    packed_b = te.compute((N // BN, K, BN), lambda big, k, little: B[k, big * BN + little], name="packedB")
    c = te.compute(
        (M, N),
        lambda m, n: te.sum(A[m, k] * packed_b[n // BN, k, tvm.tir.indexmod(n, BN)], axis=k),
        name="C",
    )
    return packed_b, c


def blocked() -> tuple[te.Schedule, te.Tensor]:
    """Tiles of BN by BN, the reduction split outside of them."""
    c = plain()
    s = te.create_schedule(c.op)
    mo, no, mi, ni = s[c].tile(c.op.axis[0], c.op.axis[1], BN, BN)
    (kaxis,) = s[c].op.reduce_axis
    ko, ki = s[c].split(kaxis, factor=KFACTOR)
    s[c].reorder(mo, no, ko, ki, mi, ni)
    return s, c


def vectorized() -> tuple[te.Schedule, te.Tensor]:
    """The innermost loop as vectors."""
    s, c = blocked()
    s[c].vectorize(s[c].leaf_iter_vars[-1])
    return s, c


def permuted() -> tuple[te.Schedule, te.Tensor]:
    """The reduction's inner loop inside of the rows."""
    c = plain()
    s = te.create_schedule(c.op)
    mo, no, mi, ni = s[c].tile(c.op.axis[0], c.op.axis[1], BN, BN)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=KFACTOR)
    s[c].reorder(mo, no, ko, mi, ki, ni)
    s[c].vectorize(ni)
    return s, c


def array_packed() -> tuple[te.Schedule, te.Tensor]:
    """The second operand packed in parallel."""
    packed_b, c = packed()
    s = te.create_schedule(c.op)
    mo, no, mi, ni = s[c].tile(c.op.axis[0], c.op.axis[1], BN, BN)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=KFACTOR)
    s[c].reorder(mo, no, ko, mi, ki, ni)
    s[c].vectorize(ni)
    big_n, _, little_n = s[packed_b].op.axis
    s[packed_b].vectorize(little_n)
    s[packed_b].parallel(big_n)
    return s, c


def write_cached() -> tuple[te.Schedule, te.Tensor]:
    """A block accumulated in a cache and written at the end; then all in parallel."""
    packed_b, c = packed()
    s = te.create_schedule(c.op)
    cc = s.cache_write(c, "global")
    mo, no, mi, ni = s[c].tile(c.op.axis[0], c.op.axis[1], BN, BN)
    s[cc].compute_at(s[c], no)
    mc, nc = s[cc].op.axis
    (kaxis,) = s[cc].op.reduce_axis
    ko, ki = s[cc].split(kaxis, factor=KFACTOR)
    s[cc].reorder(ko, mc, ki, nc)
    s[cc].vectorize(nc)
    s[cc].unroll(ki)
    big_n, _, little_n = s[packed_b].op.axis
    s[packed_b].vectorize(little_n)
    s[packed_b].parallel(big_n)
    s[c].parallel(mo)
    return s, c


def baseline() -> tuple[te.Schedule, te.Tensor]:
    """The default schedule."""
    c = plain()
    return te.create_schedule(c.op), c


@pytest.mark.parametrize(
    "make",
    [baseline, blocked, vectorized, permuted, array_packed, write_cached],
    ids=lambda make: make.__name__,
)
def test_each_step_gives_the_product(make: object) -> None:
    """Each step is right."""
    s, c = make()
    func = tvm.build(s, [A, B, c], target="llvm", name="mmult")
    assert func
    dev = tvm.device("llvm", 0)
    a = tvm.nd.array(np.random.rand(M, K).astype("float32"), dev)
    b = tvm.nd.array(np.random.rand(K, N).astype("float32"), dev)
    out = tvm.nd.array(np.zeros((M, N), dtype="float32"), dev)
    func(a, b, out)
    tvm.testing.assert_allclose(out.numpy(), np.dot(a.numpy(), b.numpy()), rtol=1e-5)


def test_the_lowered_text_shows_the_steps() -> None:
    """Vector loads, the packed buffer and the parallel loop are there to read."""
    s, c = write_cached()
    text = str(tvm.lower(s, [A, B, c], simple_mode=True))
    assert "T.parallel" in text and "C.global" in text.replace("C_global", "C.global")
