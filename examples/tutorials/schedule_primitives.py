"""Schedule primitives: the same computation under split, tile, fuse, reorder, bind, compute_at and compute_inline.

Run it:  python -m tilewright.as_tvm examples/tutorials/schedule_primitives.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te

m, n = te.var("m"), te.var("n")


def check(schedule, tensors, wanted):
    """Build the schedule and compare what it computes with NumPy."""
    function = tvm.build(schedule, tensors, "llvm")
    data = np.random.uniform(size=(30, 20)).astype("float32")
    out = tvm.nd.empty((30, 20), "float32", tvm.cpu(0))
    function(tvm.nd.array(data, tvm.cpu(0)), out)
    tvm.testing.assert_allclose(out.numpy(), wanted(data), rtol=1e-6)


A = te.placeholder((m, n), name="A")
B = te.compute((m, n), lambda i, j: A[i, j] * 2, name="B")

s = te.create_schedule(B.op)
xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], x_factor=10, y_factor=5)
print(tvm.lower(s, [A, B], simple_mode=True))
check(s, [A, B], lambda x: x * 2)

fused = s[B].fuse(xi, yi)
assert s[B].leaf_iter_vars[-1].var.name == fused.var.name
check(s, [A, B], lambda x: x * 2)

s = te.create_schedule(B.op)
xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], x_factor=10, y_factor=5)
s[B].reorder(xi, yo, xo, yi)
s[B].parallel(xi)
s[B].unroll(yi)
check(s, [A, B], lambda x: x * 2)

C = te.compute((m, n), lambda i, j: B[i, j] + 1, name="C")
for place in ("root", "inline", "at"):
    s = te.create_schedule(C.op)
    if place == "inline":
        s[B].compute_inline()
    elif place == "at":
        s[B].compute_at(s[C], C.op.axis[0])
        s[B].compute_root()
    text = str(tvm.lower(s, [A, C], simple_mode=True))
    assert ("allocate" in text.lower()) == (place != "inline")
    check(s, [A, C], lambda x: x * 2 + 1)

# A GPU's threads are bound the same way; without one the code can still be read.
s = te.create_schedule(B.op)
bx, tx = s[B].split(s[B].fuse(*B.op.axis), factor=64)
s[B].bind(bx, te.thread_axis("blockIdx.x"))
s[B].bind(tx, te.thread_axis("threadIdx.x"))
assert "threadIdx.x" in str(tvm.lower(s, [A, B], simple_mode=True))
