"""A walk through the layers: one small program, from its expression to its machine code, and again as a model.

Run it:  python docs/tour.py

Each section shows the program at one layer and checks that it still computes the same.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

import tilewright as tvm
from tilewright import relay, te
from tilewright.contrib import graph_executor
from tilewright.relay.pipeline import prepare_passes
from tilewright.te.schedule import infer_bound, schedule_ops, to_prim_func
from tilewright.tir.interpreter import interpret
from tilewright.tir.pipeline import lowering_passes


def heading(text: str) -> None:
    """A line between two stops."""
    print(f"\n=== {text}\n")


# ---------------------------------------------------------------------------------------------------------------------
heading("1. A tensor expression says what to compute (te)")

n = te.var("n")
A = te.placeholder((n, 64), name="A")
k = te.reduce_axis((0, 64), name="k")
total = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="total")
B = te.compute((n, 64), lambda i, j: A[i, j] / total[i], name="B")
print(B, "is computed from", B.op.input_tensors)
print("its body:", B.op.body[0])

values = np.random.default_rng(0).uniform(1, 2, (10, 64)).astype("float32")
expected = values / values.sum(1, keepdims=True)


def check(result: np.ndarray) -> None:
    """The result is what NumPy gives."""
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    print("agrees with NumPy")


# ---------------------------------------------------------------------------------------------------------------------
heading("2. A schedule says how (te.schedule); it is a list of steps that prints and replays")

s = te.create_schedule(B.op)
_, lane = s[total].split(k, factor=16)
partial = s.rfactor(total, lane, factor_axis=1)
s[partial].reorder(s[partial].op.axis[0], s[partial].op.reduce_axis[0], s[partial].op.axis[1])
s[partial].vectorize(s[partial].op.axis[1])
for tensor in (partial, total):
    s[tensor].compute_at(s[B], s[B].op.axis[0])
_, inner = s[B].split(s[B].op.axis[1], factor=16)
s[B].vectorize(inner)
s[B].parallel(s[B].op.axis[0])
print(s.trace)

# ---------------------------------------------------------------------------------------------------------------------
heading("3. Bound inference finds the range of every axis (arith, te.schedule)")

normal = s.normalize()
ranges = infer_bound(normal)
for axis, found in ranges.items():
    print(f"{axis.var.name:12} {found}")

# ---------------------------------------------------------------------------------------------------------------------
heading("4. The schedule becomes loops over buffers (tir), which the interpreter can run")

loops = to_prim_func([A, B], schedule_ops(normal, ranges))
print(loops.script())
result = np.zeros_like(expected)
interpret(loops, values, result)
check(result)

# ---------------------------------------------------------------------------------------------------------------------
heading("5. Passes make the loops flat, vectorised and free of checks (tir.transform)")

module = tvm.IRModule({"main": loops.with_attr({"global_symbol": "main", "tir.noalias": True})})
for one in lowering_passes():
    after = one(module)
    print(f"{one.info.name:45} {'changed the program' if after is not module else ''}")
    module = after
print(module.script())
result = np.zeros_like(expected)
interpret(module["main"], values, result)
check(result)

# ---------------------------------------------------------------------------------------------------------------------
heading("6. LLVM makes machine code in this process (codegen)")

function = tvm.build(module, target="llvm")
result = np.zeros_like(expected)
function(values, result)
check(result)
vectors = [
    line.strip() for line in function.get_source("asm").splitlines() if "vdiv" in line or "fdiv" in line
]
print("the division, in assembly:", *vectors[:2], sep="\n  ")

# ---------------------------------------------------------------------------------------------------------------------
heading("7. An artefact holds the code and the runtime (runtime)")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "normalize.o"
    function.export_library(str(path))
    loaded = tvm.runtime.load_module(str(path))
    result = np.zeros_like(expected)
    loaded["main"](values, result)
    check(result)
    print(f"{path.name} has {path.stat().st_size} bytes")

# ---------------------------------------------------------------------------------------------------------------------
heading("8. Models are graphs of operators (relay); an ONNX file becomes one too")

x = relay.var("x", shape=(10, 64))
graph = tvm.IRModule.from_expr(
    relay.Function([x], x / relay.sum(x, axis=1, keepdims=True) / relay.const(1.0))
)
graph = relay.transform.InferType()(graph)
print(graph)
# The reference executor computes each operator in NumPy.
check(relay.create_executor("debug", graph).evaluate()(values).numpy())

# ---------------------------------------------------------------------------------------------------------------------
heading("9. Passes simplify the graph and fuse operators to kernels (relay.transform)")

with tvm.transform.PassContext(opt_level=3), tvm.target.Target("llvm") as target:
    for one in prepare_passes(target):
        after = one(graph)
        if not tvm.ir.structural_equal(graph, after):
            print(f"{one.info.name} changed the program")
        graph = after
print(relay.transform.FuseOps(2)(graph))

# ---------------------------------------------------------------------------------------------------------------------
heading(
    "10. Each kernel is a tensor expression with a schedule for this CPU (topi); the executor calls them in order"
)

built = relay.build(graph, target="llvm")
print(
    "kernels:",
    *[node["name"] for node in json.loads(built.get_graph_json())["nodes"] if node["op"] == "tvm_op"],
)
print(built.memory.report())
model = graph_executor.GraphModule(built["default"](tvm.cpu()))
model.run(x=values)
check(model.get_output(0).numpy())

# ---------------------------------------------------------------------------------------------------------------------
heading("11. Bad input gets a clear error")

for mistake in (
    lambda: function(values.astype("float64"), result),
    lambda: function(values, result[:5]),
    lambda: s[B].vectorize(k),
    lambda: model.set_input("image", values),
):
    try:
        mistake()
    except tvm.TVMError as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}")
