"""A graph from nothing: expressions, types, text, folding, binding of weights, and two executors.

Run it:  python -m tilewright.as_tvm examples/tutorials/build_a_graph.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor

x = relay.var("x", shape=(1, 3, 8, 8), dtype="float32")
w, b = relay.var("w", shape=(4, 3, 3, 3)), relay.var("b", shape=(4,))
y = relay.nn.conv2d(x, w, padding=(1, 1), channels=4, kernel_size=(3, 3))
y = relay.nn.relu(relay.nn.bias_add(y, b))
y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
scale = relay.multiply(relay.const(2.0), relay.const(0.5))
function = relay.Function(relay.analysis.free_vars(y * scale), y * scale)
mod = tvm.IRModule.from_expr(function)
mod = relay.transform.InferType()(mod)
assert mod["main"].ret_type == relay.TensorType((1, 4), "float32")
assert relay.analysis.count_layers(mod["main"], valid_ops=["nn.conv2d"]) == 1

parsed = tvm.parser.fromtext(mod.astext())
assert tvm.ir.structural_equal(parsed, mod)

rng = np.random.default_rng(0)
params = {"w": rng.random((4, 3, 3, 3), "float32"), "b": rng.random(4, "float32")}
params = {name: tvm.nd.array(value) for name, value in params.items()}
mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
with tvm.transform.PassContext(opt_level=3):
    folded = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.FoldConstant()])(mod)
    lib = relay.build(folded, target="llvm")
assert len(folded["main"].params) == 1

data = rng.random((1, 3, 8, 8), "float32")
module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
module.set_input("x", data)
module.run()
found = module.get_output(0).numpy()
again = relay.create_executor("vm", mod=mod, device=tvm.cpu(0), target="llvm").evaluate()(data)
tvm.testing.assert_allclose(found, again.numpy(), rtol=1e-5)


class CountCalls(relay.ExprVisitor):
    """How often each operator is called."""

    def __init__(self):
        super().__init__()
        self.counts = {}

    def visit_call(self, call):
        self.counts[call.op.name] = self.counts.get(call.op.name, 0) + 1
        super().visit_call(call)


counter = CountCalls()
counter.visit(folded["main"])
assert counter.counts["nn.conv2d"] == 1 and "multiply" in counter.counts
