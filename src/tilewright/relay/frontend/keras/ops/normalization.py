"""Normalisation and scaling."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.keras.node import LayerNode
from tilewright.relay.frontend.keras.registry import layer_converter


@layer_converter("BatchNormalization")
def batch_normalization(node: LayerNode, data: Expr) -> Expr:
    """Channels normalised by the statistics of training."""
    layer = node.layer
    mean, variance = node.required("moving_mean"), node.required("moving_variance")
    gamma = node.weight("gamma") if layer.scale else None
    beta = node.weight("beta") if layer.center else None
    axis = int(layer.axis) % node.rank(data)
    size = node.static_shape(mean)
    return relay.nn.batch_norm(
        data,
        const(np.ones(size, "float32")) if gamma is None else gamma,
        const(np.zeros(size, "float32")) if beta is None else beta,
        mean,
        variance,
        axis=axis,
        epsilon=float(layer.epsilon),
    )[0]


@layer_converter("LayerNormalization")
def layer_normalization(node: LayerNode, data: Expr) -> Expr:
    """Elements normalised along axes, scaled and moved."""
    layer = node.layer
    given = [layer.axis] if isinstance(layer.axis, int) else list(layer.axis)
    axes = sorted(int(axis) % node.rank(data) for axis in given)
    if getattr(layer, "rms_scaling", False):
        square = relay.mean(relay.multiply(data, data), axis=axes, keepdims=True)
        made = relay.multiply(data, relay.rsqrt(relay.add(square, node.constant(float(layer.epsilon), data))))
    else:
        mean = relay.mean(data, axis=axes, keepdims=True)
        spread = relay.variance(data, axis=axes, keepdims=True)
        made = relay.multiply(
            relay.subtract(data, mean),
            relay.rsqrt(relay.add(spread, node.constant(float(layer.epsilon), data))),
        )
    shape = [extent if axis in axes else 1 for axis, extent in enumerate(node.shape(data))]
    for name, function in (("gamma", relay.multiply), ("beta", relay.add)):
        weight = node.weight(name)
        if weight is not None:
            made = function(made, node.reshaped_weight(weight, [int(one or 1) for one in shape]))
    return made


@layer_converter("GroupNormalization")
def group_normalization(node: LayerNode, data: Expr) -> Expr:
    """Groups of channels normalised, scaled and moved."""
    layer = node.layer
    axis = int(layer.axis) % node.rank(data)
    channels = node.static_shape(data)[axis]
    groups = channels if int(layer.groups) == -1 else int(layer.groups)
    gamma, beta = node.weight("gamma"), node.weight("beta")
    return relay.nn.group_norm(
        data,
        const(np.ones(channels, "float32")) if gamma is None else gamma,
        const(np.zeros(channels, "float32")) if beta is None else beta,
        num_groups=groups,
        axis=axis,
        epsilon=float(layer.epsilon),
    )


@layer_converter("UnitNormalization")
def unit_normalization(node: LayerNode, data: Expr) -> Expr:
    """Vectors of length one."""
    axes = [node.layer.axis] if isinstance(node.layer.axis, int) else list(node.layer.axis)
    return relay.nn.l2_normalize(data, eps=1e-12, axis=[int(axis) % node.rank(data) for axis in axes])


@layer_converter("Rescaling")
def rescaling(node: LayerNode, data: Expr) -> Expr:
    """Elements times a scale, plus an offset."""
    given = data if node.dtype(data).startswith("float") else relay.cast(data, "float32")
    scale = node.constant(np.asarray(node.layer.scale, "float32"), given)
    return relay.add(
        relay.multiply(given, scale), node.constant(np.asarray(node.layer.offset, "float32"), given)
    )


@layer_converter("Normalization")
def normalization(node: LayerNode, data: Expr) -> Expr:
    """Elements minus a mean, divided by a deviation."""
    mean, variance = node.array(node.layer.mean), node.array(node.layer.variance)
    deviation = np.maximum(np.sqrt(variance), 1e-7)
    if node.layer.invert:
        return relay.add(relay.multiply(data, node.constant(deviation, data)), node.constant(mean, data))
    return relay.divide(relay.subtract(data, node.constant(mean, data)), node.constant(deviation, data))


@layer_converter("LayerScale")
def layer_scale(node: LayerNode, data: Expr) -> Expr:
    """Channels times learnt factors (ConvNeXt)."""
    return relay.multiply(data, node.required("gamma"))
