"""Extern calls: a library's product inside a schedule, a Python function, and loops by the IR builder.

Run it:  python -m tilewright.as_tvm examples/tutorials/extern_calls.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.contrib import cblas

n, depth, m = 32, 16, 24
bias = te.var("bias", dtype="float32")
A, B = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")


def product(ins, outs):
    """The statement that computes the tensor: a call of a function by its name."""
    return tvm.tir.call_packed("tutorial.matmul", ins[0], ins[1], outs[0], False, False)


@tvm.register_func("tutorial.matmul")
def matmul(a, b, out, transpose_a, transpose_b):
    """What the program calls; a BLAS would be registered the same way."""
    left = a.numpy().T if transpose_a else a.numpy()
    right = b.numpy().T if transpose_b else b.numpy()
    tvm.nd.array(left @ right).copyto(out)


C = te.extern((n, m), [A, B], product, name="C")
D = te.compute(C.shape, lambda i, j: C[i, j] + bias, name="D")
f = tvm.build(te.create_schedule(D.op), [A, B, D, bias], "llvm")
a, b = (np.random.uniform(size=size).astype("float32") for size in ((n, depth), (depth, m)))
d = tvm.nd.array(np.zeros((n, m), "float32"))
f(tvm.nd.array(a), tvm.nd.array(b), d, 10.0)
tvm.testing.assert_allclose(d.numpy(), a @ b + 10, rtol=1e-4)

if tvm.get_global_func("tvm.contrib.cblas.matmul", allow_missing=True):
    E = cblas.matmul(A, B)
    g = tvm.build(te.create_schedule(E.op), [A, B, E], "llvm")
    g(tvm.nd.array(a), tvm.nd.array(b), d)
    tvm.testing.assert_allclose(d.numpy(), a @ b, rtol=1e-4)


def running_maximum(ins, outs):
    """Loops and stores, written one by one."""
    ib = tvm.tir.ir_builder.create()
    source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, n, name="i", kind="parallel") as i:
        target[i * depth] = source[i * depth]
        with ib.for_range(1, depth, name="j") as j:
            here = i * depth + j
            target[here] = tvm.te.max(target[here - 1], source[here])
    return ib.get()


M = te.extern((n, depth), [A], running_maximum, dtype="float32", name="M")
h = tvm.build(te.create_schedule(M.op), [A, M], "llvm")
out = tvm.nd.empty((n, depth))
h(tvm.nd.array(a), out)
tvm.testing.assert_allclose(out.numpy(), np.maximum.accumulate(a, axis=1))
