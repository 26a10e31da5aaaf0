"""What ONNX Runtime's quantiser and optimiser write of a model is imported, and gives what ONNX Runtime gives."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tests.relay.frontend.onnx import reference_runtime

from tilewright.relay.frontend.onnx import backend

NETWORK = """<ir_version: 8, opset_import: ["" : 13]>
agraph (float[2, 3, 12, 12] x) => (float[2, 5] y) {
    a = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w1, b1)
    b = Relu(a)
    c = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b)
    d = Conv<kernel_shape = [1, 1]>(c, w2)
    e = Sigmoid(d)
    f = Mul(d, e)
    g = Add(c, f)
    h = Concat<axis = 1>(g, c)
    i = LeakyRelu(h)
    j = GlobalAveragePool(i)
    k = Flatten(j)
    l = Gemm<transB = 1>(k, w3, b3)
    y = Softmax<axis = 1>(l)
}
"""
WEIGHTS = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 8, 1, 1), "w3": (5, 16), "b3": (5,)}

# Runs in another process, which keeps ONNX Runtime's threads out of this one.
TOOLS = """
import sys
import numpy, onnxruntime
from onnxruntime import quantization as q
folder = sys.argv[1]
data = {"x": numpy.load(folder + "/x.npy")}
class Reader(q.CalibrationDataReader):
    def __init__(self): self.left = [data]
    def get_next(self): return self.left.pop() if self.left else None
made = ["model"]
for name, options in (("dynamic", {}), ("dynamic_columns", {"per_channel": True})):
    q.quantize_dynamic(f"{folder}/model.onnx", f"{folder}/{name}.onnx", weight_type=q.QuantType.QUInt8, **options)
    made.append(name)
for kind in (q.QuantFormat.QDQ, q.QuantFormat.QOperator):
    for each in (False, True):
        name = f"{kind.name}_{each}"
        types = {"activation_type": q.QuantType.QUInt8, "weight_type": q.QuantType.QInt8}
        paths = (f"{folder}/model.onnx", f"{folder}/{name}.onnx")
        q.quantize_static(*paths, Reader(), quant_format=kind, per_channel=each, **types)
        made.append(name)
for name in made:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = f"{folder}/{name}_optimised.onnx"
    onnxruntime.InferenceSession(f"{folder}/{name}.onnx", options, providers=["CPUExecutionProvider"])
"""


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_what_the_tools_write(tmp_path: Path) -> None:
    """Dynamic and static quantisation, in both formats, and each of them optimised."""
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(NETWORK)
    for name, shape in WEIGHTS.items():
        values = (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32")
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    onnx.save(model, tmp_path / "model.onnx")
    x = random.standard_normal((2, 3, 12, 12)).astype("float32")
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run(
        [sys.executable, "-c", TOOLS, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    paths = sorted(tmp_path.glob("*.onnx"))
    assert len(paths) == 14
    domains = set()
    for path in paths:
        domains |= {node.domain for node in onnx.load(path).graph.node}
        wanted = reference_runtime.outputs(str(path), {"x": x})[0]
        found = backend.prepare(str(path), executor="debug").run([x])[0]
        # A number that is halfway between two steps may be rounded either way.
        np.testing.assert_allclose(
            found, wanted, atol=1e-5 if "model" in path.stem else 0.02, err_msg=path.stem
        )
    assert "com.microsoft" in domains
