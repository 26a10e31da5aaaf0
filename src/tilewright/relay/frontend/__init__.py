"""Frontends: importers of other systems' models. Each loads its system's package on first use."""

from typing import Any

from tilewright.not_yet import attribute_not_there
from tilewright.relay.frontend.onnx import from_onnx

__all__ = ["from_onnx"]


def __getattr__(name: str) -> Any:
    return attribute_not_there(__name__, name)
