"""Quantised layers that ONNX Runtime's quantiser writes: attention, recurrent layers, embeddings, pooling, means."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.microsoft_attention import attention_of_projection
from tilewright.relay.frontend.onnx.ops.microsoft_layers import embed_layer_normalization
from tilewright.relay.frontend.onnx.ops.microsoft_quantization import channels_first, scaled_product, through
from tilewright.relay.frontend.onnx.ops.pooling import max_pool
from tilewright.relay.frontend.onnx.ops.quantization import integer_product
from tilewright.relay.frontend.onnx.ops.quantization_arithmetic import (
    dequantized,
    quantized_of,
    scalar_dequantized,
    scalar_quantized,
)
from tilewright.relay.frontend.onnx.ops.recurrent import lstm
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter


def as_operand(value: RelayExpr) -> Expr:
    """A value of an operator as what operators are written with."""
    assert isinstance(value, Expr)
    return value


@converter("QAttention", domain=MICROSOFT_DOMAIN)
def qattention(
    node: Node,
    data: RelayExpr,
    weights: RelayExpr,
    bias: RelayExpr,
    data_scale: RelayExpr,
    weight_scale: RelayExpr,
    mask: Expr | None = None,
    data_zero: RelayExpr | None = None,
    weight_zero: RelayExpr | None = None,
    past: Expr | None = None,
) -> Sequence[Expr]:
    """Attention whose projection is a product of quantised matrices."""
    product = integer_product(node, data, weights, data_zero, weight_zero)
    projected = as_operand(scaled_product(node, product, data_scale, weight_scale, bias))
    width = node.static_shape(weights, "the weights")[1]
    return attention_of_projection(node, projected, [width // 3] * 3, mask, past)


@converter("DynamicQuantizeLSTM", domain=MICROSOFT_DOMAIN)
def dynamic_quantize_lstm(
    node: Node,
    data: RelayExpr,
    weight: RelayExpr,
    state_weight: RelayExpr,
    bias: RelayExpr | None,
    lengths: RelayExpr | None,
    hidden: RelayExpr | None,
    cell: RelayExpr | None,
    peepholes: RelayExpr | None,
    weight_scale: RelayExpr,
    weight_zero: RelayExpr | None,
    state_scale: RelayExpr,
    state_zero: RelayExpr | None,
) -> list[RelayExpr]:
    """An LSTM with quantised weights, (directions, inputs, gates). Inputs and states stay what they are: to quantise
    them at each step, as ONNX Runtime does for speed, would only make the result less exact."""

    def restored(whole: RelayExpr, scale: RelayExpr, zero: RelayExpr | None) -> RelayExpr:
        """The weights as numbers, with gates first; scales are those of a direction, or of its columns."""
        places = 2 if node.rank(scale) == 1 else 1

        def spread(parameter: RelayExpr) -> RelayExpr:
            return relay.expand_dims(parameter, 1, places)

        numbers = dequantized(node, whole, spread(scale), None if zero is None else spread(zero))
        return relay.transpose(numbers, (0, 2, 1))

    made: list[RelayExpr] = lstm(
        node,
        data,
        restored(weight, weight_scale, weight_zero),
        restored(state_weight, state_scale, state_zero),
        bias,
        lengths,
        hidden,
        cell,
        peepholes,
    )
    return made


@converter("QEmbedLayerNormalization", domain=MICROSOFT_DOMAIN)
def qembed_layer_normalization(
    node: Node, words: Expr, segments: Expr | None, *rest: Expr | None
) -> Sequence[Expr]:
    """As ``EmbedLayerNormalization``, with quantised tables, scale and shift."""
    tables, mask, scales, zeros = rest[:5], rest[5], rest[6:11], (*rest[11:], *[None] * 5)[:5]
    numbers: list[Expr | None] = []
    for table, scale, zero in zip(tables, scales, zeros, strict=True):
        if table is None or scale is None:
            numbers.append(None)
        else:
            numbers.append(as_operand(scalar_dequantized(node, table, scale, zero)))
    words_table, positions, segments_table, gamma, beta = numbers
    if words_table is None or positions is None or gamma is None or beta is None:
        raise node.fail("a table or its scale is missing")
    made: Sequence[Expr] = embed_layer_normalization(
        node, words, segments, words_table, positions, segments_table, gamma, beta, mask
    )
    return made


@converter("NhwcMaxPool", domain=MICROSOFT_DOMAIN)
def nhwc_max_pool(node: Node, data: Expr) -> RelayExpr:
    """The largest element of each window of data whose channels are last."""
    return channels_first(lambda own, first: max_pool(own, first)[0], 1, always=True)(node, data)


def _mean(node: Node, data: RelayExpr) -> RelayExpr:
    axes = [int(axis) for axis in node.attr("axes", None) or range(node.rank(data))]
    return relay.mean(data, axis=axes, keepdims=bool(node.attr("keepdims", 1)))


@converter("QLinearReduceMean", domain=MICROSOFT_DOMAIN)
def qlinear_reduce_mean(node: Node, data: RelayExpr, *parameters: RelayExpr | None) -> RelayExpr:
    """The mean of a quantised tensor, quantised again."""
    return through(node, data, parameters, _mean)


@converter("QLinearWhere", domain=MICROSOFT_DOMAIN)
def qlinear_where(
    node: Node,
    condition: RelayExpr,
    x: RelayExpr,
    x_scale: RelayExpr,
    x_zero: RelayExpr | None,
    y: RelayExpr,
    y_scale: RelayExpr,
    y_zero: RelayExpr | None,
    z_scale: RelayExpr,
    z_zero: RelayExpr | None = None,
) -> RelayExpr:
    """Elements of one of two quantised tensors, quantised again."""
    kind = quantized_of(node, x if z_zero is None else z_zero)
    first, second = (
        scalar_quantized(node, scalar_dequantized(node, *side), z_scale, z_zero, kind)
        for side in ((x, x_scale, x_zero), (y, y_scale, y_zero))
    )
    return relay.where(condition, first, second)
