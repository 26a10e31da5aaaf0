"""tvmc from Python: load, compile, run, tune and compile with what was learnt.

Run it:  python -m tilewright.as_tvm examples/tutorials/tvmc_from_python.py
"""

import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tvm.driver import tvmc

work = tempfile.mkdtemp()
info = helper.make_tensor_value_info
rng = np.random.default_rng(0)
weight = rng.standard_normal((8, 4), "float32")
graph = helper.make_graph(
    [helper.make_node("Gemm", ["data", "w"], ["h"], transB=1), helper.make_node("Relu", ["h"], ["out"])],
    "layer",
    [info("data", TensorProto.FLOAT, [2, 4])],
    [info("out", TensorProto.FLOAT, [2, 8])],
    [numpy_helper.from_array(weight, "w")],
)
path = os.path.join(work, "layer.onnx")
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)

model = tvmc.load(path)
model.summary()
package = tvmc.compile(model, target="llvm", package_path=os.path.join(work, "layer.tar"))
data = rng.standard_normal((2, 4), "float32")
result = tvmc.run(package, device="cpu", inputs={"data": data})
print(result)
np.testing.assert_allclose(
    result.get_output("output_0"), np.maximum(data @ weight.T, 0), rtol=1e-4, atol=1e-5
)

# A package is a file: it runs without the model.
again = tvmc.TVMCPackage(package_path=package.package_path)
timed = tvmc.run(again, device="cpu", fill_mode="random", repeat=2, number=2)
assert len(timed.times.results) == 2 if hasattr(timed.times, "results") else timed.times

records = os.path.join(work, "records.json")
tvmc.tune(model, target="llvm", tuning_records=records, trials=2, repeat=1, number=1, timeout=5)
tuned = tvmc.compile(model, target="llvm", tuning_records=records)
best = tvmc.run(tuned, device="cpu", inputs={"data": data})
np.testing.assert_allclose(best.get_output("output_0"), result.get_output("output_0"), rtol=1e-4, atol=1e-5)

saved = os.path.join(work, "model")
model.save(saved)
assert tvmc.TVMCModel(model_path=saved).params.keys() == model.params.keys()
