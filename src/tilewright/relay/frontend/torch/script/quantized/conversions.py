"""Between numbers and quantised tensors."""

from __future__ import annotations

from typing import Any

from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.quantized.arithmetic import (
    as_quantized,
    numbers_of,
    quantized,
    quantized_to,
    require_quantized,
)
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.values import Quantization, Tensor


@operator("aten::quantize_per_tensor")
def quantize_per_tensor(node: ScriptNode, data: Tensor, scale: Any, zero: Any, dtype: int) -> Tensor:
    """With one scale and zero point."""
    return quantized_to(node, node.store.read(data), scale, zero, dtype_name(dtype))


@operator("aten::quantize_per_channel")
def quantize_per_channel(
    node: ScriptNode, data: Tensor, scales: Any, zeros: Any, axis: int, dtype: int
) -> Tensor:
    """With a scale and a zero point for each index along an axis."""
    expr = node.store.read(data)
    of = Quantization(
        node.resolved(scales), node.expr(zeros, "int32"), dtype_name(dtype), axis % node.rank(expr)
    )
    return as_quantized(node, quantized(node, expr, of), of)


@operator("aten::dequantize.self")
def dequantize(node: ScriptNode, data: Tensor) -> Any:
    """The numbers that a tensor stands for."""
    return data if data.quantization is None else numbers_of(node, data)


@operator("aten::dequantize.tensors")
def dequantize_all(node: ScriptNode, tensors: Any) -> Any:
    """The numbers of several tensors."""
    return node.store.list_of([node.store.tensor(numbers_of(node, item)) for item in node.items(tensors)])


@operator("aten::int_repr")
def int_repr(node: ScriptNode, data: Tensor) -> Any:
    """The integers themselves."""
    require_quantized(node, data)
    return node.store.tensor(node.store.read(data))


@operator("aten::q_scale")
def q_scale(node: ScriptNode, data: Tensor) -> Any:
    """The scale."""
    return require_quantized(node, data).scale


@operator("aten::q_zero_point")
def q_zero_point(node: ScriptNode, data: Tensor) -> Any:
    """The zero point."""
    return require_quantized(node, data).zero
