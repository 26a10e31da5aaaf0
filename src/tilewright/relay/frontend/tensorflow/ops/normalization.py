"""Biases and normalisation."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import as_scalar, multiplied, sizes_of
from tilewright.relay.frontend.tensorflow.ops.windows import image_layout
from tilewright.relay.frontend.tensorflow.registry import converter


def channel_axis(node: GraphNode, data: Expr) -> int:
    """Where the channels are."""
    return node.rank(data) - 1 if image_layout(node).endswith("C") else 1


@converter("BiasAdd", "BiasAddV1")
def bias_add(node: GraphNode, data: Expr, bias: Expr) -> Expr:
    """A number for each channel added."""
    axis = channel_axis(node, data)
    return relay.nn.bias_add(data, bias, axis=axis)


@converter("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(
    node: GraphNode, data: Expr, scale: Expr, offset: Expr, mean: Expr, variance: Expr
) -> list[Expr]:
    """Normalisation of channels by given statistics, or, where a graph is one of training, by the batch's own."""
    axis = channel_axis(node, data)
    epsilon = float(node.attr("epsilon", 1e-4))
    dtype = node.dtype(data)
    given = data if dtype == node.dtype(scale) else relay.cast(data, node.dtype(scale))
    if node.attr("is_training", True):
        axes = [place for place in range(node.rank(data)) if place != axis]
        mean = relay.mean(given, axis=axes)
        variance = relay.variance(given, axis=axes)
        running = _unbiased(node, variance, given, axes)
    else:
        running = variance
    made: Any = relay.nn.batch_norm(given, scale, offset, mean, variance, axis=axis, epsilon=epsilon)[0]
    made = made if dtype == node.dtype(scale) else relay.cast(made, dtype)
    return [made, mean, running, mean, variance, mean]


def _unbiased(node: GraphNode, variance: Expr, data: Expr, axes: list[int]) -> Expr:
    """The variance of what the batch was drawn from, which training averages."""
    sizes = sizes_of(node, data)
    count = relay.cast(as_scalar(multiplied([sizes[axis] for axis in axes])), node.dtype(variance))
    one = node.constant(1, variance)
    return relay.multiply(variance, relay.divide(count, relay.maximum(relay.subtract(count, one), one)))


@converter("BatchNormWithGlobalNormalization")
def batch_norm_with_global_normalization(
    node: GraphNode, data: Expr, mean: Expr, variance: Expr, offset: Expr, scale: Expr
) -> Expr:
    """Normalisation of channels by given statistics."""
    if not node.attr("scale_after_normalization", True):
        scale = relay.ones_like(scale)
    epsilon = float(node.attr("variance_epsilon"))
    return relay.nn.batch_norm(data, scale, offset, mean, variance, axis=3, epsilon=epsilon)[0]


@converter("LRN", "LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(node: GraphNode, data: Expr) -> Expr:
    """Elements divided by a power of the sum of squares of their neighbours among the channels."""
    size = 2 * int(node.attr("depth_radius", 5)) + 1
    return relay.nn.lrn(
        data,
        size=size,
        axis=node.rank(data) - 1,
        bias=float(node.attr("bias", 1.0)),
        # Relay divides the sum by the number of neighbours.
        alpha=float(node.attr("alpha", 1.0)) * size,
        beta=float(node.attr("beta", 0.5)),
    )


@converter("L2Loss")
def l2_loss(node: GraphNode, data: Expr) -> Expr:
    """Half the sum of squares."""
    return relay.multiply(relay.sum(relay.multiply(data, data)), node.constant(0.5, data))
