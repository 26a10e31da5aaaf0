"""Quantised tensors, as QuantizeLinear and DequantizeLinear (the QDQ form that other runtimes read)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.relay.backend.onnx_export.builder import GraphWriter, dtype_of, shape_of, writes
from tilewright.relay.expr import Constant
from tilewright.support.errors import ModelError

PER_AXIS_OPSET = 13
"""The first opset with a scale for each channel."""


def _parameters(graph: GraphWriter, call: Any, dtype: str) -> tuple[list[str], int | None]:
    """The names of scale and zero point, which have the same shape, and the axis where they are vectors."""
    scale, zero = call.args[1:]
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        raise ModelError(f"{call.op.name} can only be written as ONNX with constant scales and zero points")
    values, zeros = scale.data.numpy(), zero.data.numpy()
    rank = len(shape_of(call.args[0]))
    per_axis = max(values.size, zeros.size) > 1
    if per_axis and graph.opset < PER_AXIS_OPSET:
        raise ModelError(f"scales per channel need opset {PER_AXIS_OPSET} of ONNX, not {graph.opset}")
    shape = (max(values.size, zeros.size),) if per_axis else ()
    vectors = [
        np.broadcast_to(one.reshape(-1) if per_axis else one.reshape(()), shape) for one in (values, zeros)
    ]
    names = [
        graph.constant(vectors[0].astype(np.float32), name="scale"),
        graph.constant(vectors[1].astype(dtype), name="zero_point"),
    ]
    return names, call.attrs.axis % rank if per_axis else None


@writes("qnn.quantize")
def write_quantize(graph: GraphWriter, call: Any, data: str, scale: str, zero: str) -> str:
    """Numbers as integers. ONNX rounds halves to even ones, which is what has to be asked for."""
    names, axis = _parameters(graph, call, dtype_of(call))
    return graph.node("QuantizeLinear", [data, *names], axis=axis)


@writes("qnn.dequantize")
def write_dequantize(graph: GraphWriter, call: Any, data: str, scale: str, zero: str) -> str:
    """Integers as numbers."""
    names, axis = _parameters(graph, call, dtype_of(call.args[0]))
    return graph.node("DequantizeLinear", [data, *names], axis=axis)
