"""The ONNX frontend."""

from tilewright.relay.frontend.onnx.model import from_onnx

__all__ = ["from_onnx"]
