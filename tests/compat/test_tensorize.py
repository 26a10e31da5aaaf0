"""Replacing loops by a micro-kernel, as a tutorial on tensorization shows."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
import tilewright.testing
from tilewright import te

N, M, L = 64, 16, 32


def product() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A times the transpose of B."""
    a = te.placeholder((N, L), name="A")
    b = te.placeholder((M, L), name="B")
    k = te.reduce_axis((0, L), name="k")
    return a, b, te.compute((N, M), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")


def gemv_body(ib: Any, aa: tvm.tir.Buffer, bb: tvm.tir.Buffer, cc: tvm.tir.Buffer, m: int, l: int) -> None:
    """cc += bb · aa, in plain loops over strided memory."""
    vector, matrix, out = ib.buffer_ptr(aa), ib.buffer_ptr(bb), ib.buffer_ptr(cc)
    with ib.for_range(0, m, "row") as row, ib.for_range(0, l, "col") as col:
        out[row] = out[row] + matrix[row, col] * vector[col]


def intrin_gemv(m: int, l: int) -> te.tensor_intrin.TensorIntrin:
    """A matrix-vector product of fixed size with a start and a continuation."""
    a = te.placeholder((l,), name="a")
    b = te.placeholder((m, l), name="b")
    k = te.reduce_axis((0, l), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
    cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def intrin_func(ins: list[tvm.tir.Buffer], outs: list[tvm.tir.Buffer]) -> Any:
        aa, bb = ins
        (cc,) = outs

        def reset() -> tvm.tir.Stmt:
            ib = tvm.tir.ir_builder.create()
            out = ib.buffer_ptr(cc)
            with ib.for_range(0, m, "row") as row:
                out[row] = 0.0
            return ib.get()

        def update() -> tvm.tir.Stmt:
            ib = tvm.tir.ir_builder.create()
            gemv_body(ib, aa, bb, cc, m, l)
            return ib.get()

        def body() -> tvm.tir.Stmt:
            ib = tvm.tir.ir_builder.create()
            out = ib.buffer_ptr(cc)
            with ib.for_range(0, m, "row") as row:
                out[row] = 0.0
            gemv_body(ib, aa, bb, cc, m, l)
            return ib.get()

        return body(), reset(), update()

    return te.decl_tensor_intrin(c.op, intrin_func, binds={a: ab, b: bb, c: cb})


def check(s: te.Schedule, arguments: list[te.Tensor]) -> None:
    """The compiled schedule gives the product."""
    func = tvm.build(s, arguments, target="llvm", name="gemv")
    a = np.random.uniform(size=(N, L)).astype("float32")
    b = np.random.uniform(size=(M, L)).astype("float32")
    c = tvm.nd.array(np.zeros((N, M), dtype="float32"))
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    tvm.testing.assert_allclose(c.numpy(), np.dot(a, b.T), rtol=1e-3)


def test_whole_reduction_inside() -> None:
    """Where the reduction is inside of the intrinsic, its body does it all."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    x, y = c.op.axis
    yo, yi = s[c].split(y, factor=16)
    s[c].reorder(x, yo, yi, s[c].op.reduce_axis[0])
    s[c].tensorize(yi, intrin_gemv(16, L))
    check(s, [a, b, c])


def test_reduction_around() -> None:
    """Where a loop of the reduction is outside, the intrinsic is reset first and updated then."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    x, y = c.op.axis
    (z,) = c.op.reduce_axis
    yo, yi = s[c].split(y, factor=16)
    zo, zi = s[c].split(z, factor=16)
    s[c].reorder(x, yo, zo, yi, zi)
    s[c].tensorize(yi, intrin_gemv(16, 16))
    check(s, [a, b, c])


def test_calling_an_outside_kernel() -> None:
    """The intrinsic may be a call of a C function on access pointers; the lowered text shows it."""
    a = te.placeholder((L,), name="a")
    b = te.placeholder((16, L), name="b")
    k = te.reduce_axis((0, L), name="k")
    c = te.compute((16,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
    cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def intrin_func(ins: list[tvm.tir.Buffer], outs: list[tvm.tir.Buffer]) -> tvm.tir.Stmt:
        ib = tvm.tir.ir_builder.create()
        aa, bb = ins
        cc = outs[0]
        ib.emit(
            tvm.tir.call_extern(
                "int32",
                "gemv_update",
                cc.access_ptr("w"),
                aa.access_ptr("r"),
                bb.access_ptr("r"),
                16,
                L,
                bb.strides[0],
            )
        )
        return ib.get()

    gemv = te.decl_tensor_intrin(c.op, intrin_func, binds={a: ab, b: bb, c: cb})
    x, y, z = product()
    s = te.create_schedule(z.op)
    i, j = z.op.axis
    _, ji = s[z].split(j, factor=16)
    s[z].tensorize(ji, gemv)
    text = str(tvm.lower(s, [x, y, z], simple_mode=True))
    assert "gemv_update" in text
    assert i.var.name == "i"
