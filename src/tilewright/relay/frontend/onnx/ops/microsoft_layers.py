"""Layers that Microsoft's optimiser fuses: activations with a bias, and norms of sums."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.elementwise import gelu_exact, gelu_tanh
from tilewright.relay.frontend.onnx.ops.normalization import rms_normalized, trailing_axes
from tilewright.relay.frontend.onnx.ops.partial_shapes import arange, extent
from tilewright.relay.frontend.onnx.registry import DEFAULT_DOMAIN, MICROSOFT_DOMAIN, converter

# Activations


@converter("Gelu", "FusedGelu", domain=MICROSOFT_DOMAIN)
def gelu(node: Node, data: Expr) -> RelayExpr:
    """GELU."""
    return gelu_exact(node, data)


@converter("BiasGelu", domain=MICROSOFT_DOMAIN)
def bias_gelu(node: Node, data: Expr, bias: Expr) -> RelayExpr:
    """GELU of a sum."""
    return gelu_exact(node, data + bias)


@converter("FastGelu", domain=MICROSOFT_DOMAIN)
def fast_gelu(node: Node, data: Expr, bias: Expr | None = None) -> RelayExpr:
    """GELU by tanh, of a sum."""
    return gelu_tanh(node, data if bias is None else data + bias)


@converter("QuickGelu", domain=MICROSOFT_DOMAIN)
def quick_gelu(node: Node, data: Expr) -> Expr:
    """GELU by the logistic function."""
    return data * relay.sigmoid(data * node.constant(float(node.attr("alpha", 1.702)), data))


# Norms


def layer_norm_of(node: Node, data: Expr, scale: Expr, bias: Expr | None, epsilon: float) -> Expr:
    """Mean 0 and variance 1 along the last axis, computed in float32 at least."""
    dtype = node.dtype(data)
    shift = bias if bias is not None else relay.zeros_like(scale)
    if dtype in ("float32", "float64"):
        return relay.nn.layer_norm(data, scale, shift, epsilon=epsilon)
    x, gamma, beta = (relay.cast(each, "float32") for each in (data, scale, shift))
    return relay.cast(relay.nn.layer_norm(x, gamma, beta, epsilon=epsilon), dtype)


def _total(data: Expr, skip: Expr, bias: Expr | None) -> Expr:
    return data + skip if bias is None else data + skip + bias


def _with_sum(node: Node, made: Expr, total: Expr) -> Sequence[Expr | None]:
    """The outputs of a fused norm: the result and, as the fourth, the sum that is normalised."""
    if node.wants(1) or node.wants(2):
        raise node.fail("the mean and the deviation, which only training uses, are not supported as outputs")
    return [made, None, None, total] if node.wants(3) else [made]


@converter("SkipLayerNormalization", domain=MICROSOFT_DOMAIN)
def skip_layer_normalization(
    node: Node,
    data: Expr,
    skip: Expr,
    scale: Expr,
    shift: Expr | None = None,
    bias: Expr | None = None,
) -> Sequence[Expr | None]:
    """The layer norm of a sum."""
    total = _total(data, skip, bias)
    return _with_sum(
        node, layer_norm_of(node, total, scale, shift, float(node.attr("epsilon", 1e-12))), total
    )


@converter("SkipSimplifiedLayerNormalization", domain=MICROSOFT_DOMAIN)
def skip_simplified_layer_normalization(
    node: Node, data: Expr, skip: Expr, scale: Expr, bias: Expr | None = None
) -> Sequence[Expr | None]:
    """A sum divided by the root of its mean square."""
    total = _total(data, skip, bias)
    return _with_sum(node, rms_normalized(node, total, scale, [node.rank(total) - 1]), total)


@converter("SimplifiedLayerNormalization", domain=MICROSOFT_DOMAIN)
@converter("SimplifiedLayerNormalization", domain=DEFAULT_DOMAIN)
def simplified_layer_normalization(node: Node, data: Expr, scale: Expr) -> Expr:
    """Data divided by the root of their mean square over the axes from ``axis`` on."""
    if node.wants(1):
        raise node.fail("the deviation, which only training uses, is not supported as an output")
    return rms_normalized(node, data, scale, trailing_axes(node, data))


@converter("EmbedLayerNormalization", domain=MICROSOFT_DOMAIN)
def embed_layer_normalization(
    node: Node,
    words: Expr,
    segments: Expr | None,
    word_table: Expr,
    position_table: Expr,
    segment_table: Expr | None,
    scale: Expr,
    shift: Expr,
    mask: Expr | None = None,
    position_ids: Expr | None = None,
) -> Sequence[Expr]:
    """The embeddings of words, positions and segments added up and normalised; and how many words a mask holds."""
    total: Expr = relay.take(word_table, words, axis=0)
    places = position_ids if position_ids is not None else arange(extent(node, words, 1))
    total = total + relay.take(position_table, places, axis=0)
    if segments is not None and segment_table is not None:
        total = total + relay.take(segment_table, segments, axis=0)
    made = layer_norm_of(node, total, scale, shift, float(node.attr("epsilon", 1e-12)))
    if mask is not None:
        counts: Expr = relay.sum(relay.cast(mask, "int32"), axis=1)
    else:
        counts = relay.sum(relay.cast(words, "int32") * const(0, "int32"), axis=1)
    return [made, counts, total][: max(node.num_outputs, 1)]
