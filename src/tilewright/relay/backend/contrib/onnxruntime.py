"""The code generator "onnxruntime": a part of a model as an ONNX model, which ONNX Runtime runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.type import TupleType
from tilewright.relay.backend.external.symbols import external_symbol
from tilewright.relay.backend.onnx_export import to_onnx
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.relay.op.contrib.onnxruntime import BACKEND
from tilewright.runtime.external import JSONGraph, JSONNode
from tilewright.runtime.external.onnx_runtime import MODEL, ONNXRuntime
from tilewright.runtime.ndarray import array
from tilewright.runtime.registry import register_func

_OPSET = 17


@register_func(f"relay.ext.{BACKEND.name}")
def compile_function(function: Function) -> ONNXRuntime:
    """The module of a part: its ONNX model, and a graph of one node that stands for it."""
    typed = infer_expr(function)
    assert isinstance(typed, Function)
    model = to_onnx(Function(typed.params, typed.body), {}, external_symbol(function), _OPSET)
    content = np.frombuffer(model.SerializeToString(), np.uint8)
    kind = typed.body.checked_type
    results: list[Any] = list(kind.fields) if isinstance(kind, TupleType) else [kind]
    nodes = [
        JSONNode(
            "input", one.name_hint, [list(one.checked_type.concrete_shape)], [str(one.checked_type.dtype)]
        )
        for one in typed.params
    ]
    nodes.append(
        JSONNode(
            "kernel",
            "onnx.Model",
            [list(one.concrete_shape) for one in results],
            [str(one.dtype) for one in results],
            [(number, 0) for number in range(len(nodes))],
            {"operators": [node.op_type for node in model.graph.node]},
        )
    )
    outputs = [(len(nodes) - 1, number) for number in range(len(results))]
    return ONNXRuntime(JSONGraph(external_symbol(function), nodes, outputs), {MODEL: array(content)})
