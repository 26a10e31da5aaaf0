"""Normalisation."""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.sizes import multiplied, reshaped, sizes_of
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.ops.layers import channels_last
from tilewright.relay.frontend.paddle.registry import converter


def _or(node: PaddleNode, given: Expr | None, value: float, count: int, like: Expr) -> Expr:
    return node.constant(np.full(count, value), like) if given is None else given


@converter("batch_norm", "sync_batch_norm", reads="X Mean Variance Scale Bias", writes="Y")
def batch_norm(
    node: PaddleNode, data: Expr, mean: Expr, variance: Expr, scale: Expr | None, bias: Expr | None
) -> Expr:
    """Channels normalised by the statistics of training."""
    axis = node.rank(data) - 1 if channels_last(node) else 1
    count = node.static_shape(mean, "the mean")[0]
    gamma, beta = _or(node, scale, 1, count, mean), _or(node, bias, 0, count, mean)
    return relay.nn.batch_norm(
        data, gamma, beta, mean, variance, axis=axis, epsilon=node.real("epsilon", 1e-5)
    )[0]


@converter("instance_norm", reads="X Scale Bias", writes="Y")
def instance_norm(node: PaddleNode, data: Expr, scale: Expr | None, bias: Expr | None) -> Expr:
    """Each channel of each image normalised."""
    count = node.static_shape(data)[1]
    gamma, beta = _or(node, scale, 1, count, data), _or(node, bias, 0, count, data)
    return relay.nn.instance_norm(data, gamma, beta, axis=1, epsilon=node.real("epsilon", 1e-5))


@converter("group_norm", reads="X Scale Bias", writes="Y")
def group_norm(node: PaddleNode, data: Expr, scale: Expr | None, bias: Expr | None) -> Expr:
    """Groups of channels normalised."""
    axis = node.rank(data) - 1 if channels_last(node) else 1
    count = node.static_shape(data)[axis]
    gamma, beta = _or(node, scale, 1, count, data), _or(node, bias, 0, count, data)
    return relay.nn.group_norm(
        data, gamma, beta, node.integer("groups"), axis=axis, epsilon=node.real("epsilon", 1e-5)
    )


@converter("layer_norm", reads="X Scale Bias", writes="Y")
def layer_norm(node: PaddleNode, data: Expr, scale: Expr | None, bias: Expr | None) -> Expr:
    """Elements normalised over all axes from one on."""
    begin = node.chosen_axis("begin_norm_axis", 1, node.rank(data))
    sizes = sizes_of(node, data)
    inner = prod(node.static_shape(data)[begin:]) if begin < len(sizes) - 1 else node.shape(data)[-1]
    if inner is None:
        raise node.fail("the size of the normalised axes has to be known")
    gamma, beta = _or(node, scale, 1, inner, data), _or(node, bias, 0, inner, data)
    epsilon = node.real("epsilon", 1e-5)
    if begin == len(sizes) - 1:
        return relay.nn.layer_norm(data, gamma, beta, axis=-1, epsilon=epsilon)
    flat = reshaped(node, data, [multiplied(sizes[:begin]), inner])
    made = relay.nn.layer_norm(
        flat, relay.reshape(gamma, (inner,)), relay.reshape(beta, (inner,)), axis=-1, epsilon=epsilon
    )
    return reshaped(node, made, sizes)


@converter("norm", writes="Out")
def norm(node: PaddleNode, data: Expr) -> Expr:
    """Elements divided by the length of the vectors along an axis."""
    axis = node.chosen_axis("axis", -1, node.rank(data))
    squares = relay.sum(relay.multiply(data, data), axis=[axis], keepdims=True)
    length = relay.sqrt(relay.add(squares, node.constant(node.real("epsilon", 1e-10), data)))
    return relay.divide(data, length)


@converter("lrn")
def lrn(node: PaddleNode, data: Expr) -> Expr:
    """Elements divided by a power of the squares around them in other channels."""
    size = node.integer("n", 5)
    return relay.nn.lrn(
        data,
        size=size,
        axis=1,
        bias=node.real("k", 2.0),
        alpha=node.real("alpha", 1e-4) * size,
        beta=node.real("beta", 0.75),
    )


@converter("affine_channel", reads="X Scale Bias")
def affine_channel(node: PaddleNode, data: Expr, scale: Expr, bias: Expr) -> Expr:
    """Channels times a number plus a number."""
    shape = [1, -1, *[1] * (node.rank(data) - 2)]
    return relay.add(relay.multiply(data, relay.reshape(scale, shape)), relay.reshape(bias, shape))
