"""Layers on images: convolutions, pooling, normalisation, padding, other sizes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.node import ModelNode
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.coreml.layer import LayerNode
from tilewright.relay.frontend.coreml.registry import LAYERS

_SPACE: Final = {1: "W", 2: "HW", 3: "DHW"}


def same_padding(
    node: ModelNode, sizes: Any, kernel: Any, strides: Any, dilations: Any, before_heavy: bool
) -> list[int]:
    """Padding that makes the result as large as the image divided by the strides: before all axes, then after them."""
    before, after = [], []
    for size, taps, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        if size is None:
            raise node.fail("padding 'same' needs the size of the images: fix it with shape=")
        reach = (taps - 1) * dilation + 1
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        small, large = total // 2, total - total // 2
        before.append(large if before_heavy else small)
        after.append(small if before_heavy else large)
    return before + after


def border(amounts: Message, rank: int = 2) -> list[int]:
    """Amounts of a border before all axes, then after them; none where none are given."""
    edges = amounts.borderAmounts
    if not edges:
        return [0] * (2 * rank)
    return [int(one.startEdgeSize) for one in edges] + [int(one.endEdgeSize) for one in edges]


def _padding(
    node: LayerNode, params: Message, data: Expr, kernel: Any, strides: Any, dilations: Any
) -> list[int]:
    if params.has("same"):
        heavy = params.same.asymmetryMode == "TOP_LEFT_HEAVY"
        return same_padding(node, node.shape(data)[-2:], kernel, strides, dilations, heavy)
    return border(params.valid.paddingAmounts)


def _pair(values: Any, default: int) -> list[int]:
    return [int(one) for one in values] if len(values) else [default, default]


@LAYERS.register("convolution")
def convolution(node: LayerNode, params: Message, data: Expr, *weights: Expr) -> Expr:
    """A convolution of images, or a transposed one."""
    if weights:
        raise node.fail("weights that are computed are not supported")
    kernel, strides = _pair(params.kernelSize, 3), _pair(params.stride, 1)
    dilations, groups = _pair(params.dilationFactor, 1), int(params.nGroups) or 1
    outputs, inputs = int(params.outputChannels), int(params.kernelChannels)
    padding = _padding(node, params, data, kernel, strides, dilations)
    if params.isDeconvolution:
        weight = node.weight(params.weights, (inputs, outputs // groups, *kernel), "weight")
        more = [0, 0]
        wanted = [int(one) for one in params.outputShape]
        sizes = node.static_shape(data)[-2:]
        full = [
            (size - 1) * stride + dilation * (taps - 1) + 1
            for size, stride, dilation, taps in zip(sizes, strides, dilations, kernel, strict=True)
        ]
        if params.has("same") and not wanted:
            wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
        if wanted:
            extra = [have - want for have, want in zip(full, wanted, strict=True)]
            heavy = params.same.asymmetryMode == "TOP_LEFT_HEAVY"
            before = [max((one + 1) // 2 if heavy else one // 2, 0) for one in extra]
            after = [max(one - first, 0) for one, first in zip(extra, before, strict=True)]
            padding, more = before + after, [max(-one, 0) for one in extra]
        made: Expr = relay.nn.conv2d_transpose(
            data,
            weight,
            strides=strides,
            padding=padding,
            dilation=dilations,
            groups=groups,
            channels=outputs,
            kernel_size=kernel,
            output_padding=more,
        )
    else:
        weight = node.weight(params.weights, (outputs, inputs, *kernel), "weight")
        made = relay.nn.conv2d(
            data,
            weight,
            strides=strides,
            padding=padding,
            dilation=dilations,
            groups=groups,
            channels=outputs,
            kernel_size=kernel,
        )
    return _with_bias(node, params, made, outputs, 1)


def _with_bias(node: LayerNode, params: Message, made: Expr, outputs: int, axis: int) -> Expr:
    if not params.hasBias:
        return made
    return relay.nn.bias_add(made, node.weight(params.bias, (outputs,), "bias"), axis=axis)


@LAYERS.register("convolution3d")
def convolution3d(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A convolution of volumes."""
    if params.isDeconvolution:
        raise node.fail("transposed convolutions of volumes are not supported")
    axes = ("Depth", "Height", "Width")
    kernel, strides, dilations = (
        [int(getattr(params, name + axis)) or 1 for axis in axes] for name in ("kernel", "stride", "dilation")
    )
    padding = _padding3d(node, params, data, kernel, strides, dilations)
    groups, outputs = params.nGroups or 1, params.outputChannels
    weight = node.weight(params.weights, (outputs, params.inputChannels // groups, *kernel), "weight")
    made = relay.nn.conv3d(
        data,
        weight,
        strides=strides,
        padding=padding,
        dilation=dilations,
        groups=groups,
        channels=outputs,
        kernel_size=kernel,
    )
    return _with_bias(node, params, made, outputs, 1)


def _padding3d(
    node: LayerNode, params: Message, data: Expr, kernel: Any, strides: Any, dilations: Any
) -> list[int]:
    if params.paddingType == "VALID":
        return [0] * 6
    if params.paddingType == "SAME":
        return same_padding(node, node.shape(data)[-3:], kernel, strides, dilations, False)
    sides = ("Front", "Top", "Left", "Back", "Bottom", "Right")
    return [int(getattr(params, f"customPadding{side}")) for side in sides]


@LAYERS.register("pooling")
def pooling(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The largest, the mean or the root of the squares of each window, or of the whole image."""
    if params.type == "L2":
        return relay.sqrt(_pooled(node, params, relay.multiply(data, data), "SUM"))
    return _pooled(node, params, data, params.type)


def _pooled(node: LayerNode, params: Message, data: Expr, kind: str) -> Expr:
    rank = node.rank(data)
    if params.globalPooling:
        reduce = {"MAX": relay.max, "AVERAGE": relay.mean, "SUM": relay.sum}[kind]
        return reduce(data, axis=[rank - 2, rank - 1], keepdims=True)
    kernel, strides = _pair(params.kernelSize, 3), _pair(params.stride, 1)
    ceil_mode = params.has("includeLastPixel")
    if ceil_mode:
        amounts = _pair(params.includeLastPixel.paddingAmounts, 0)
        padding = amounts * 2
    else:
        padding = _padding(node, params, data, kernel, strides, [1, 1])
    window: dict[str, Any] = {
        "pool_size": kernel,
        "strides": strides,
        "padding": padding,
        "ceil_mode": ceil_mode,
    }
    if kind == "MAX":
        return relay.nn.max_pool2d(data, **window)
    counted = kind == "SUM" or not params.avgPoolExcludePadding
    made = relay.nn.avg_pool2d(data, **window, count_include_pad=counted)
    return relay.multiply(made, node.constant(kernel[0] * kernel[1], data)) if kind == "SUM" else made


@LAYERS.register("pooling3d")
def pooling3d(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The largest or the mean of each window of a volume."""
    axes = ("Depth", "Height", "Width")
    kernel, strides = (
        [int(getattr(params, name + axis)) or 1 for axis in axes] for name in ("kernel", "stride")
    )
    padding = _padding3d(node, params, data, kernel, strides, [1, 1, 1])
    if params.type == "MAX":
        return relay.nn.max_pool3d(data, kernel, strides, padding=padding)
    counted = not params.countExcludePadding
    return relay.nn.avg_pool3d(data, kernel, strides, padding=padding, count_include_pad=counted)


@LAYERS.register("globalPooling3d")
def global_pooling3d(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The largest or the mean of volumes."""
    reduce = relay.max if params.type == "MAX" else relay.mean
    return reduce(data, axis=[-3, -2, -1], keepdims=True)


@LAYERS.register("batchnorm")
def batch_norm(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Channels normalised by the statistics of training, or each image by its own."""
    channels = (int(params.channels),)
    gamma, beta = node.weight(params.gamma, channels, "gamma"), node.weight(params.beta, channels, "beta")
    axis = node.channel_axis(data)
    epsilon = params.epsilon if params.has("epsilon") else 1e-5
    if params.instanceNormalization:
        return relay.nn.instance_norm(data, gamma, beta, axis=axis, epsilon=epsilon)
    if params.computeMeanVar:
        raise node.fail("statistics that are computed over a batch are not supported")
    mean, variance = (
        node.weight(params.mean, channels, "mean"),
        node.weight(params.variance, channels, "variance"),
    )
    return relay.nn.batch_norm(data, gamma, beta, mean, variance, axis=axis, epsilon=epsilon)[0]


@LAYERS.register("mvn")
def mean_variance_normalize(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Images with a mean of zero, and perhaps a variance of one."""
    rank = node.rank(data)
    axes = [rank - 3, rank - 2, rank - 1] if params.acrossChannels else [rank - 2, rank - 1]
    centred = relay.subtract(data, relay.mean(data, axis=axes, keepdims=True))
    if not params.normalizeVariance:
        return centred
    variance = relay.mean(relay.multiply(centred, centred), axis=axes, keepdims=True)
    return relay.multiply(centred, relay.rsqrt(relay.add(variance, node.constant(params.epsilon, data))))


@LAYERS.register("l2normalize")
def l2_normalize(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Images divided by their length."""
    rank = node.rank(data)
    axes = list(range(max(rank - 3, 0), rank))
    squares = relay.sum(relay.multiply(data, data), axis=axes, keepdims=True)
    return relay.divide(data, relay.sqrt(relay.add(squares, node.constant(params.epsilon, data))))


@LAYERS.register("lrn")
def lrn(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Elements divided by a power of the squares around them in other channels."""
    return relay.nn.lrn(
        data,
        size=int(params.localSize),
        axis=node.channel_axis(data),
        bias=params.k,
        alpha=params.alpha,
        beta=params.beta,
    )


@LAYERS.register("padding")
def padding_layer(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A border of one number, of the edge, or of what is inside it reflected."""
    rank = node.rank(data)
    amounts = border(params.paddingAmounts)
    widths = [*[(0, 0)] * (rank - 2), (amounts[0], amounts[2]), (amounts[1], amounts[3])]
    if params.has("reflection"):
        return relay.nn.pad(data, widths, 0, pad_mode="reflect")
    if params.has("replication"):
        return relay.nn.pad(data, widths, 0, pad_mode="edge")
    return relay.nn.pad(data, widths, node.constant(params.constant.value, data))


@LAYERS.register("crop")
def crop(node: LayerNode, params: Message, data: Expr, *like: Expr) -> Expr:
    """A part of images: without a border, or of the size of others."""
    sizes, rank = node.static_shape(data)[-2:], node.rank(data)
    if like:
        wanted = node.static_shape(like[0])[-2:]
        offset = _pair(params.offset, 0)
        ends = [begin + size for begin, size in zip(offset, wanted, strict=True)]
    else:
        amounts = border(params.cropAmounts)
        offset, ends = amounts[:2], [size - after for size, after in zip(sizes, amounts[2:], strict=True)]
    return relay.strided_slice(data, offset, ends, axes=[rank - 2, rank - 1])


def _resized(node: LayerNode, data: Expr, sizes: list[int], method: str, where: str) -> Expr:
    rounding = "floor" if method == "nearest_neighbor" else ""
    return relay.image.resize2d(
        data, sizes, method=method, coordinate_transformation_mode=where, rounding_method=rounding
    )


@LAYERS.register("upsample")
def upsample(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Images enlarged by whole factors, or by others."""
    sizes = node.static_shape(data)[-2:]
    factors = list(params.fractionalScalingFactor) or [int(one) for one in params.scalingFactor] or [2, 2]
    target = [int(size * factor) for size, factor in zip(sizes, factors, strict=True)]
    if params.mode == "NN":
        return _resized(node, data, target, "nearest_neighbor", "asymmetric")
    ways = {
        "DEFAULT": "asymmetric",
        "ALIGN_CORNERS_TRUE": "align_corners",
        "ALIGN_CORNERS_FALSE": "half_pixel",
    }
    return _resized(node, data, target, "linear", ways[params.linearUpsampleMode])


SAMPLING: Final = {
    "STRICT_ALIGN_ENDPOINTS_MODE": "align_corners",
    "ALIGN_ENDPOINTS_MODE": "align_corners",
    "UPSAMPLE_MODE": "asymmetric",
}
"""How resized images are sampled, as far as it is supported."""


@LAYERS.register("resizeBilinear")
def resize_bilinear(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Images in another size, by linear interpolation."""
    mode = params.mode.samplingMethod
    if mode not in SAMPLING:
        raise node.fail(f"the sampling {mode} is not supported")
    return _resized(node, data, [int(one) for one in params.targetSize] or [1, 1], "linear", SAMPLING[mode])


@LAYERS.register("reorganizeData")
def reorganize(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Pixels as channels, or channels as pixels."""
    size = int(params.blockSize)
    if params.mode == "SPACE_TO_DEPTH":
        return relay.nn.space_to_depth(data, size)
    return relay.nn.depth_to_space(data, size, mode="CRD" if params.mode == "PIXEL_SHUFFLE" else "DCR")


@LAYERS.register("scale")
def scale(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Elements times numbers plus numbers, of one, of each channel, or of each element."""
    made = relay.multiply(data, _spread(node, params.scale, params.shapeScale, data, "scale"))
    return (
        relay.add(made, _spread(node, params.bias, params.shapeBias, data, "bias"))
        if params.hasBias
        else made
    )


@LAYERS.register("bias")
def bias(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Numbers added: one, one for each channel, or one for each element."""
    return relay.add(data, _spread(node, params.bias, params.shape, data, "bias"))


def _spread(node: LayerNode, weights: Message, shape: Any, data: Expr, role: str) -> Expr:
    sizes = [int(one) for one in shape]
    if len(sizes) == 1 and node.rank(data) >= 3:
        sizes = [*sizes, 1, 1]
    return node.weight(weights, sizes or [1], role)


@LAYERS.register("innerProduct")
def inner_product(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A product with a weight: of the channels of images of one pixel, else of the last axis."""
    inputs, outputs = int(params.inputChannels), int(params.outputChannels)
    weight = node.weight(params.weights, (outputs, inputs), "weight")
    shape = node.static_shape(data)
    image = len(shape) >= 4 and shape[-2:] == (1, 1)
    lead = shape[:-3] if image else shape[:-1]
    if len(shape) >= 3 and not image and np.prod(shape[1:]) == inputs and shape[-1] != inputs:
        lead = shape[:1]
    rows = relay.reshape(data, (-1, inputs))
    made = relay.nn.dense(rows, weight, units=outputs)
    if params.hasBias:
        made = relay.nn.bias_add(made, node.weight(params.bias, (outputs,), "bias"), axis=1)
    return relay.reshape(made, (*lead, outputs, 1, 1) if image else (*lead, outputs))


@LAYERS.register("flatten")
def flatten(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Images as vectors, pixels of a channel or channels of a pixel beside each other."""
    if params.mode == "CHANNEL_LAST" and node.rank(data) == 4:
        data = relay.transpose(data, (0, 2, 3, 1))
    return relay.nn.batch_flatten(data)
