"""Quantised operators of the default domain."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted
from tilewright.relay.frontend.onnx.ops.convolution import conv
from tilewright.relay.frontend.onnx.ops.matrices import matmul
from tilewright.relay.frontend.onnx.ops.quantization_arithmetic import (
    STORED,
    Quantized,
    aligned,
    dequantized,
    is_dialect,
    known_parameters,
    quantized,
    quantized_of,
    quantized_type,
    shifted,
)
from tilewright.relay.frontend.onnx.ops.quantized_products import (
    dialect_convolution,
    dialect_product,
    dialect_requantized,
    product_scales,
)
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter
from tilewright.relay.frontend.onnx.tensors import dtype_name


@converter("QuantizeLinear", since=10)
@converter("QuantizeLinear", domain=MICROSOFT_DOMAIN)
def quantize_linear(
    node: Node, data: RelayExpr, scale: RelayExpr, zero: RelayExpr | None = None
) -> RelayExpr:
    """Numbers to quantised ones; the zero point says of which type, or an attribute."""
    axis, block = int(node.attr("axis", 1)), int(node.attr("block_size", 0))
    if zero is not None:
        kind = quantized_of(node, zero)
    else:
        element_type = int(node.attr("output_dtype", 0))
        kind = quantized_type(element_type) if element_type else Quantized("uint8")
    precision = int(node.attr("precision", 0))
    known = None if block or precision else known_parameters(node, scale, zero, axis, node.rank(data))
    if known is not None and is_dialect(node, kind, data, scale):
        return relay.qnn.op.quantize(data, known.scale, known.zero, known.axis, kind.dtype, "TOEVEN")
    spread_zero = None
    if zero is not None:
        spread_zero = node.graph.mark(aligned(node, zero, data, axis, block), kind.low_precision)
    return quantized(
        node,
        data,
        aligned(node, scale, data, axis, block),
        spread_zero,
        kind,
        dtype_name(precision) if precision else "",
        bool(node.attr("saturate", 1)),
    )


@converter("DequantizeLinear", since=10)
@converter("DequantizeLinear", domain=MICROSOFT_DOMAIN)
def dequantize_linear(
    node: Node, data: RelayExpr, scale: RelayExpr, zero: RelayExpr | None = None
) -> RelayExpr:
    """Quantised numbers to those that they stand for."""
    axis, block = int(node.attr("axis", 1)), int(node.attr("block_size", 0))
    element_type = int(node.attr("output_dtype", 0))
    known = None if block or element_type else known_parameters(node, scale, zero, axis, node.rank(data))
    if known is not None and quantized_of(node, data) in (*STORED, Quantized("int32")):
        return relay.qnn.op.dequantize(data, known.scale, known.zero, known.axis)
    return dequantized(
        node,
        data,
        aligned(node, scale, data, axis, block),
        None if zero is None else aligned(node, zero, data, axis, block),
        dtype_name(element_type) if element_type else "",
    )


@converter("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: Node, data: RelayExpr) -> Sequence[RelayExpr]:
    """To uint8, with a scale that just fits the data and zero; also the scale and the zero point."""
    nought, one = node.constant(0, data), node.constant(1, data)
    most = relay.maximum(relay.max(data), nought)
    least = relay.minimum(relay.min(data), nought)
    span = relay.where(relay.equal(most, least), one, relay.subtract(most, least))
    scale = relay.divide(span, node.constant(255, data))
    start = relay.clip(relay.negative(relay.divide(least, scale)), 0, 255)
    zero = relay.cast(relay.nearbyint(start), "uint8")
    return quantized(node, data, scale, zero, Quantized("uint8")), scale, zero


# Products of integers


def rows_aligned(node: Node, parameter: RelayExpr, matrices: RelayExpr) -> RelayExpr:
    """A parameter of the rows of matrices: one for all, one for each, or in the shape that broadcasts."""
    if node.rank(parameter) == 1 and node.rank(matrices) > 1 and node.shape(parameter) != (1,):
        return relay.expand_dims(parameter, 1)
    return parameter


def integer_product(
    node: Node, a: RelayExpr, b: RelayExpr, a_zero: RelayExpr | None, b_zero: RelayExpr | None
) -> RelayExpr:
    """The product of two quantised matrices, as int32, without their scales."""
    made = dialect_product(node, a, b, a_zero, b_zero)
    if made is not None:
        return made
    left = shifted(node, a, None if a_zero is None else rows_aligned(node, a_zero, a))
    return matmul(node, left, shifted(node, b, b_zero), "int32")


@converter("MatMulInteger", since=10)
def matmul_integer(
    node: Node,
    a: RelayExpr,
    b: RelayExpr,
    a_zero: RelayExpr | None = None,
    b_zero: RelayExpr | None = None,
) -> RelayExpr:
    """The product of integers, as int32."""
    return integer_product(node, a, b, a_zero, b_zero)


@converter("QLinearMatMul", since=10)
def qlinear_matmul(
    node: Node,
    a: RelayExpr,
    a_scale: RelayExpr,
    a_zero: RelayExpr | None,
    b: RelayExpr,
    b_scale: RelayExpr,
    b_zero: RelayExpr | None,
    y_scale: RelayExpr,
    y_zero: RelayExpr | None,
) -> RelayExpr:
    """The product of quantised matrices, quantised again."""
    product = integer_product(node, a, b, a_zero, b_zero)
    kind = quantized_of(node, a if y_zero is None else y_zero)
    factor = relay.multiply(
        rows_aligned(node, converted(node, a_scale, "float32"), a), converted(node, b_scale, "float32")
    )
    scales = product_scales(node, a_scale, b_scale)
    made = dialect_requantized(node, product, scales, y_scale, y_zero, kind, -1)
    return requantized(node, product, factor, y_scale, y_zero, kind) if made is None else made


def requantized(
    node: Node,
    product: RelayExpr,
    factor: RelayExpr,
    scale: RelayExpr,
    zero: RelayExpr | None,
    kind: Quantized,
) -> RelayExpr:
    """A product of int32 that stands for ``product * factor``, quantised."""
    numbers = relay.multiply(relay.cast(product, "float32"), factor)
    return quantized(
        node,
        numbers,
        converted(node, aligned(node, scale, numbers, 0), "float32"),
        None if zero is None else aligned(node, zero, numbers, 0),
        kind,
    )


def _kernel_aligned(node: Node, parameter: RelayExpr, rank: int) -> RelayExpr:
    """A parameter of the output channels, in a shape that broadcasts to the weight's."""
    if node.rank(parameter) == 0 or node.shape(parameter) == (1,):
        return relay.reshape(parameter, ()) if node.rank(parameter) else parameter
    return relay.expand_dims(parameter, 1, rank - 1)


def _integer_convolution(
    node: Node,
    data: RelayExpr,
    weight: RelayExpr,
    data_zero: RelayExpr | None,
    weight_zero: RelayExpr | None,
    bias: RelayExpr | None = None,
) -> RelayExpr:
    """The convolution of quantised tensors, as int32; padding stands for zero."""
    dialect = dialect_convolution(node, data, weight, data_zero, weight_zero, bias)
    if dialect is not None:
        return dialect
    of_weight = None if weight_zero is None else _kernel_aligned(node, weight_zero, node.rank(weight))
    of_data = None if data_zero is None else aligned(node, data_zero, data, 0)
    made: RelayExpr = conv(node, shifted(node, data, of_data), shifted(node, weight, of_weight), bias)
    return made


@converter("ConvInteger", since=10)
def conv_integer(
    node: Node,
    data: RelayExpr,
    weight: RelayExpr,
    data_zero: RelayExpr | None = None,
    weight_zero: RelayExpr | None = None,
) -> RelayExpr:
    """The convolution of integers, as int32."""
    return _integer_convolution(node, data, weight, data_zero, weight_zero)


@converter("QLinearConv", since=10)
@converter("QLinearConv", domain=MICROSOFT_DOMAIN)
def qlinear_conv(
    node: Node,
    data: RelayExpr,
    data_scale: RelayExpr,
    data_zero: RelayExpr | None,
    weight: RelayExpr,
    weight_scale: RelayExpr,
    weight_zero: RelayExpr | None,
    y_scale: RelayExpr,
    y_zero: RelayExpr | None,
    bias: RelayExpr | None = None,
) -> RelayExpr:
    """The convolution of quantised tensors, quantised again."""
    if node.attr("channels_last", 0):
        raise node.fail("channels_last is not supported")
    product = _integer_convolution(node, data, weight, data_zero, weight_zero, bias)
    factor = relay.multiply(
        aligned(node, data_scale, data, 0), _kernel_aligned(node, weight_scale, node.rank(weight) - 1)
    )
    kind = quantized_of(node, data if y_zero is None else y_zero)
    scales = product_scales(node, data_scale, weight_scale)
    made = dialect_requantized(node, product, scales, y_scale, y_zero, kind, 1)
    return requantized(node, product, factor, y_scale, y_zero, kind) if made is None else made
