"""Computations with several outputs, as a tutorial on tuples shows."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
import tilewright.testing
from tilewright import te


def test_batches_of_two_outputs() -> None:
    """One computation gives two tensors; both come from one operation."""
    n, m = te.var("n"), te.var("m")
    a0 = te.placeholder((m, n), name="A0")
    a1 = te.placeholder((m, n), name="A1")
    b0, b1 = te.compute((m, n), lambda i, j: (a0[i, j] + 2, a1[i, j] * 3), name="B")
    assert b0.op == b1.op
    assert (b0.value_index, b1.value_index) == (0, 1)
    s = te.create_schedule(b0.op)
    text = str(tvm.lower(s, [a0, a1, b0, b1], simple_mode=True))
    assert "T.grid(m, n)" in text
    x, y = (np.random.rand(5, 7).astype("float32") for _ in range(2))
    one, two = np.zeros_like(x), np.zeros_like(x)
    tvm.build(s, [a0, a1, b0, b1], "llvm")(x, y, one, two)
    tvm.testing.assert_allclose(one, x + 2)
    tvm.testing.assert_allclose(two, y * 3)


def fcombine(x: Any, y: Any) -> Any:
    """Keep the pair with the larger second part, the first one of equals."""
    lhs = tvm.tir.Select((x[1] >= y[1]), x[0], y[0])
    rhs = tvm.tir.Select((x[1] >= y[1]), x[1], y[1])
    return lhs, rhs


def fidentity(t0: str, t1: str) -> Any:
    """No index, and the least value."""
    return tvm.tir.const(-1, t0), te.min_value(t1)


argmax = te.comm_reducer(fcombine, fidentity, name="argmax")


def test_argmax() -> None:
    """Index and value are reduced together."""
    m, n = te.var("m"), te.var("n")
    idx = te.placeholder((m, n), name="idx", dtype="int32")
    val = te.placeholder((m, n), name="val", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    t0, t1 = te.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    s = te.create_schedule(t0.op)
    values = np.random.permutation(60).reshape(4, 15).astype("int32")
    indices = np.tile(np.arange(15, dtype="int32"), (4, 1))
    one, two = np.zeros(4, "int32"), np.zeros(4, "int32")
    tvm.build(s, [idx, val, t0, t1], "llvm")(indices, values, one, two)
    assert one.tolist() == values.argmax(1).tolist()
    assert two.tolist() == values.max(1).tolist()


def test_argmax_factored() -> None:
    """rfactor of a tuple reduction gives both tensors, and the result stays."""
    n, m, factor = 3, 32, 4
    val = te.placeholder((n, m), name="val", dtype="float32")
    k = te.reduce_axis((0, m), "k")
    t0, t1 = te.compute((n,), lambda i: argmax((k.var, val[i, k]), axis=k), name="T")
    s = te.create_schedule(t0.op)
    ko, _ = s[t0].split(s[t0].op.reduce_axis[0], factor=factor)
    bf0, bf1 = s.rfactor(t0, ko)
    assert bf0.op is bf1.op and bf0.shape[0].value == m // factor
    s[bf0].parallel(s[bf0].op.axis[0])
    values = np.random.rand(n, m).astype("float32")
    one, two = np.zeros(n, "int32"), np.zeros(n, "float32")
    tvm.build(s, [val, t0, t1], "llvm")(values, one, two)
    assert one.tolist() == values.argmax(1).tolist()
    tvm.testing.assert_allclose(two, values.max(1))


def test_scheduling_a_tuple_stage() -> None:
    """A stage with two outputs is placed inside of a reader of one of them."""
    n = te.var("n")
    a0, a1 = te.placeholder((n,), name="A0"), te.placeholder((n,), name="A1")
    b0, b1 = te.compute((n,), lambda i: (a0[i] + 2, a1[i] * 3), name="B")
    c = te.compute((n,), lambda i: a0[i] + b0[i], name="C")
    s = te.create_schedule(c.op)
    s[b0].compute_at(s[c], c.op.axis[0])
    x, y = (np.random.rand(9).astype("float32") for _ in range(2))
    result = np.zeros_like(x)
    tvm.build(s, [a0, a1, c], "llvm")(x, y, result)
    tvm.testing.assert_allclose(result, x + x + 2)
    assert b1.op is b0.op
