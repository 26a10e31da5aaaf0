"""Programs of blocks: from TVMScript and from tensor expressions, scheduled and built."""

import numpy as np

import tvm
from tvm import te
from tvm.ir.module import IRModule
from tvm.script import tir as T


@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A = T.match_buffer(a, (8,), dtype="float32")
        B = T.match_buffer(b, (8,), dtype="float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0


def check(module):
    """The function adds one to each of eight numbers."""
    a = tvm.nd.array(np.arange(8).astype("float32"))
    b = tvm.nd.array(np.zeros((8,)).astype("float32"))
    module(a, b)
    np.testing.assert_array_equal(b.numpy(), np.arange(8) + 1)


assert isinstance(MyModule, IRModule)
check(tvm.build(MyModule, target="llvm"))

A = te.placeholder((8,), dtype="float32", name="A")
B = te.compute((8,), lambda *i: A(*i) + 1.0, name="B")
from_te = IRModule({"main": te.create_prim_func([A, B])})
assert 'with T.block("B")' in from_te.script()
check(tvm.build(from_te, target="llvm"))

sch = tvm.tir.Schedule(MyModule)
(i,) = sch.get_loops(sch.get_block("B"))
i_0, i_1, i_2 = sch.split(i, factors=[2, 2, 2])
sch.reorder(i_0, i_2, i_1)
assert "T.grid(2, 2, 2)" in sch.mod.script()
check(tvm.build(sch.mod, target="llvm"))

sch = tvm.tir.Schedule(MyModule)
(i,) = sch.get_loops(sch.get_block("B"))
outer, inner = sch.split(i, factors=[None, 4])
sch.parallel(outer)
sch.vectorize(inner)
check(tvm.build(sch.mod, target="llvm"))

sch = tvm.tir.Schedule(MyModule)
(i,) = sch.get_loops(sch.get_block("B"))
outer, inner = sch.split(i, factors=[2, None])
sch.bind(outer, "blockIdx.x")
sch.bind(inner, "threadIdx.x")
source = tvm.build(sch.mod, target="cuda").imported_modules[0].get_source()
assert "blockIdx.x" in source and "threadIdx.x" in source
