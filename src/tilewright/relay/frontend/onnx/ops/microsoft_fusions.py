"""Operators that ONNX Runtime's optimisers put in place of several, and early forms of operators that ONNX has now."""

from __future__ import annotations

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.convolution import fused_conv
from tilewright.relay.frontend.onnx.ops.elementwise import gelu_exact, gelu_tanh
from tilewright.relay.frontend.onnx.ops.matrices import fused_matmul, matmul
from tilewright.relay.frontend.onnx.ops.microsoft_quantization import channels_first
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter

# Activations and softmax with what is added before them


@converter("BiasSoftmax", domain=MICROSOFT_DOMAIN)
def bias_softmax(node: Node, data: Expr, bias: Expr) -> Expr:
    """The softmax of a sum, over all axes from ``axis`` on."""
    total = data + bias
    rank = node.rank(total)
    axis = node.axis(1, rank)
    if axis == rank - 1:
        return relay.nn.softmax(total, axis)
    shape = node.static_shape(total, "the sum")
    flat = relay.reshape(total, (*shape[:axis], -1))
    return relay.reshape(relay.nn.softmax(flat, axis), shape)


@converter("BiasSplitGelu", domain=MICROSOFT_DOMAIN)
def bias_split_gelu(node: Node, data: Expr, bias: Expr) -> Expr:
    """The first half of the features of a sum, times GELU of the second."""
    first, second = relay.split(data + bias, 2, axis=-1)
    return first * gelu_exact(node, second)


@converter("BiasAdd", domain=MICROSOFT_DOMAIN)
def bias_add(node: Node, data: Expr, bias: Expr, skip: Expr) -> Expr:
    """Three tensors added, of which the second has only the last axis."""
    return data + bias + skip


@converter("GemmFastGelu", domain=MICROSOFT_DOMAIN)
def gemm_fast_gelu(node: Node, data: Expr, weight: Expr, bias: Expr | None = None) -> RelayExpr:
    """GELU by tanh, of a product."""
    made = matmul(node, data, weight)
    return gelu_tanh(node, made if bias is None else made + bias)


# Products and convolutions


@converter("TransposeMatMul", domain=MICROSOFT_DOMAIN)
def transpose_matmul(node: Node, a: Expr, b: Expr) -> Expr:
    """The name that FusedMatMul had before."""
    made: Expr = fused_matmul(node, a, b)
    return made


@converter("NhwcFusedConv", domain=MICROSOFT_DOMAIN)
def nhwc_fused_conv(
    node: Node, data: Expr, weight: Expr, bias: Expr | None = None, addend: Expr | None = None
) -> Expr:
    """A convolution of data whose channels are last, what is added to it, and an activation."""
    rank = node.rank(data)
    first = (0, rank - 1, *range(1, rank - 1))
    extra = None if addend is None else relay.transpose(addend, first)
    made = fused_conv(node, relay.transpose(data, first), weight, bias, extra)
    return relay.transpose(made, (0, *range(2, rank), 1))


# Norms of groups


def _group_norm(node: Node, data: Expr, scale: Expr, shift: Expr) -> RelayExpr:
    """Mean 0 and variance 1 within each group of channels; then perhaps x * sigmoid(x)."""
    epsilon, groups = float(node.attr("epsilon", 1e-5)), int(node.attr("groups"))

    def normalised(_: Node, channels: RelayExpr) -> RelayExpr:
        return relay.nn.group_norm(channels, scale, shift, groups, 1, epsilon)

    made = channels_first(normalised, 1)(node, data)
    activation = int(node.attr("activation"))
    if activation not in (0, 1):
        raise node.fail(f"activation {activation} is not supported; only 0, none, and 1, SiLU")
    return relay.multiply(made, relay.sigmoid(made)) if activation else made


@converter("GroupNorm", domain=MICROSOFT_DOMAIN)
def group_norm(node: Node, data: Expr, scale: Expr, shift: Expr) -> RelayExpr:
    """A group norm, by default of data whose channels are last."""
    return _group_norm(node, data, scale, shift)


@converter("SkipGroupNorm", domain=MICROSOFT_DOMAIN)
def skip_group_norm(
    node: Node, data: Expr, scale: Expr, shift: Expr, skip: Expr, bias: Expr | None = None
) -> list[RelayExpr]:
    """The group norm of a sum, and the sum. The second tensor may have one value for each channel of an image."""
    rank = node.rank(data)
    if node.rank(skip) == 2 and rank == 4:
        places = (1, 2) if node.attr("channels_last", 1) else (2, 3)
        for place in places:
            skip = relay.expand_dims(skip, place)
    total = data + skip
    if bias is not None:
        total = total + (bias if node.attr("channels_last", 1) else relay.expand_dims(bias, 1, rank - 2))
    return [_group_norm(node, total, scale, shift), total]


# Others


@converter("ExpandDims", domain=MICROSOFT_DOMAIN)
def expand_dims(node: Node, data: Expr, axis: Expr) -> Expr:
    """One more axis."""
    return relay.expand_dims(data, node.ints(axis, "the axis")[0])


@converter("CDist", domain=MICROSOFT_DOMAIN)
def cdist(node: Node, a: Expr, b: Expr) -> Expr:
    """The distances between the rows of two matrices, or their squares."""
    metric = str(node.attr("metric", "sqeuclidean"))
    if metric not in ("euclidean", "sqeuclidean"):
        raise node.fail(f"the metric {metric!r} is not supported; only euclidean and sqeuclidean")
    apart = relay.expand_dims(a, 1) - relay.expand_dims(b, 0)
    squares = relay.sum(apart * apart, axis=2)
    return relay.sqrt(squares) if metric == "euclidean" else squares
