"""TVM's ``relay.frontend.onnx``: a class for each operator, over this version's own converters."""

from typing import Any

from tilewright.compat.onnx import classes, helpers
from tilewright.compat.onnx.graph import GraphProto

__all__ = ["GraphProto", *classes.__all__, *helpers.__all__]


def __getattr__(name: str) -> Any:
    for module in (classes, helpers):
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
