"""Frontends: importers of other systems' models. Each loads its system's package on first use."""

from typing import Any

from tilewright.relay.frontend.onnx import from_onnx

__all__ = ["from_onnx"]
