"""Parts of a graph for another code generator: by annotation, by composite patterns, by hand."""

import numpy as np

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.relay.expr_functor import ExprMutator
from tvm.relay.op.annotation import compiler_begin, compiler_end
from tvm.relay.op.contrib.register import get_pattern_table, register_pattern_table


@register_pattern_table("toy")
def pattern_table():
    conv_relu = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
    return [("toy.conv2d_relu", conv_relu)]


x = relay.var("x", shape=(1, 4, 8, 8))
w = relay.var("w", shape=(4, 4, 3, 3))
out = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4, padding=(1, 1)))
mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.exp(out)))
mod = transform.InferType()(mod)
merged = transform.MergeComposite(get_pattern_table("toy"))(mod)
assert 'Composite="toy.conv2d_relu"' in merged.astext(show_meta_data=False)


@tvm.ir.register_op_attr("toy.conv2d_relu", "target.toy")
def supported(expr):
    return True


annotated = transform.AnnotateTarget("toy")(merged)
regions = transform.MergeCompilerRegions()(annotated)
partitioned = transform.PartitionGraph()(regions)
names = [gv.name_hint for gv in partitioned.get_global_vars()]
assert len(names) == 2 and any("toy" in name for name in names), names
outer = partitioned[next(name for name in names if name != "main")]
assert outer.attrs["Compiler"] == "toy" and outer.attrs["Primitive"] == 1
assert outer.attrs["global_symbol"]


class WholeGraphAnnotator(ExprMutator):
    """The last call and its inputs are one region."""

    def __init__(self, compiler):
        super().__init__()
        self.compiler = compiler
        self.last_call = True

    def visit_call(self, call):
        curr_last, self.last_call = self.last_call, False
        params = []
        for arg in call.args:
            param = super().visit(arg)
            if isinstance(param, relay.expr.Var):
                param = compiler_begin(param, self.compiler)
            params.append(param)
        new_call = relay.Call(call.op, params, call.attrs)
        return compiler_end(new_call, self.compiler) if curr_last else new_call


a, b = relay.var("a", shape=(10, 10)), relay.var("b", shape=(10, 10))
func = relay.Function([a, b], WholeGraphAnnotator("ccompiler").visit(relay.subtract(relay.add(a, b), b)))
mod = transform.PartitionGraph()(transform.InferType()(tvm.IRModule.from_expr(func)))
p, q = np.random.rand(10, 10).astype("float32"), np.random.rand(10, 10).astype("float32")
with tvm.transform.PassContext(opt_level=3, disabled_pass=["AlterOpLayout"]):
    lib = relay.build(mod, target="llvm")
from tvm.contrib import graph_executor, utils  # noqa: E402

temp = utils.tempdir()
lib.export_library(temp.relpath("lib.so"))
loaded = tvm.runtime.load_module(temp.relpath("lib.so"))
executor = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
executor.run(a=p, b=q)
np.testing.assert_allclose(executor.get_output(0).numpy(), p, rtol=1e-5, atol=1e-6)


# A code generator in Python: functions of this compiler are lowered by it.
@tvm.register_func("relay.ext.toy_python", override=True)
def toy_compiler(ref):
    raise ValueError("the toy compiler cannot")
