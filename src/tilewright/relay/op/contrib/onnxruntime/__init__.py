"""ONNX Runtime: the operators that it takes of a model, which are those that can be written as ONNX."""

from __future__ import annotations

from tilewright.relay.backend.onnx_export.export import WRITERS
from tilewright.relay.op.contrib.backends import Backend, register_backend
from tilewright.relay.op.contrib.checks import of_type
from tilewright.runtime.external.onnx_runtime import is_available

_TYPES = of_type("float32", "float64", "int32", "int64", "bool", "uint8", "int8")

BACKEND = register_backend(
    Backend(
        "onnxruntime",
        list,
        {name: _TYPES for name in WRITERS},
        lambda: (
            None if is_available() else "ONNX Runtime is not installed: pip install 'tilewright[onnxruntime]'"
        ),
        heavy=(
            "nn.conv2d",
            "nn.dense",
            "nn.batch_matmul",
            "nn.max_pool2d",
            "nn.softmax",
            "nn.conv1d",
            "nn.conv3d",
        ),
    )
)
