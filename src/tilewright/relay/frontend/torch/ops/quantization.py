"""Quantisation in the graphs of PyTorch's exporter: numbers are rounded to a grid, and back."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.ops.elementwise import rounded
from tilewright.relay.frontend.torch.registry import converter


def _on_grid(node: TorchNode, data: Expr, scale: Expr, zero: Expr, low: int, high: int) -> Expr:
    """The whole numbers that stand for elements, as floats."""
    steps = rounded(node, relay.multiply(data, relay.divide(node.constant(1.0, data), scale)))
    return relay.clip(relay.add(steps, zero), float(low), float(high))


def _along(node: TorchNode, given: Expr, data: Expr, axis: int, dtype: str) -> Expr:
    """A vector of scales or zero points along an axis of a tensor."""
    rank = node.rank(data)
    place = node.axis_of(axis, rank)
    return relay.reshape(node.cast(given, dtype), [-1 if one == place else 1 for one in range(rank)])


@converter("quantized_decomposed::quantize_per_tensor")
def quantize_per_tensor(
    node: TorchNode,
    input: Expr,
    scale: Operand,
    zero_point: Operand,
    quant_min: int,
    quant_max: int,
    dtype: str,
) -> Expr:
    """One scale for all elements."""
    kind = node.dtype(input)
    found = _on_grid(node, input, _one(node, scale, kind), _one(node, zero_point, kind), quant_min, quant_max)
    return relay.cast(found, dtype)


def _one(node: TorchNode, given: Operand, dtype: str) -> Expr:
    made = node.cast(given, dtype)
    return relay.reshape(made, ()) if node.rank(made) else made


@converter("quantized_decomposed::dequantize_per_tensor")
def dequantize_per_tensor(
    node: TorchNode, input: Expr, scale: Operand, zero_point: Operand, quant_min: int, quant_max: int, dtype: str,
    out_dtype: str | None = None,
) -> Expr:  # fmt: skip
    """Numbers back from one scale."""
    kind = out_dtype or "float32"
    apart = relay.subtract(relay.cast(input, kind), _one(node, zero_point, kind))
    return relay.multiply(apart, _one(node, scale, kind))


@converter("quantized_decomposed::quantize_per_channel")
def quantize_per_channel(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr, axis: int, quant_min: int, quant_max: int,
    dtype: str,
) -> Expr:  # fmt: skip
    """A scale for each place of an axis."""
    kind = node.dtype(input)
    scale, zero = _along(node, scales, input, axis, kind), _along(node, zero_points, input, axis, kind)
    return relay.cast(_on_grid(node, input, scale, zero, quant_min, quant_max), dtype)


@converter("quantized_decomposed::dequantize_per_channel")
def dequantize_per_channel(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr | None, axis: int, quant_min: int,
    quant_max: int, dtype: str, out_dtype: str | None = None,
) -> Expr:  # fmt: skip
    """Numbers back from a scale for each place of an axis."""
    kind = out_dtype or "float32"
    data: Expr = relay.cast(input, kind)
    if zero_points is not None:
        data = relay.subtract(data, _along(node, zero_points, input, axis, kind))
    return relay.multiply(data, _along(node, scales, input, axis, kind))


@converter("quantized_decomposed::choose_qparams")
def choose_qparams(
    node: TorchNode, input: Expr, quant_min: int, quant_max: int, eps: float, dtype: str
) -> list[Expr]:
    """The scale and the zero point at which the elements fill the grid."""
    zero = node.constant(0.0, input)
    low = relay.minimum(relay.min(input), zero)
    high = relay.maximum(relay.max(input), zero)
    span = node.constant(float(quant_max - quant_min), input)
    scale = relay.maximum(relay.divide(relay.subtract(high, low), span), node.constant(eps, input))
    point = relay.subtract(node.constant(float(quant_min), input), rounded(node, relay.divide(low, scale)))
    point = relay.clip(point, float(quant_min), float(quant_max))
    return [relay.cast(scale, "float64"), relay.cast(point, "int64")]


@converter("aten::fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor(
    node: TorchNode, input: Expr, scale: Operand, zero_point: Operand, quant_min: int, quant_max: int
) -> Expr:
    """Numbers rounded to what one scale can say."""
    kind = node.dtype(input)
    step, zero = _one(node, scale, kind), _one(node, zero_point, kind)
    found = _on_grid(node, input, step, zero, quant_min, quant_max)
    return relay.multiply(relay.subtract(found, zero), step)


@converter("aten::fake_quantize_per_channel_affine")
def fake_quantize_per_channel(
    node: TorchNode, input: Expr, scale: Expr, zero_point: Expr, axis: int, quant_min: int, quant_max: int
) -> Expr:
    """Numbers rounded to what a scale for each place of an axis can say."""
    kind = node.dtype(input)
    step, zero = _along(node, scale, input, axis, kind), _along(node, zero_point, input, axis, kind)
    found = _on_grid(node, input, step, zero, quant_min, quant_max)
    return relay.multiply(relay.subtract(found, zero), step)
