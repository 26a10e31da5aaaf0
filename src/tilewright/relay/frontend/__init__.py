"""Frontends: importers of other systems' models, one folder each. Each loads its system's package on first use."""

from typing import Any

from tilewright.relay.frontend.caffe import from_caffe
from tilewright.relay.frontend.caffe2 import from_caffe2
from tilewright.relay.frontend.coreml import from_coreml
from tilewright.relay.frontend.darknet import from_darknet
from tilewright.relay.frontend.jax import from_jax
from tilewright.relay.frontend.keras import from_keras
from tilewright.relay.frontend.mxnet import from_mxnet
from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.paddle import from_paddle
from tilewright.relay.frontend.registry import Frontend, import_model, register_frontend
from tilewright.relay.frontend.tensorflow import from_tensorflow
from tilewright.relay.frontend.tflite import from_tflite
from tilewright.relay.frontend.torch import from_exported_program, from_fx, from_pytorch

__all__ = [
    "Frontend",
    "from_caffe",
    "from_caffe2",
    "from_coreml",
    "from_darknet",
    "from_exported_program",
    "from_fx",
    "from_jax",
    "from_keras",
    "from_mxnet",
    "from_onnx",
    "from_paddle",
    "from_pytorch",
    "from_tensorflow",
    "from_tflite",
    "import_model",
    "register_frontend",
]
