"""Layers with weights: convolutions, connected layers, normalisation."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.darknet.node import LayerNode
from tilewright.relay.frontend.darknet.ops.activation import activated
from tilewright.relay.frontend.darknet.registry import converter
from tilewright.relay.frontend.darknet.weights import Array


@converter("convolutional")
def convolutional(node: LayerNode, data: Expr) -> Expr:
    """A convolution with a bias or with batch normalisation, under an activation."""
    data = node.image(data)
    filters, size = node.integer("filters", 1), node.integer("size", 1)
    groups = node.integer("groups", 1)
    stride = node.integer("stride", 1)
    padding = size // 2 if node.integer("pad", 0) else node.integer("padding", 0)
    channels = node.static_shape(data)[1]
    if groups < 1 or channels % groups or filters % groups:
        raise node.fail(f"{channels} channels and {filters} filters are not {groups} groups")
    biases = node.take((filters,), "biases")
    normalize = node.integer("batch_normalize", 0)
    statistics = (
        [node.take((filters,), name) for name in ("scales", "means", "variances")] if normalize else []
    )
    shape = (filters, channels // groups, size, size)
    if node.integer("flipped", 0):
        weight = node.take((*shape[1:], filters), "weights").transpose(3, 0, 1, 2)
    else:
        weight = node.take(shape, "weights")
    made: Expr = relay.nn.conv2d(
        data,
        node.kept("weight", weight),
        strides=(node.integer("stride_y", stride), node.integer("stride_x", stride)),
        padding=(padding, padding),
        dilation=(node.integer("dilation", 1),) * 2,
        groups=groups,
        channels=filters,
        kernel_size=(size, size),
    )
    made = normalized(node, made, biases, statistics) if normalize else biased(node, made, biases)
    return activated(node, made, "logistic")


def biased(node: LayerNode, data: Expr, biases: Array) -> Expr:
    """A number for each channel added."""
    return relay.nn.bias_add(data, node.kept("biases", biases), axis=1)


def normalized(node: LayerNode, data: Expr, biases: Array, statistics: list[Array]) -> Expr:
    """Channels normalised by scales, means and variances."""
    scales, mean, variance = statistics
    # Darknet adds its small number to the deviation, not to the variance.
    spread = np.square(np.sqrt(variance.astype("float64")) + 1e-6).astype("float32")
    return relay.nn.batch_norm(
        data,
        node.kept("scales", scales),
        node.kept("biases", biases),
        node.kept("means", mean),
        node.kept("variances", spread),
        axis=1,
        epsilon=0.0,
    )[0]


@converter("connected")
def connected(node: LayerNode, data: Expr) -> Expr:
    """The product of each image's numbers and a matrix. Its statistics come after the matrix in the file."""
    flat = relay.nn.batch_flatten(data)
    units, width = node.integer("output", 1), node.static_shape(flat)[1]
    biases = node.take((units,), "biases")
    if node.weights.transposed:
        weight = node.take((width, units), "weights").T
    else:
        weight = node.take((units, width), "weights")
    made: Expr = relay.nn.dense(flat, node.kept("weight", np.ascontiguousarray(weight)), units=units)
    if node.integer("batch_normalize", 0):
        statistics = [node.take((units,), name) for name in ("scales", "means", "variances")]
        made = normalized(node, made, biases, statistics)
    else:
        made = biased(node, made, biases)
    return activated(node, made, "logistic")


@converter("batchnorm")
def batchnorm(node: LayerNode, data: Expr) -> Expr:
    """Channels normalised; the file has no biases for this layer."""
    channels = node.static_shape(data)[1]
    statistics = [node.take((channels,), name) for name in ("scales", "means", "variances")]
    return normalized(node, data, np.zeros(channels, "float32"), statistics)
