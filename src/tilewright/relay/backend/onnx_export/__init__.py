"""Graph-level modules as ONNX models."""

from tilewright.relay.backend.onnx_export.export import to_onnx

__all__ = ["to_onnx"]
