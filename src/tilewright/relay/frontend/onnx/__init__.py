"""The ONNX frontend."""

from tilewright.relay.frontend.onnx.format import FRONTEND
from tilewright.relay.frontend.onnx.model import from_onnx

__all__ = ["FRONTEND", "from_onnx"]
