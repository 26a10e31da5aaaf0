"""TensorIR in a few minutes: a function in TVMScript, blocks, and a schedule that rewrites it step by step.

Run it:  python -m tilewright.as_tvm examples/tutorials/tensorir_blitz.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.ir.module import IRModule
from tvm.script import tir as T


@tvm.script.ir_module
class MyModule:
    """``B = A + 1``."""

    @T.prim_func
    def main(a: T.handle, b: T.handle):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A = T.match_buffer(a, (8,), dtype="float32")
        B = T.match_buffer(b, (8,), dtype="float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0


print(MyModule.script())
mod = tvm.build(MyModule, target="llvm")
a, b = tvm.nd.array(np.arange(8).astype("float32")), tvm.nd.array(np.zeros((8,)).astype("float32"))
mod(a, b)
tvm.testing.assert_allclose(b.numpy(), a.numpy() + 1)

sch = tvm.tir.Schedule(MyModule)
block_b = sch.get_block("B")
(i,) = sch.get_loops(block_b)
i_0, i_1, i_2 = sch.split(i, factors=[2, 2, 2])
sch.reorder(i_0, i_2, i_1)
sch.parallel(i_0)
tvm.build(sch.mod, target="llvm")(a, b)
tvm.testing.assert_allclose(b.numpy(), a.numpy() + 1)

X, Y = te.placeholder((32, 16), name="X"), te.placeholder((16, 32), name="Y")
k = te.reduce_axis((0, 16), name="k")
Z = te.compute((32, 32), lambda i, j: te.sum(X[i, k] * Y[k, j], axis=k), name="Z")
R = te.compute((32, 32), lambda i, j: te.max(Z[i, j], tvm.tir.const(4.0, "float32")), name="R")
sch = tvm.tir.Schedule(IRModule({"main": te.create_prim_func([X, Y, R])}))
block = sch.get_block("Z")
i, j, k = sch.get_loops(block)
i0, i1 = sch.split(i, factors=[None, 8])
j0, j1 = sch.split(j, factors=[None, 8])
k0, k1 = sch.split(k, factors=[None, 4])
sch.reorder(i0, j0, k0, i1, k1, j1)
sch.vectorize(j1)
sch.reverse_compute_at(sch.get_block("R"), j0)
sch.decompose_reduction(block, k0)
print(sch.trace)
x, y = (np.random.rand(*size).astype("float32") for size in ((32, 16), (16, 32)))
out = tvm.nd.array(np.zeros((32, 32), "float32"))
tvm.build(sch.mod, target="llvm")(tvm.nd.array(x), tvm.nd.array(y), out)
tvm.testing.assert_allclose(out.numpy(), np.maximum(x @ y, 4), rtol=1e-4)
