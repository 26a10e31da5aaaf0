"""A product on a CPU, step by step: blocking, vectors, another loop order, a packed operand, a write cache, threads.

Run it:  python -m tilewright.as_tvm examples/tutorials/gemm_step_by_step.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te

size, block, dtype = 128, 32, "float32"
dev = tvm.device("llvm", 0)
left, right = (tvm.nd.array(np.random.rand(size, size).astype(dtype), dev) for _ in range(2))
answer = left.numpy() @ right.numpy()

k = te.reduce_axis((0, size), "k")
A, B = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
C = te.compute((size, size), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
packed = te.compute((size // block, size, block), lambda bn, k, n: B[k, bn * block + n], name="packedB")
D = te.compute(
    (size, size),
    lambda m, n: te.sum(A[m, k] * packed[n // block, k, tvm.tir.indexmod(n, block)], axis=k),
    name="D",
)


def measure(name, s, result):
    """Check a schedule and say how long it takes."""
    func = tvm.build(s, [A, B, result], "llvm", name="mmult")
    c = tvm.nd.array(np.zeros((size, size), dtype=dtype), dev)
    func(left, right, c)
    tvm.testing.assert_allclose(c.numpy(), answer, rtol=1e-4)
    evaluator = func.time_evaluator(func.entry_name, dev, number=3)
    print(f"{name:16} {evaluator(left, right, c).mean * 1e6:9.1f} us")


def blocked(s, stage):
    """The loops of a stage in blocks."""
    mo, no, mi, ni = s[stage].tile(*s[stage].op.axis, block, block)
    ko, ki = s[stage].split(s[stage].op.reduce_axis[0], factor=4)
    return mo, no, ko, ki, mi, ni


measure("as it is", te.create_schedule(C.op), C)
s = te.create_schedule(C.op)
mo, no, ko, ki, mi, ni = blocked(s, C)
s[C].reorder(mo, no, ko, ki, mi, ni)
measure("blocks", s, C)
s[C].vectorize(ni)
measure("vectors", s, C)
s[C].reorder(mo, no, ko, mi, ki, ni)
measure("loop order", s, C)

s = te.create_schedule(D.op)
CC = s.cache_write(D, "global")
mo, no, mi, ni = s[D].tile(D.op.axis[0], D.op.axis[1], block, block)
s[CC].compute_at(s[D], no)
mc, nc = s[CC].op.axis
ko, ki = s[CC].split(CC.op.reduce_axis[0], factor=4)
s[CC].reorder(ko, mc, ki, nc)
s[CC].vectorize(nc)
s[CC].unroll(ki)
s[D].parallel(mo)
bigN, _, littleN = s[packed].op.axis
s[packed].vectorize(littleN)
s[packed].parallel(bigN)
measure("all of it", s, D)
