"""Tensorize: the inner loops of a product are replaced by a micro-kernel, in C, with reset and update.

Run it:  python -m tilewright.as_tvm examples/tutorials/tensorize.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.topi.utils import get_const_tuple

N, M, L = 64, 32, 16
A, B = te.placeholder((N, L), name="A"), te.placeholder((M, L), name="B")
k = te.reduce_axis((0, L), name="k")
C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
factor = 16


def intrin_gemv(m, width):
    """The declaration of ``c[m] = b[m, width] @ a[width]``, and the statements that compute it."""
    a, b = te.placeholder((width,), name="a"), te.placeholder((m, width), name="b")
    r = te.reduce_axis((0, width), name="k")
    c = te.compute((m,), lambda i: te.sum(a[r] * b[i, r], axis=r), name="c")
    Ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    Bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
    Cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def intrin_func(ins, outs):
        aa, bb = ins
        (cc,) = outs

        def statements(reset, update):
            ib = tvm.tir.ir_builder.create()
            into, row, rows = ib.buffer_ptr(cc), ib.buffer_ptr(aa), ib.buffer_ptr(bb)
            if reset:
                with ib.for_range(0, m, "i") as i:
                    into[i] = 0.0
            if update:
                with ib.for_range(0, m, "i") as i, ib.for_range(0, width, "j") as j:
                    into[i] += row[j] * rows[i, j]
            return ib.get()

        return statements(True, True), statements(True, False), statements(False, True)

    return te.decl_tensor_intrin(c.op, intrin_func, binds={a: Ab, b: Bb, c: Cb})


s = te.create_schedule(C.op)
x, y = C.op.axis
yo, yi = s[C].split(y, factor=factor)
zo, zi = s[C].split(C.op.reduce_axis[0], factor=8)
s[C].reorder(x, yo, zo, yi, zi)
s[C].tensorize(yi, intrin_gemv(factor, 8))
print(tvm.lower(s, [A, B, C], simple_mode=True))
func = tvm.build(s, [A, B, C], target="llvm", name="gemv")
a, b = (np.random.uniform(size=get_const_tuple(t.shape)).astype(t.dtype) for t in (A, B))
c = tvm.nd.array(np.zeros(get_const_tuple(C.shape), dtype=C.dtype), tvm.cpu(0))
func(tvm.nd.array(a), tvm.nd.array(b), c)
tvm.testing.assert_allclose(c.numpy(), a @ b.T, rtol=1e-3)
