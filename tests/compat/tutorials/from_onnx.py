"""A small ONNX model through Relay."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tvm
from tvm import relay
from tvm.contrib import graph_executor

weight = np.random.default_rng(0).random((4, 1, 3, 3), dtype="float32")
graph = helper.make_graph(
    [
        helper.make_node("Conv", ["1", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("DepthToSpace", ["r"], ["out"], blocksize=2),
    ],
    "super_resolution",
    [helper.make_tensor_value_info("1", TensorProto.FLOAT, [1, 1, 8, 8])],
    [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 1, 16, 16])],
    [numpy_helper.from_array(weight, "w")],
)
onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
onnx.checker.check_model(onnx_model)

x = np.random.default_rng(1).random((1, 1, 8, 8), dtype="float32")
target = "llvm"
input_name = "1"
shape_dict = {input_name: x.shape}
mod, params = relay.frontend.from_onnx(onnx_model, shape_dict)

with tvm.transform.PassContext(opt_level=1):
    executor = relay.build_module.create_executor("graph", mod, tvm.cpu(0), target, params).evaluate()
tvm_output = executor(tvm.nd.array(x)).numpy()
assert tvm_output.shape == (1, 1, 16, 16)

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target=target, params=params)
module = graph_executor.GraphModule(lib["default"](tvm.device(target, 0)))
module.set_input(input_name, x)
module.run()
np.testing.assert_allclose(module.get_output(0).numpy(), tvm_output, rtol=1e-4, atol=1e-5)

frozen, nothing = relay.frontend.from_onnx(onnx_model, shape=shape_dict, freeze_params=True)
assert [p.name_hint for p in frozen["main"].params] == ["1"] and not nothing
