"""Calling outside functions from tensor expressions, as a tutorial on them shows."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
import tilewright.testing
from tilewright import te


@tvm.register_func("tests.compat.tvm.contrib.my_tvm_addone")
def my_tvm_addone(x: tvm.nd.NDArray, y: tvm.nd.NDArray) -> None:
    """Adds one, in NumPy."""
    tvm.nd.array(x.numpy() + 1).copyto(y)


def test_python_function_in_the_middle() -> None:
    """A Python function is called in the middle of compiled code, and what it gives is used on."""
    n = 32
    a = te.placeholder((n,), name="A")
    b = te.extern(
        a.shape,
        [a],
        lambda ins, outs: tvm.tir.call_packed("tests.compat.tvm.contrib.my_tvm_addone", ins[0], outs[0]),
        name="C",
    )
    s = te.create_schedule(b.op)
    f = tvm.build(s, [a, b], "llvm")
    x = tvm.nd.array(np.random.uniform(size=(n,)).astype(a.dtype))
    y = tvm.nd.array(np.random.uniform(size=(n,)).astype(b.dtype))
    f(x, y)
    tvm.testing.assert_allclose(y.numpy(), x.numpy() + 1)


def test_library_product_then_bias() -> None:
    """A product from a library (here a registered function), then a bias by tensor expression."""

    def matmul(x: tvm.nd.NDArray, y: tvm.nd.NDArray, out: tvm.nd.NDArray, transa: bool, transb: bool) -> None:
        left = x.numpy().T if transa else x.numpy()
        right = y.numpy().T if transb else y.numpy()
        out.copyfrom(left @ right)

    tvm.register_func("tests.compat.matmul", matmul, override=True)
    n, l, m = 24, 13, 18
    bias = te.var("bias", dtype="float32")
    a = te.placeholder((n, l), name="A")
    b = te.placeholder((l, m), name="B")
    c = te.extern(
        (n, m),
        [a, b],
        lambda ins, outs: tvm.tir.call_packed("tests.compat.matmul", ins[0], ins[1], outs[0], False, False),
        name="C",
    )
    d = te.compute(c.shape, lambda i, j: c[i, j] + bias, name="D")
    s = te.create_schedule(d.op)
    f = tvm.build(s, [a, b, d, bias], "llvm")
    x = tvm.nd.array(np.random.uniform(size=(n, l)).astype(a.dtype))
    y = tvm.nd.array(np.random.uniform(size=(l, m)).astype(b.dtype))
    z = tvm.nd.array(np.zeros((n, m), dtype=d.dtype))
    f(x, y, z, 10.0)
    tvm.testing.assert_allclose(z.numpy(), np.dot(x.numpy(), y.numpy()) + 10, rtol=1e-5)


def test_a_function_that_nobody_registered() -> None:
    """The error names the function."""
    a = te.placeholder((4,), name="A")
    b = te.extern((4,), [a], lambda ins, outs: tvm.tir.call_packed("tests.compat.absent", ins[0], outs[0]))
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    with pytest.raises(tvm.TVMError, match=r"tests\.compat\.absent"):
        f(np.zeros(4, "float32"), np.zeros(4, "float32"))


def test_call_extern_of_the_c_library() -> None:
    """A C function is called for each element."""
    a = te.placeholder((6,), name="A", dtype="float64")
    b = te.compute((6,), lambda i: tvm.tir.call_extern("float64", "cbrt", a[i]), name="B")
    values, result = np.arange(6.0), np.zeros(6)
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(values, result)
    tvm.testing.assert_allclose(result, np.cbrt(values))


def test_ir_builder_body() -> None:
    """The body of an extern may be loops written with the builder."""
    nn = 1024
    n = tvm.convert(nn)
    a = te.placeholder((n,), name="A")

    def extern_generator(ins: list[tvm.tir.Buffer], outs: list[tvm.tir.Buffer]) -> tvm.tir.Stmt:
        ib = tvm.tir.ir_builder.create()
        dout = ib.buffer_ptr(outs[0])
        din = ib.buffer_ptr(ins[0])
        with ib.for_range(0, (n + 1) // 2) as i:
            dout[i * 2] = din[i * 2] + 1.0
            dout[i * 2 + 1] = din[i * 2 + 1] + 2.0
        return ib.get()

    c = te.extern(a.shape, [a], extern_generator, name="C", dtype=a.dtype)
    s = te.create_schedule(c.op)
    f = tvm.build(s, [a, c], "llvm")
    x = tvm.nd.array(np.random.uniform(size=nn).astype(a.dtype))
    y = tvm.nd.array(np.zeros(nn, dtype=c.dtype))
    f(x, y)
    expected = x.numpy().copy()
    expected[::2] += 1
    expected[1::2] += 2
    tvm.testing.assert_allclose(y.numpy(), expected)
