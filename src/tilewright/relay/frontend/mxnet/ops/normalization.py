"""Normalisation."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


@converter("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm")
def batch_norm(node: SymbolNode, data: Expr, gamma: Expr, beta: Expr, mean: Expr, variance: Expr) -> Expr:
    """Channels normalised by the statistics of training. The scale is one unless fix_gamma is off."""
    if node.flag("output_mean_var"):
        raise node.fail("output_mean_var is not supported")
    if node.flag("fix_gamma", True):
        gamma = node.constant(np.ones(node.static_shape(mean, "the mean")), gamma)
    axis = node.chosen_axis("axis", 1, node.rank(data))
    return relay.nn.batch_norm(
        data, gamma, beta, mean, variance, axis=axis, epsilon=node.number("eps", 1e-3)
    )[0]


@converter("InstanceNorm")
def instance_norm(node: SymbolNode, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    """Each channel of each image normalised."""
    return relay.nn.instance_norm(data, gamma, beta, axis=1, epsilon=node.number("eps", 1e-3))


@converter("LayerNorm")
def layer_norm(node: SymbolNode, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    """Elements normalised along an axis."""
    if node.flag("output_mean_var"):
        raise node.fail("output_mean_var is not supported")
    axis = node.chosen_axis("axis", -1, node.rank(data))
    return relay.nn.layer_norm(data, gamma, beta, axis=axis, epsilon=node.number("eps", 1e-5))


@converter("GroupNorm")
def group_norm(node: SymbolNode, data: Expr, gamma: Expr, beta: Expr) -> Expr:
    """Groups of channels normalised."""
    groups = node.integer("num_groups", 1)
    return relay.nn.group_norm(data, gamma, beta, groups, axis=1, epsilon=node.number("eps", 1e-5))


@converter("LRN")
def lrn(node: SymbolNode, data: Expr) -> Expr:
    """Elements divided by a power of the squares around them in other channels."""
    return relay.nn.lrn(
        data,
        size=node.integer("nsize"),
        axis=1,
        bias=node.number("knorm", 2.0),
        alpha=node.number("alpha", 1e-4),
        beta=node.number("beta", 0.75),
    )


@converter("L2Normalization")
def l2_normalization(node: SymbolNode, data: Expr) -> Expr:
    """Elements divided by the length of their image, their pixel or their channel."""
    mode = node.text("mode", "instance")
    rank = node.rank(data)
    axes = {"instance": range(1, rank), "channel": [1], "spatial": range(2, rank)}.get(mode)
    if axes is None:
        raise node.fail(f"the mode {mode!r} is not known")
    squares = relay.sum(relay.multiply(data, data), axis=list(axes), keepdims=True)
    length = relay.sqrt(relay.add(squares, node.constant(node.number("eps", 1e-10), data)))
    return relay.divide(data, length)
