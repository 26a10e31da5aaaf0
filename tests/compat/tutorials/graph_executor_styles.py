"""One small model through the ways in which scripts of several years build, run, save and measure it."""

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_executor, graph_runtime, utils
from tvm.contrib.debugger import debug_executor

x = relay.var("x", shape=(1, 8))
w = relay.var("w", shape=(4, 8))
mod = tvm.IRModule()
mod["main"] = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
weights = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
data = np.random.default_rng(1).standard_normal((1, 8))  # float64, as NumPy makes it
expected = np.maximum(data @ weights.T, 0)
dev = tvm.device("llvm", 0)


def check(module):
    """The output is NumPy's."""
    np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-6)


# Three values, and their executor made by hand.
graph, lib, params = relay.build(mod, target="llvm", params={"w": weights})
m = graph_runtime.create(graph, lib, dev)
m.set_input(**params)
m.set_input("x", data)
m.run()
check(m)
assert m.get_num_outputs() == 1

# One value.
with tvm.transform.PassContext(opt_level=3, required_pass=["FastMath"], disabled_pass=["FoldScaleAxis"]):
    lib = relay.build(
        mod, target=tvm.target.Target("llvm", host="llvm"), params={"w": weights}, mod_name="net"
    )
m = graph_executor.GraphModule(lib["net"](dev))
m.run(x=data)
check(m)
times = m.benchmark(dev, repeat=3, number=2)
assert len(times.results) == 3 and times.mean > 0
timer = m.module.time_evaluator("run", dev, number=2, repeat=2)
assert len(timer().results) == 2

# Files: one, or three.
folder = utils.tempdir()
lib.export_library(folder.relpath("net.tar"))
m = graph_executor.GraphModule(tvm.runtime.load_module(folder.relpath("net.tar"))["net"](dev))
m["set_input"]("x", tvm.nd.array(data.astype("float32")))
m["run"]()
check(m)
with open(folder.relpath("net.params"), "wb") as file:
    file.write(relay.save_param_dict(lib.get_params()))
lib.get_lib().export_library(folder.relpath("net.so"))
m = graph_executor.create(lib.get_graph_json(), tvm.runtime.load_module(folder.relpath("net.so")), dev)
with open(folder.relpath("net.params"), "rb") as file:
    m.load_params(bytearray(file.read()))
m.run(x=data)
check(m)

# Node by node.
m = debug_executor.create(lib.get_graph_json(), lib.lib, dev, dump_root=folder.relpath("debug"))
m.set_input(**lib.get_params())
m.run(x=data)
check(m)
assert "dense" in str(m.profile(x=data))
