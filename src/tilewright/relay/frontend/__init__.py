"""Frontends: importers of other systems' models, one folder each. Each loads its system's package on first use."""

from typing import Any

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.registry import Frontend, import_model, register_frontend
from tilewright.relay.frontend.torch import from_exported_program, from_fx, from_pytorch
from tilewright.relay.frontend.tflite import from_tflite

__all__ = [
    "Frontend",
    "from_exported_program",
    "from_fx",
    "from_onnx",
    "from_pytorch",
    "import_model",
    "register_frontend",
]
