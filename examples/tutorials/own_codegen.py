"""A code generator of one's own: what it takes is annotated and parted, and it returns a module for each part.

Run it:  python -m tilewright.as_tvm examples/tutorials/own_codegen.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import relay, te, topi
from tvm.relay import transform
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.relay.expr_functor import ExprFunctor
from tvm.relay.op.contrib.register import get_pattern_table, register_pattern_table

OPERATORS = {"add": topi.add, "multiply": topi.multiply, "subtract": topi.subtract}
compiled = []


@register_pattern_table("tutorial")
def pattern_table():
    """What it takes as one piece: ``a * b - c``."""
    return [("tutorial.mul_sub", is_op("subtract")(is_op("multiply")(wildcard(), wildcard()), wildcard()))]


@tvm.ir.register_op_attr("add", "target.tutorial")
def takes_add(expr):
    """And single additions of float32."""
    return expr.checked_type.dtype == "float32"


class Loops(ExprFunctor):
    """From the calls of a part to tensor expressions; ``tensors`` has those of variables."""

    def __init__(self, tensors):
        super().__init__()
        self.tensors = tensors

    def visit_var(self, var):
        return self.tensors[var]

    def visit_call(self, call):
        args = [self.visit(arg) for arg in call.args]
        if isinstance(call.op, relay.Function):
            return Loops(dict(zip(call.op.params, args, strict=True))).visit(call.op.body)
        return OPERATORS[call.op.name](*args)


@tvm.register_func("relay.ext.tutorial")
def compile_part(function):
    """A module with a function of the name that the graph calls."""
    compiled.append(str(function.attrs["global_symbol"]))
    inputs = {p: te.placeholder(p.checked_type.shape, name=p.name_hint) for p in function.params}
    output = Loops(inputs).visit(function.body)
    s = te.create_schedule(output.op)
    te.schedule.AutoInlineInjective(s)
    return tvm.build(s, [*inputs.values(), output], "llvm", name=compiled[-1])


x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.exp(relay.add(x, y) * y - x)))
passes = [transform.MergeComposite(get_pattern_table("tutorial")), transform.AnnotateTarget("tutorial")]
passes += [transform.MergeCompilerRegions(), transform.PartitionGraph()]
mod = tvm.transform.Sequential([transform.InferType(), *passes])(mod)
a, b = np.random.rand(4).astype("float32"), np.random.rand(4).astype("float32")
result = relay.create_executor("graph", mod=mod).evaluate()(a, b)
tvm.testing.assert_allclose(result.numpy(), np.exp((a + b) * b - a), rtol=1e-5)
assert len(compiled) == 1 and compiled[0].startswith("tvmgen_default_tutorial")
