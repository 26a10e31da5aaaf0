"""Relay modules as ONNX models."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def to_onnx(
    relay_ir: Any,
    params: Mapping[str, Any] | None,
    name: str,
    opset_version: int = 11,
    path: str | None = None,
    doc_string: str | None = None,
) -> Any:
    """A Relay module or function as an ONNX model, written to ``path`` where one is given.

    ``params`` become initializers. A module with operators that cannot be written raises one error that names them all.
    """
    # The graph level is above this layer: it is looked up when it is used.
    written = import_module("tilewright.relay.backend.onnx_export")
    return written.to_onnx(relay_ir, params, name, opset_version, path, doc_string)
