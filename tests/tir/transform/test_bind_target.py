"""Every function learns its target."""

from tilewright import tir
from tilewright.ir.module import IRModule
from tilewright.target import Target
from tilewright.tir.transform.bind_target import BindTarget


def test_all_functions():
    """Each has the attribute afterwards, and an earlier target is replaced."""
    one = tir.PrimFunc([], tir.Evaluate(0))
    two = tir.PrimFunc([], tir.Evaluate(0), attrs={"target": Target("llvm")})
    target = Target("cuda", host="llvm")
    module = BindTarget(target)(IRModule({"one": one, "two": two}))
    assert [function.attrs["target"] for function in module.functions.values()] == [target, target]
