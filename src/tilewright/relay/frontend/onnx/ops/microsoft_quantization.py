"""Quantised operators that ONNX Runtime's tools emit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted
from tilewright.relay.frontend.onnx.ops.matrices import matmul
from tilewright.relay.frontend.onnx.ops.pooling import average_pool, global_average_pool
from tilewright.relay.frontend.onnx.ops.quantization import (
    dynamic_quantize_linear,
    integer_product,
    requantized,
    rows_aligned,
)
from tilewright.relay.frontend.onnx.ops.quantization_arithmetic import (
    quantized_of,
    scalar_dequantized,
    scalar_quantized,
)
from tilewright.relay.frontend.onnx.ops.quantized_products import dialect_requantized, product_scales
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter

Float = Callable[[Node, RelayExpr], RelayExpr]


# One tensor: to numbers, through the function, and back


def through(
    node: Node, data: RelayExpr, parameters: Sequence[RelayExpr | None], function: Float
) -> RelayExpr:
    """``parameters``: scale and zero point of the data, then those of the result."""
    scale, zero, result_scale, result_zero = (*parameters, None)[:4]
    if scale is None or result_scale is None:
        raise node.fail("a scale is missing")
    made = function(node, scalar_dequantized(node, data, scale, zero))
    kind = quantized_of(node, data if result_zero is None else result_zero)
    return scalar_quantized(node, made, result_scale, result_zero, kind)


def channels_first(function: Float, default: int = 0, always: bool = False) -> Float:
    """A function of data whose channels are second, for a node whose channels may be last: as the attribute
    ``channels_last`` says, by default as ``default``, or always."""

    def made(node: Node, data: RelayExpr) -> RelayExpr:
        if not always and not node.attr("channels_last", default):
            return function(node, data)
        rank = node.rank(data)
        first = relay.transpose(data, (0, rank - 1, *range(1, rank - 1)))
        return relay.transpose(function(node, first), (0, *range(2, rank), 1))

    return made


def _leaky_relu(node: Node, data: RelayExpr) -> RelayExpr:
    return relay.nn.leaky_relu(data, float(node.attr("alpha", 0.01)))


def _softmax(node: Node, data: RelayExpr) -> RelayExpr:
    """Along an axis; as of opsets before 13, along all axes from there on."""
    rank = node.rank(data)
    axis = node.axis(-1, rank)
    if int(node.attr("opset", 13)) >= 13 or axis == rank - 1:
        return relay.nn.softmax(data, axis)
    shape = node.static_shape(data)
    rows = int(np.prod(shape[:axis], dtype=np.int64))
    flat = relay.reshape(data, (rows, int(np.prod(shape[axis:], dtype=np.int64))))
    return relay.reshape(relay.nn.softmax(flat, 1), shape)


_UNARY: dict[str, Float] = {
    "QLinearSigmoid": lambda node, data: relay.sigmoid(data),
    "QLinearLeakyRelu": _leaky_relu,
    "QLinearSoftmax": _softmax,
    "QLinearAveragePool": channels_first(average_pool),
    "QLinearGlobalAveragePool": channels_first(global_average_pool),
}


def _register_unary(name: str, function: Float) -> None:
    @converter(name, domain=MICROSOFT_DOMAIN)
    def convert(node: Node, data: RelayExpr, *parameters: RelayExpr | None) -> RelayExpr:
        return through(node, data, parameters, function)


for _name, _function in _UNARY.items():
    _register_unary(_name, _function)


# Several tensors


@converter("QLinearAdd", "QLinearMul", domain=MICROSOFT_DOMAIN)
def qlinear_binary(
    node: Node,
    a: RelayExpr,
    a_scale: RelayExpr,
    a_zero: RelayExpr | None,
    b: RelayExpr,
    b_scale: RelayExpr,
    b_zero: RelayExpr | None,
    c_scale: RelayExpr,
    c_zero: RelayExpr | None = None,
) -> RelayExpr:
    """The sum or product of quantised tensors, quantised again."""
    combine = relay.add if node.op_type == "QLinearAdd" else relay.multiply
    made = combine(scalar_dequantized(node, a, a_scale, a_zero), scalar_dequantized(node, b, b_scale, b_zero))
    return scalar_quantized(node, made, c_scale, c_zero, quantized_of(node, a))


@converter("QLinearConcat", domain=MICROSOFT_DOMAIN)
def qlinear_concat(node: Node, scale: RelayExpr, zero: RelayExpr, *given: RelayExpr) -> RelayExpr:
    """Quantised tensors, each with a scale and a zero point, joined along an axis with new ones."""
    if len(given) % 3 or not given:
        raise node.fail(f"{len(given)} inputs are not tensors with a scale and a zero point each")
    parts = [scalar_dequantized(node, *given[place : place + 3]) for place in range(0, len(given), 3)]
    joined = relay.concatenate(parts, axis=node.axis(0, node.rank(given[0])))
    return scalar_quantized(node, joined, scale, zero, quantized_of(node, zero))


@converter("QGemm", domain=MICROSOFT_DOMAIN)
def qgemm(
    node: Node,
    a: RelayExpr,
    a_scale: RelayExpr,
    a_zero: RelayExpr | None,
    b: RelayExpr,
    b_scale: RelayExpr,
    b_zero: RelayExpr | None,
    c: RelayExpr | None = None,
    y_scale: RelayExpr | None = None,
    y_zero: RelayExpr | None = None,
) -> RelayExpr:
    """``alpha * a @ b + c`` of quantised matrices; ``c`` is int32, in the scale of the product. Without a scale for the
    result, it is float32."""
    # Scales and zero points of b are those of its columns, as they are in the product.
    if node.attr("transA", 0):
        a = relay.transpose(a, (1, 0))
    if node.attr("transB", 0):
        b = relay.transpose(b, (1, 0))
    product = integer_product(node, a, b, a_zero, b_zero)
    if c is not None:
        product = relay.add(product, c)
    factor = relay.multiply(a_scale, b_scale)
    alpha = float(node.attr("alpha", 1.0))
    if alpha != 1:
        factor = relay.multiply(factor, const(alpha, "float32"))
    if y_scale is None:
        return relay.multiply(relay.cast(product, "float32"), factor)
    kind = quantized_of(node, a if y_zero is None else y_zero)
    scales = product_scales(node, a_scale, b_scale, alpha)
    made = dialect_requantized(node, product, scales, y_scale, y_zero, kind, -1)
    return requantized(node, product, factor, y_scale, y_zero, kind) if made is None else made


def scaled_product(
    node: Node, product: RelayExpr, a_scale: RelayExpr, b_scale: RelayExpr, bias: RelayExpr | None
) -> RelayExpr:
    """A product of integers as the numbers that it stands for, and what is added to it."""
    dtype = node.dtype(a_scale)
    made = relay.multiply(converted(node, product, dtype), relay.multiply(a_scale, b_scale))
    return made if bias is None else relay.add(made, bias)


@converter("MatMulIntegerToFloat", domain=MICROSOFT_DOMAIN)
def matmul_integer_to_float(
    node: Node,
    a: RelayExpr,
    b: RelayExpr,
    a_scale: RelayExpr,
    b_scale: RelayExpr,
    a_zero: RelayExpr | None = None,
    b_zero: RelayExpr | None = None,
    bias: RelayExpr | None = None,
) -> RelayExpr:
    """The product of quantised matrices, as the numbers that it stands for."""
    product = integer_product(node, a, b, a_zero, b_zero)
    return scaled_product(node, product, rows_aligned(node, a_scale, a), b_scale, bias)


@converter("DynamicQuantizeMatMul", domain=MICROSOFT_DOMAIN)
def dynamic_quantize_matmul(
    node: Node,
    a: RelayExpr,
    b: RelayExpr,
    b_scale: RelayExpr,
    b_zero: RelayExpr | None = None,
    bias: RelayExpr | None = None,
) -> RelayExpr:
    """As ``MatMulIntegerToFloat``, with a left operand that is quantised here."""
    whole, scale, zero = dynamic_quantize_linear(node, a)
    return scaled_product(node, integer_product(node, whole, b, zero, b_zero), scale, b_scale, bias)


# Weights of few bits


def _unpacked(node: Node, packed: RelayExpr, bits: int) -> RelayExpr:
    """Integers of ``bits`` bits, lowest first, from the last axis of bytes; as uint8, with one more axis for those of
    one byte joined into the last."""
    shape = node.static_shape(packed, "the packed weight")
    if bits == 8:
        return packed
    mask = node.constant((1 << bits) - 1, "uint8")
    parts = [
        relay.bitwise_and(relay.right_shift(packed, node.constant(shift, "uint8")), mask)
        for shift in range(0, 8, bits)
    ]
    return relay.reshape(relay.stack(parts, axis=-1), (*shape[:-1], shape[-1] * len(parts)))


def _zero_points(
    node: Node, zero: RelayExpr | None, columns: int, blocks: int, bits: int, dtype: str
) -> RelayExpr:
    if zero is None:
        return node.constant(1 << (bits - 1), dtype)
    if node.dtype(zero) != "uint8":
        return converted(node, relay.reshape(zero, (columns, blocks, 1)), dtype)
    row = -(-blocks * bits // 8)
    whole = _unpacked(node, relay.reshape(zero, (columns, row)), bits)
    kept = relay.strided_slice(whole, begin=[0, 0], end=[columns, blocks])
    return relay.cast(relay.reshape(kept, (columns, blocks, 1)), dtype)


@converter("MatMulNBits", domain=MICROSOFT_DOMAIN)
def matmul_n_bits(
    node: Node,
    a: RelayExpr,
    b: RelayExpr,
    scales: RelayExpr,
    zero: RelayExpr | None = None,
    group_index: RelayExpr | None = None,
    bias: RelayExpr | None = None,
) -> RelayExpr:
    """A product with a weight of 2, 4 or 8 bits in blocks: (columns, blocks, bytes of a block), each block with a scale
    and a zero point."""
    depth, columns = int(node.attr("K")), int(node.attr("N"))
    bits, block = int(node.attr("bits", 4)), int(node.attr("block_size"))
    if bits not in (2, 4, 8):
        raise node.fail(f"weights of {bits} bits are not supported; only 2, 4 and 8")
    if group_index is not None:
        raise node.fail("g_idx is not supported")
    blocks = -(-depth // block)
    dtype = node.dtype(a)
    packed = relay.reshape(b, (columns, blocks, block * bits // 8))
    whole = relay.cast(_unpacked(node, packed, bits), dtype)
    centred = relay.subtract(whole, _zero_points(node, zero, columns, blocks, bits, dtype))
    scaled = relay.multiply(centred, converted(node, relay.reshape(scales, (columns, blocks, 1)), dtype))
    weight: RelayExpr = relay.reshape(scaled, (columns, blocks * block))
    if blocks * block != depth:
        weight = relay.strided_slice(weight, begin=[0, 0], end=[columns, depth])
    made = matmul(node, a, relay.transpose(weight, (1, 0)))
    return made if bias is None else relay.add(made, bias)
