"""Deploying: a model as one library, as three files, as source for a microcontroller, and its parameters apart.

Run it:  python -m tilewright.as_tvm examples/tutorials/deploy_module.py
"""

import json
import tarfile

import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor, utils

x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.tanh(relay.nn.dense(x, w))))
rng = np.random.default_rng(1)
params = {"w": tvm.nd.array(rng.standard_normal((3, 4), "float32"))}
data = rng.standard_normal((2, 4), "float32")
wanted = np.tanh(data @ params["w"].numpy().T)
temp = utils.tempdir()


def check(executor):
    """Run a loaded executor and compare."""
    executor.set_input("x", tvm.nd.array(data))
    executor.run()
    tvm.testing.assert_allclose(
        executor.get_output(0, tvm.nd.empty((2, 3))).numpy(), wanted, rtol=1e-4, atol=1e-5
    )


lib = relay.build(mod, target="llvm", params=params)
lib.export_library(temp.relpath("model.so"))
loaded = tvm.runtime.load_module(temp.relpath("model.so"))
check(graph_executor.GraphModule(loaded["default"](tvm.cpu(0))))

# The graph, the library and the parameters, each in its file: the older way.
graph_json, library, weights = relay.build(mod, target="llvm", params=params)
library.export_library(temp.relpath("lib.so"))
with open(temp.relpath("params.bin"), "wb") as file:
    file.write(relay.save_param_dict(weights))
executor = graph_executor.create(graph_json, tvm.runtime.load_module(temp.relpath("lib.so")), tvm.cpu(0))
with open(temp.relpath("params.bin"), "rb") as file:
    executor.load_params(bytearray(file.read()))
check(executor)
assert json.loads(graph_json)["nodes"][0]["name"] == "x"

# Source and metadata for a device without an operating system.
with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
    micro = relay.build(mod, target="c -runtime=c --system-lib", params=params)
tvm.micro.export_model_library_format(micro, temp.relpath("model.tar"))
with tarfile.open(temp.relpath("model.tar")) as archive:
    names = [name.removeprefix("./") for name in archive.getnames()]
assert "metadata.json" in names and any(name.endswith(".c") for name in names)
