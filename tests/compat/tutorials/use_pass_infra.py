"""Passes by hand, in sequence, with conditions, and of one's own."""

import numpy as np

import tvm
from tvm import relay, te


def example():
    shape = (1, 64, 54, 54)
    c = relay.const(np.empty(shape).astype("float32"))
    weight = relay.var("weight", shape=(64, 64, 3, 3))
    x = relay.var("x", relay.TensorType((1, 64, 56, 56), "float32"))
    conv = relay.nn.conv2d(x, weight)
    y = relay.add(c, c)
    y = relay.multiply(y, relay.const(2, "float32"))
    y = relay.add(conv, y)
    z = relay.add(y, c)
    z1 = relay.add(y, c)
    z2 = relay.add(z, z1)
    return relay.Function([x, weight], z2)


mod = tvm.IRModule.from_expr(example())
fold_const = relay.transform.FoldConstant()
mod = fold_const(mod)
assert "multiply" not in mod.astext(show_meta_data=False)
mod = relay.transform.EliminateCommonSubexpr()(mod)
mod = relay.transform.FuseOps(fuse_opt_level=0)(mod)
# The convolution and three sums, each a function of its own at this level.
assert mod.astext(show_meta_data=False).count("Primitive=1") == 4

mod = tvm.IRModule.from_expr(example())
seq = tvm.transform.Sequential(
    [
        relay.transform.FoldConstant(),
        relay.transform.EliminateCommonSubexpr(),
        relay.transform.FuseOps(fuse_opt_level=2),
    ]
)
mod1 = seq(mod)
with tvm.transform.PassContext(opt_level=3):
    mod2 = seq(mod)
# EliminateCommonSubexpr belongs to level 3.
assert mod1.astext(show_meta_data=False).count("add(") == 4
assert mod2.astext(show_meta_data=False).count("add(") == 3
with tvm.transform.PassContext(opt_level=3, disabled_pass=["EliminateCommonSubexpr"]):
    mod3 = seq(mod)
assert mod3.astext(show_meta_data=False).count("add(") == 4
with tvm.target.Target("llvm"):
    mod4 = relay.transform.AlterOpLayout()(seq(mod))
# What is fused already keeps its layout.
assert mod4.astext(show_meta_data=False).count("nn.conv2d(") == 1


@relay.transform.function_pass(opt_level=1)
class CustomPipeline:
    """Replaces each constant by a multiple of it."""

    def __init__(self, multiplier):
        self.multiplier = multiplier

    def transform_function(self, func, mod, ctx):
        obj = self

        class ReplaceConstant(tvm.relay.ExprMutator):
            def visit_constant(self, c):
                return relay.multiply(obj.multiplier, c)

        return ReplaceConstant().visit(func)


custom_pass = CustomPipeline(multiplier=relay.const(3, "float32"))
assert custom_pass.info.name == "CustomPipeline"
mod3 = custom_pass(tvm.IRModule.from_expr(example()))
# One product in the program, and one for each of its two constants: a shared constant is replaced once.
assert mod3.astext(show_meta_data=False).count("multiply(") == 3


@tvm.transform.module_pass(opt_level=2)
def add_function(module, ctx):
    x = relay.var("x", shape=(2,))
    module.update(tvm.IRModule({"extra": relay.Function([x], x + x)}))
    return module


assert "extra" in add_function(tvm.IRModule.from_expr(example()))
assert isinstance(add_function, tvm.transform.ModulePass)


@tvm.tir.transform.prim_func_pass(opt_level=1)
def keep(func, mod, ctx):
    return func


A = te.placeholder((4,))
lowered = tvm.lower(te.create_schedule(te.compute((4,), lambda i: A[i]).op), [A])
assert tvm.ir.structural_equal(keep(lowered), lowered)

seq = tvm.transform.Sequential(
    [relay.transform.FoldConstant(), tvm.transform.PrintIR(), relay.transform.EliminateCommonSubexpr()]
)
with tvm.transform.PassContext(opt_level=3):
    seq(tvm.IRModule.from_expr(example()))
