"""Tensor expressions: vector add with a split, saved as an object and linked; extern packed functions; autodiff."""

import numpy as np

import tvm
import tvm.testing
from tvm import te
from tvm.contrib import cc, utils

n = te.var("n")
A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
s = te.create_schedule(C.op)
outer, inner = s[C].split(C.op.axis[0], factor=64)
s[C].parallel(outer)
s[C].vectorize(inner)
tgt = tvm.target.Target(target="llvm", host="llvm")
fadd = tvm.build(s, [A, B, C], tgt, name="myadd")
print(tvm.lower(s, [A, B, C], simple_mode=True))
dev = tvm.device(tgt.kind.name, 0)
a = tvm.nd.array(np.random.uniform(size=1000).astype(A.dtype), dev)
b = tvm.nd.array(np.random.uniform(size=1000).astype(B.dtype), dev)
c = tvm.nd.array(np.zeros(1000, dtype=C.dtype), dev)
fadd(a, b, c)
tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())

temp = utils.tempdir()
fadd.save(temp.relpath("myadd.o"))
cc.create_shared(temp.relpath("myadd.so"), [temp.relpath("myadd.o")])
assert sorted(temp.listdir()) == ["myadd.o", "myadd.so"]
fadd1 = tvm.runtime.load_module(temp.relpath("myadd.so"))
fadd1(a, b, c)
tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
fadd.export_library(temp.relpath("myadd_pack.so"))
fadd2 = tvm.runtime.load_module(temp.relpath("myadd_pack.so"))
fadd2(a, b, c)
tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


@tvm.register_func("tvm.contrib.my_tvm_addone")
def my_tvm_addone(x, y):
    print("my_tvm_addone signatures: %s, %s" % (type(x), type(y)))
    tvm.nd.array(x.numpy() + 1).copyto(y)


A = te.placeholder((n,), name="A")
B = te.extern(
    A.shape,
    [A],
    lambda ins, outs: tvm.tir.call_packed("tvm.contrib.my_tvm_addone", ins[0], outs[0]),
    name="C",
)
s = te.create_schedule(B.op)
f = tvm.build(s, [A, B], "llvm")
a = tvm.nd.array(np.random.uniform(size=(10,)).astype(A.dtype), dev)
b = tvm.nd.array(np.random.uniform(size=(10,)).astype(B.dtype), dev)
f(a, b)
tvm.testing.assert_allclose(b.numpy(), a.numpy() + 1, rtol=1e-5)

X = te.placeholder((3, 4), name="X")
W = te.placeholder((4, 2), name="W")
k = te.reduce_axis((0, 4), name="k")
Y = te.compute((3, 2), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k))
[dX, dW] = te.gradient(Y, [X, W])
assert tuple(int(d) for d in dX.shape) == (3, 2, 3, 4)
assert tuple(int(d) for d in dW.shape) == (3, 2, 4, 2)

# Loop-level debugging: source of each kind, and the target's own.
assert "fadd" in repr(fadd) or "Module" in repr(fadd)
fcuda = tvm.build(
    *(lambda A, C: (te.create_schedule(C.op), [A, C]))(
        *(lambda A: (A, te.compute((16,), lambda i: A[i] * 2)))(te.placeholder((16,)))
    ),
    "c",
)
assert "void" in fcuda.get_source() or "int" in fcuda.get_source()
