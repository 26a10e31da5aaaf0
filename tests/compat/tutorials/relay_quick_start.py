"""A network from the test models, compiled, run, saved and loaded again."""

import numpy as np

import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor, utils
from tvm.relay import testing

batch_size, num_class, image_shape = 1, 10, (3, 32, 32)
data_shape = (batch_size, *image_shape)
out_shape = (batch_size, num_class)

mod, params = relay.testing.resnet.get_workload(
    num_layers=8, batch_size=batch_size, num_classes=num_class, image_shape=image_shape
)
print(mod.astext(show_meta_data=False)[:200])

target = tvm.target.Target("llvm")
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target, params=params)

dev = tvm.cpu()
data = np.random.uniform(-1, 1, size=data_shape).astype("float32")
module = graph_executor.GraphModule(lib["default"](dev))
module.set_input("data", data)
module.run()
out = module.get_output(0, tvm.nd.empty(out_shape)).numpy()
assert out.shape == out_shape and abs(out.sum() - 1) < 1e-4

temp = utils.tempdir()
path_lib = temp.relpath("deploy_lib.tar")
lib.export_library(path_lib)
assert temp.listdir() == ["deploy_lib.tar"]

loaded_lib = tvm.runtime.load_module(path_lib)
module = graph_executor.GraphModule(loaded_lib["default"](dev))
module.run(data=tvm.nd.array(data))
tvm.testing.assert_allclose(module.get_output(0).numpy(), out, atol=1e-5)

# The parts of the library, in the old order, and the executor made from them.
graph, built, weights = lib
created = graph_executor.create(graph, built, dev)
created.set_input(**weights)
created.set_input("data", tvm.nd.array(data))
created.run()
tvm.testing.assert_allclose(created.get_output(0).numpy(), out, atol=1e-5)
assert lib.get_params().keys() == weights.keys() and lib.get_graph_json() == graph
weights_bytes = relay.save_param_dict(lib.get_params())
created.load_params(weights_bytes)
print(created.benchmark(dev, number=1, repeat=2))
assert created.get_num_outputs() == 1 and created.get_input(0) is not None
print(module.module.time_evaluator("run", dev, number=1, repeat=2)().mean)
assert testing is relay.testing
