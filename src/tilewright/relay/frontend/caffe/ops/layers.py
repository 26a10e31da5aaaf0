"""Convolutions, pooling, products, normalisation."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.caffe.node import CaffeNode
from tilewright.relay.frontend.caffe.registry import LAYERS
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.protobuf import Message


def _pair(node: CaffeNode, params: Message, name: str, short: str, default: int | None) -> list[int]:
    """A number for rows and columns: one for both, two, or each by its own name."""
    if params.has(f"{short}_h") or params.has(f"{short}_w"):
        return [int(getattr(params, f"{short}_h")), int(getattr(params, f"{short}_w"))]
    given = [int(one) for one in getattr(params, name)]
    if not given:
        if default is None:
            raise node.fail(f"{name} is missing")
        return [default, default]
    return given * 2 if len(given) == 1 else given[:2]


def _window(node: CaffeNode, params: Message) -> dict[str, Any]:
    """The window of a convolution, as Relay's convolutions take it."""
    dilation = [int(one) for one in params.dilation] or [1]
    return {
        "kernel_size": _pair(node, params, "kernel_size", "kernel", None),
        "strides": _pair(node, params, "stride", "stride", 1),
        "padding": _pair(node, params, "pad", "pad", 0),
        "dilation": dilation * 2 if len(dilation) == 1 else dilation,
    }


def _with_bias(node: CaffeNode, params: Message, made: Expr, outputs: int) -> Expr:
    return relay.nn.bias_add(made, node.weight(1, (outputs,)), axis=1) if params.bias_term else made


@LAYERS.register("Convolution", "DepthwiseConvolution", "ConvolutionDepthwise")
def convolution(node: CaffeNode, data: Expr) -> Expr:
    """A convolution of images."""
    params = node.params.convolution_param
    window = _window(node, params)
    outputs, channels = int(params.num_output), node.static_shape(data)[1]
    groups = channels if node.op_type != "Convolution" else int(params.group)
    weight = node.weight(0, (outputs, channels // groups, *window["kernel_size"]))
    made = relay.nn.conv2d(data, weight, groups=groups, channels=outputs, **window)
    return _with_bias(node, params, made, outputs)


@LAYERS.register("Deconvolution")
def deconvolution(node: CaffeNode, data: Expr) -> Expr:
    """A transposed convolution of images."""
    params = node.params.convolution_param
    window = _window(node, params)
    outputs, channels, groups = int(params.num_output), node.static_shape(data)[1], int(params.group)
    weight = node.weight(0, (channels, outputs // groups, *window["kernel_size"]))
    made = relay.nn.conv2d_transpose(data, weight, groups=groups, channels=outputs, **window)
    return _with_bias(node, params, made, outputs)


@LAYERS.register("Pooling")
def pooling(node: CaffeNode, data: Expr) -> list[Expr]:
    """The largest or the mean of each window; the last window may reach beyond the image."""
    params = node.params.pooling_param
    if params.pool == "STOCHASTIC":
        raise node.fail("stochastic pooling is not supported")
    if len(node.entry.tops) > 1:
        raise node.fail("the places of the largest elements are not supported")
    sizes = node.static_shape(data)[2:]
    if params.global_pooling:
        reduce = relay.max if params.pool == "MAX" else relay.mean
        return [reduce(data, axis=[2, 3], keepdims=True)]
    kernel = _pair(node, params, "kernel_size", "kernel", None)
    strides, padding = _pair(node, params, "stride", "stride", 1), _pair(node, params, "pad", "pad", 0)
    ceil_mode = params.round_mode == "CEIL"
    counts = []
    for size, taps, step, border in zip(sizes, kernel, strides, padding, strict=True):
        reach = size + 2 * border - taps
        count = (-(-reach // step) if ceil_mode else reach // step) + 1
        # A window that begins behind the border is left out.
        counts.append(count - 1 if border and (count - 1) * step >= size + border else count)
    if params.pool == "MAX":
        made: Expr = relay.nn.max_pool2d(data, kernel, strides, padding=padding, ceil_mode=ceil_mode)
    else:
        # The border counts as zeros, but not what the last window reaches beyond it.
        widths = ((0, 0), (0, 0), (padding[0], padding[0]), (padding[1], padding[1]))
        padded = relay.nn.pad(data, widths, node.constant(0, data)) if any(padding) else data
        made = relay.nn.avg_pool2d(padded, kernel, strides, ceil_mode=ceil_mode, count_include_pad=False)
    if list(node.static_shape(made)[2:]) != counts:
        made = relay.strided_slice(made, [0, 0], counts, axes=[2, 3])
    return [made]


@LAYERS.register("InnerProduct")
def inner_product(node: CaffeNode, data: Expr) -> Expr:
    """A product of everything from an axis on with a weight (outputs, inputs)."""
    params = node.params.inner_product_param
    shape = node.static_shape(data)
    axis = node.chosen_axis(params.axis, len(shape))
    inputs, outputs = prod(shape[axis:]), int(params.num_output)
    if params.transpose:
        weight = node.stored(node.array(0, (inputs, outputs)).T, 0)
    else:
        weight = node.weight(0, (outputs, inputs))
    made = relay.nn.dense(relay.reshape(data, (-1, inputs)), weight, units=outputs)
    return relay.reshape(_with_bias(node, params, made, outputs), (*shape[:axis], outputs))


@LAYERS.register("Embed")
def embed(node: CaffeNode, data: Expr) -> Expr:
    """Rows of a table."""
    params = node.params.embed_param
    outputs = int(params.num_output)
    table = node.weight(0, (int(params.input_dim), outputs))
    made = relay.take(table, relay.cast(data, "int32"), axis=0)
    return relay.add(made, node.weight(1, (outputs,))) if params.bias_term else made


@LAYERS.register("BatchNorm")
def batch_norm(node: CaffeNode, data: Expr) -> Expr:
    """Channels normalised by the statistics of training, which are stored times a factor."""
    params = node.params.batch_norm_param
    factor = float(node.array(2).reshape(-1)[0]) if len(node.weights) > 2 else 1.0
    factor = 1.0 / factor if factor else 0.0
    mean, variance = (node.array(place).reshape(-1) * np.float32(factor) for place in (0, 1))
    ones, zeros = np.ones_like(mean), np.zeros_like(mean)
    gamma, beta = node.constant(ones, data), node.constant(zeros, data)
    return relay.nn.batch_norm(
        data, gamma, beta, node.stored(mean, 2), node.stored(variance, 3), axis=1, epsilon=params.eps
    )[0]


def _spread(node: CaffeNode, data: Expr, value: Expr, axis: int) -> Expr:
    """A tensor whose first axis is an axis of the data."""
    shape = node.static_shape(value)
    rank = node.rank(data)
    if not shape:
        return value
    begin = node.chosen_axis(axis, rank)
    return relay.reshape(value, (*shape, *[1] * (rank - begin - len(shape))))


@LAYERS.register("Scale")
def scale(node: CaffeNode, data: Expr, *factor: Expr) -> Expr:
    """Elements times numbers along axes, and perhaps plus others."""
    params = node.params.scale_param
    by = factor[0] if factor else node.weight(0)
    made = relay.multiply(data, _spread(node, data, by, params.axis))
    if not params.bias_term:
        return made
    return relay.add(made, _spread(node, data, node.weight(0 if factor else 1), params.axis))


@LAYERS.register("Bias")
def bias(node: CaffeNode, data: Expr, *more: Expr) -> Expr:
    """Numbers added along axes."""
    added = more[0] if more else node.weight(0)
    return relay.add(data, _spread(node, data, added, node.params.bias_param.axis))


@LAYERS.register("LRN")
def lrn(node: CaffeNode, data: Expr) -> Expr:
    """Elements divided by a power of the squares around them in other channels."""
    params = node.params.lrn_param
    if params.norm_region == "WITHIN_CHANNEL":
        raise node.fail("normalisation within a channel is not supported")
    return relay.nn.lrn(
        data, size=int(params.local_size), axis=1, bias=params.k, alpha=params.alpha, beta=params.beta
    )


@LAYERS.register("MVN")
def mvn(node: CaffeNode, data: Expr) -> Expr:
    """Images with a mean of zero and perhaps a variance of one."""
    params = node.params.mvn_param
    axes = list(range(1 if params.across_channels else 2, node.rank(data)))
    centred = relay.subtract(data, relay.mean(data, axis=axes, keepdims=True))
    if not params.normalize_variance:
        return centred
    variance = relay.mean(relay.multiply(centred, centred), axis=axes, keepdims=True)
    return relay.divide(centred, relay.add(relay.sqrt(variance), node.constant(params.eps, data)))


@LAYERS.register("Normalize")
def normalize(node: CaffeNode, data: Expr) -> Expr:
    """Vectors of channels, or whole images, divided by their length, times learned numbers."""
    params = node.params.norm_param
    axes = list(range(1, node.rank(data))) if params.across_spatial else [1]
    squares = relay.sum(relay.multiply(data, data), axis=axes, keepdims=True)
    made = relay.divide(data, relay.sqrt(relay.add(squares, node.constant(params.eps, data))))
    shape = (1,) * node.rank(data) if params.channel_shared else (1, -1, *[1] * (node.rank(data) - 2))
    return relay.multiply(made, relay.reshape(node.weight(0), shape))
