"""The Python side of tvmc, and the debug executor."""

import numpy as np
from onnx import TensorProto, helper, save

import tvm
from tvm.contrib import utils
from tvm.contrib.debugger import debug_executor
from tvm.driver import tvmc
from tvm.driver.tvmc.model import TVMCModel, TVMCPackage, TVMCResult

temp = utils.tempdir()
graph = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Add", ["h", "h"], ["y"])],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), temp.relpath("m.onnx"))

model = tvmc.load(temp.relpath("m.onnx"))
assert isinstance(model, TVMCModel)
model.summary()
package = tvmc.compile(model, target="llvm", package_path=temp.relpath("m.tar"))
assert isinstance(package, TVMCPackage)
x = np.array([[-1, 2, 3], [4, -5, 6]], "float32")
result = tvmc.run(package, device="cpu", inputs={"x": x})
assert isinstance(result, TVMCResult)
np.testing.assert_allclose(result.outputs["output_0"], np.maximum(x, 0) * 2)
print(result)
again = TVMCPackage(package_path=temp.relpath("m.tar"))
np.testing.assert_allclose(
    tvmc.run(again, device="cpu", inputs={"x": x}).get_output("output_0"), np.maximum(x, 0) * 2
)
model.save(temp.relpath("saved.tar"))
loaded = TVMCModel(model_path=temp.relpath("saved.tar"))
assert tvm.ir.structural_equal(loaded.mod, model.mod)

lib = tvm.relay.build(model.mod, "llvm", params=model.params)
debug = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu(0), dump_root=temp.relpath("dump"))
debug.set_input("x", tvm.nd.array(x))
debug.run()
np.testing.assert_allclose(debug.get_output(0).numpy(), np.maximum(x, 0) * 2)
created = debug_executor.GraphModuleDebug(
    lib["debug_create"]("default", tvm.cpu(0)), [tvm.cpu(0)], lib.get_graph_json(), temp.relpath("dump2")
)
created.set_input(x=x)
report = created.profile(x=tvm.nd.array(x))
assert "fused" in str(report)
