"""Passes of one's own over Relay and over loops, in a pipeline that an instrument watches.

Run it:  python -m tilewright.as_tvm examples/tutorials/own_passes.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import relay, te
from tvm.ir.instrument import PassTimingInstrument, pass_instrument
from tvm.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard


@relay.transform.function_pass(opt_level=1, name="DoubleConstants")
class DoubleConstants:
    """Every constant, twice as large."""

    def transform_function(self, func, mod, ctx):
        class Doubled(relay.ExprMutator):
            def visit_constant(self, c):
                return relay.multiply(relay.const(2.0), c)

        return Doubled().visit(func)


class AddOfSame(DFPatternCallback):
    """``x + x`` is ``x * 2``."""

    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("add")(self.x, self.x)

    def callback(self, pre, post, node_map):
        return relay.multiply(node_map[self.x][0], relay.const(2.0))


@pass_instrument
class Names:
    """The names of the passes that ran."""

    def __init__(self):
        self.names = []

    def run_before_pass(self, mod, info):
        self.names.append(info.name)


x = relay.var("x", shape=(4,))
mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, x) + relay.const(np.ones(4, "float32"))))
mod["main"] = rewrite(AddOfSame(), mod["main"])
names, timing = Names(), PassTimingInstrument()
with tvm.transform.PassContext(opt_level=3, instruments=[names, timing]):
    mod = tvm.transform.Sequential([DoubleConstants(), relay.transform.FoldConstant()])(mod)
    print(timing.render())
assert names.names[:3] == ["sequential", "DoubleConstants", "FoldConstant"]
result = relay.create_executor("graph", mod=mod).evaluate()(np.arange(4, dtype="float32"))
tvm.testing.assert_allclose(result.numpy(), np.arange(4) * 4 + 2)


@tvm.tir.transform.prim_func_pass(opt_level=0)
def unroll_short_loops(f, mod, ctx):
    """Loops of four steps or fewer are written out."""

    def short(op):
        if isinstance(op, tvm.tir.For) and isinstance(op.extent, tvm.tir.IntImm) and op.extent.value <= 4:
            return tvm.tir.For(op.loop_var, op.min, op.extent, tvm.tir.ForKind.UNROLLED, op.body)
        return None

    return f.with_body(tvm.tir.stmt_functor.ir_transform(f.body, None, short, ["tir.For"]))


A = te.placeholder((8, 4), name="A")
B = te.compute((8, 4), lambda i, j: A[i, j] + 1, name="B")


def count_loops():
    """The loops that are left of the schedule."""
    found = []
    body = tvm.lower(te.create_schedule(B.op), [A, B])["main"].body
    tvm.tir.stmt_functor.post_order_visit(body, lambda node: found.append(isinstance(node, tvm.tir.For)))
    return sum(found)


assert count_loops() == 2
with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, unroll_short_loops)]}):
    assert count_loops() == 1
