"""Math functions and how a target lowers them, as a tutorial on intrinsics shows."""

from __future__ import annotations

import numpy as np

import tilewright as tvm
import tilewright.testing
from tilewright import te
from tilewright.ir import register_intrin_lowering, register_op_attr


def bound_schedule(b: te.Tensor) -> te.Schedule:
    """One thread an element, in blocks of 64."""
    s = te.create_schedule(b.op)
    bx, tx = s[b].split(b.op.axis[0], factor=64)
    s[b].bind(bx, te.thread_axis("blockIdx.x"))
    s[b].bind(tx, te.thread_axis("threadIdx.x"))
    return s


def test_direct_call_of_a_device_function() -> None:
    """``call_pure_extern`` puts the name as it stands into the device's source."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda i: tvm.tir.call_pure_extern("float32", "__expf", a[i]), name="B")
    f = tvm.build(bound_schedule(b), [a, b], "cuda", name="myexp")
    assert "__expf(" in f.imported_modules[0].get_source()


def test_unified_call() -> None:
    """``te.exp`` becomes each target's own function."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda i: te.exp(a[i]), name="B")
    assert (
        "expf(" in tvm.build(bound_schedule(b), [a, b], "cuda", name="myexp").imported_modules[0].get_source()
    )
    values, result = np.linspace(-3, 3, 17, dtype="float32"), np.zeros(17, "float32")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(values, result)
    tvm.testing.assert_allclose(result, np.exp(values), rtol=1e-6)


def test_own_lowering_rule() -> None:
    """A rule registered for a target takes the place of the usual one."""

    def my_cuda_math_rule(op: tvm.tir.Call) -> tvm.tir.PrimExpr:
        assert isinstance(op, tvm.tir.Call)
        name = op.op.name
        assert name.startswith("tir.")
        dispatch_name = name[4:]
        if op.dtype == "float32":
            return tvm.tir.call_pure_extern("float32", f"{dispatch_name}f", op.args[0])
        if op.dtype == "float64":
            return tvm.tir.call_pure_extern("float32", dispatch_name, op.args[0])
        return op

    register_intrin_lowering("tir.log2", target="cuda", f=my_cuda_math_rule, level=99)
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda i: te.log2(a[i]), name="B")
    assert "log2f(" in tvm.build(bound_schedule(b), [a, b], "cuda").imported_modules[0].get_source()


def test_own_intrinsic() -> None:
    """An operator of one's own, with a lowering for each target it is used on."""

    def mylog(x: tvm.tir.PrimExpr) -> tvm.tir.PrimExpr:
        """The natural logarithm, as an operator that no target knows."""
        return tvm.tir.call_intrin(x.dtype, "tir.tests_compat_mylog", x)

    def my_cuda_mylog_rule(op: tvm.tir.Call) -> tvm.tir.PrimExpr:
        """The single- or double-precision function of CUDA."""
        if op.dtype == "float32":
            return tvm.tir.call_pure_extern("float32", "logf", op.args[0])
        if op.dtype == "float64":
            return tvm.tir.call_pure_extern("float64", "log", op.args[0])
        return op

    register_op_attr("tir.tests_compat_mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
    register_intrin_lowering("tir.tests_compat_mylog", target="cuda", f=my_cuda_mylog_rule, level=99)
    register_intrin_lowering(
        "tir.tests_compat_mylog", target="llvm", f=lambda op: tvm.tir.log(op.args[0]), level=99
    )
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda i: mylog(a[i]), name="B")
    assert (
        "logf(" in tvm.build(bound_schedule(b), [a, b], "cuda", name="mylog").imported_modules[0].get_source()
    )
    values, result = np.linspace(0.5, 3, 17, dtype="float32"), np.zeros(17, "float32")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(values, result)
    tvm.testing.assert_allclose(result, np.log(values), rtol=1e-5, atol=1e-6)
