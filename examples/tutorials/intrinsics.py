"""Intrinsics: math functions, a call by name, an operator of one's own with a lowering rule.

Run it:  python -m tilewright.as_tvm examples/tutorials/intrinsics.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.ir import register_intrin_lowering, register_op_attr

n = te.var("n")
A = te.placeholder((n,), name="A")
data = np.random.uniform(0.1, 2, size=50).astype("float32")
a, b = tvm.nd.array(data), tvm.nd.empty((50,))


def run(computed):
    """The values of a tensor that is computed from A."""
    s = te.create_schedule(computed.op)
    _, inner = s[computed].split(computed.op.axis[0], factor=8)
    s[computed].vectorize(inner)
    tvm.build(s, [A, computed], "llvm", name="computed")(a, b)
    return b.numpy()


tvm.testing.assert_allclose(run(te.compute(A.shape, lambda i: te.exp(A[i]))), np.exp(data), rtol=1e-5)
by_name = te.compute(A.shape, lambda i: tvm.tir.call_pure_extern("float32", "expf", A[i]))
tvm.testing.assert_allclose(run(by_name), np.exp(data), rtol=1e-5)
bits = te.popcount(tvm.tir.const(7, "int32"))
several = te.compute(A.shape, lambda i: te.tanh(te.log(A[i])) * te.sqrt(A[i]) + bits)
tvm.testing.assert_allclose(run(several), np.tanh(np.log(data)) * np.sqrt(data) + 3, rtol=1e-5)


def mylog(x):
    """An operator of one's own."""
    return tvm.tir.call_intrin(x.dtype, "tir.mylog", x)


def my_log_rule(op):
    """What it becomes in a program for this target."""
    if op.dtype == "float32":
        return tvm.tir.call_pure_extern("float32", "logf", op.args[0])
    return op


register_op_attr("tir.mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
register_intrin_lowering("tir.mylog", target="default", f=my_log_rule, level=99)
own = te.compute(A.shape, lambda i: mylog(A[i]), name="own")
assert "mylog" in str(tvm.lower(te.create_schedule(own.op), [A, own]))
tvm.testing.assert_allclose(run(own), np.log(data), rtol=1e-5, atol=1e-6)
