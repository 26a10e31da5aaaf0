"""Reductions: a sum over rows, rfactor, a two-dimensional convolution, a commutative reduction of one's own.

Run it:  python -m tilewright.as_tvm examples/tutorials/reductions.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te, topi

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, m), "k")
B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")

s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
BF = s.rfactor(B, ki)
print(tvm.lower(s, [A, B], simple_mode=True))
assert len(s[BF].op.reduce_axis) == 1 and s[B].op.body[0].axis[0].var.name == ki.var.name + ".v"

function = tvm.build(s, [A, B], "llvm")
data = np.random.uniform(size=(12, 128)).astype("float32")
out = tvm.nd.array(np.zeros(12, "float32"))
function(tvm.nd.array(data), out)
tvm.testing.assert_allclose(out.numpy(), data.sum(axis=1), rtol=1e-4)

Input, Filter = te.placeholder((8, 8), name="Input"), te.placeholder((3, 3), name="Filter")
di, dj = te.reduce_axis((0, 3), name="di"), te.reduce_axis((0, 3), name="dj")
Output = te.compute((6, 6), lambda i, j: te.sum(Input[i + di, j + dj] * Filter[di, dj], axis=[di, dj]))
convolve = tvm.build(te.create_schedule(Output.op), [Input, Filter, Output], "llvm")
image, kernel = (np.random.uniform(size=size).astype("float32") for size in ((8, 8), (3, 3)))
result = tvm.nd.empty((6, 6))
convolve(tvm.nd.array(image), tvm.nd.array(kernel), result)
windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
tvm.testing.assert_allclose(result.numpy(), np.einsum("ijab,ab->ij", windows, kernel), rtol=1e-5)

product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
P = te.compute((n,), lambda i: product(A[i, k], axis=k), name="P")
multiply = tvm.build(te.create_schedule(P.op), [A, P], "llvm")
multiply(tvm.nd.array(data[:, :4]), out)
tvm.testing.assert_allclose(out.numpy(), data[:, :4].prod(axis=1), rtol=1e-5)

# topi has what was written above, with schedules.
C = topi.sum(A, axis=1)
with tvm.target.Target("llvm"):
    ready = tvm.build(topi.x86.schedule_reduce([C]), [A, C], "llvm")
ready(tvm.nd.array(data), out)
tvm.testing.assert_allclose(out.numpy(), data.sum(axis=1), rtol=1e-4)
