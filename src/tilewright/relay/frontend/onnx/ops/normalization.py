"""Batch, layer, instance and group normalisation, L2 and Lp normalisation, and local response normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partial_shapes import extent, extents, reshaped
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.frontend.onnx.tensors import dtype_name

# Batch


@converter("BatchNormalization")
def batch_normalization(
    node: Node, data: Expr, scale: Expr, bias: Expr, mean: Expr, variance: Expr
) -> Sequence[Expr]:
    """With the means and variances that training left."""
    if any(node.wants(output) for output in range(1, 5)):
        raise node.fail("the outputs of training are supported from opset 14 on")
    if not node.attr("spatial", 1):
        raise node.fail("spatial=0 is not supported")
    return [_batch_normalized(node, data, scale, bias, mean, variance)]


@converter("BatchNormalization", since=14)
def batch_normalization_with_mode(
    node: Node, data: Expr, scale: Expr, bias: Expr, mean: Expr, variance: Expr
) -> Sequence[Expr]:
    """As before; in training mode with the batch's own means and variances, which the running ones follow."""
    if not node.attr("training_mode", 0):
        return [_batch_normalized(node, data, scale, bias, mean, variance)]
    axes = [axis for axis in range(node.rank(data)) if axis != 1]
    wide = relay.cast(data, node.dtype(mean))
    own_mean = relay.mean(wide, axis=axes)
    own_variance = relay.variance(wide, axis=axes)
    momentum = float(node.attr("momentum", 0.9))

    def running(old: Expr, new: Expr) -> Expr:
        return old * node.constant(momentum, old) + new * node.constant(1 - momentum, old)

    made = _batch_normalized(node, data, scale, bias, own_mean, own_variance)
    return [made, running(mean, own_mean), running(variance, own_variance)]


def _batch_normalized(node: Node, data: Expr, scale: Expr, bias: Expr, mean: Expr, variance: Expr) -> Expr:
    epsilon = float(node.attr("epsilon", 1e-5))
    kinds = {node.dtype(each) for each in (data, scale, bias, mean, variance)}
    if len(kinds) == 1:
        return relay.nn.batch_norm(data, scale, bias, mean, variance, epsilon=epsilon)[0]
    wide = "float64" if "float64" in kinds else "float32"
    x, gamma, beta, centre, spread = (relay.cast(each, wide) for each in (data, scale, bias, mean, variance))
    made = relay.nn.batch_norm(x, gamma, beta, centre, spread, epsilon=epsilon)[0]
    return relay.cast(made, node.dtype(data))


# Layer, and root mean square


def trailing_axes(node: Node, data: Expr) -> list[int]:
    """The axes from the attribute ``axis`` on."""
    rank = node.rank(data)
    return list(range(node.axis(-1, rank), rank))


def stashed(node: Node, data: Expr) -> Expr:
    """The data in the element type in which a normalisation is computed."""
    wanted = dtype_name(int(node.attr("stash_type", 1)))
    # Doubles are never narrowed: the standard's body does, its results for doubles are no better for that.
    if node.dtype(data) in (wanted, "float64"):
        return data
    return relay.cast(data, wanted)


# ONNX has it since opset 17; ONNX Runtime's optimiser writes it into models of any opset.
@converter("LayerNormalization")
def layer_normalization(node: Node, data: Expr, scale: Expr, bias: Expr | None = None) -> Sequence[Expr]:
    """Mean 0 and variance 1 over the axes from ``axis`` on."""
    axes = trailing_axes(node, data)
    epsilon = float(node.attr("epsilon", 1e-5))
    plain = len(axes) == 1 and node.rank(scale) == 1 and node.dtype(data) in ("float32", "float64")
    if plain and not node.wants(1) and not node.wants(2) and node.shape(scale)[0] != 1:
        shift = bias if bias is not None else relay.zeros_like(scale)
        if node.rank(shift) == 1 and node.shape(shift) == node.shape(scale):
            return [relay.nn.layer_norm(data, scale, shift, epsilon=epsilon, center=bias is not None)]
    wide = stashed(node, data)
    mean = relay.mean(wide, axis=axes, keepdims=True)
    centred = wide - mean
    variance = relay.mean(centred * centred, axis=axes, keepdims=True)
    inverse = relay.rsqrt(variance + node.constant(epsilon, wide))
    made = _scaled(node, centred * inverse, data, scale, bias)
    return [made, mean, inverse][: max(node.num_outputs, 1)]


def _scaled(node: Node, normal: Expr, data: Expr, scale: Expr | None, bias: Expr | None) -> Expr:
    """A normalised tensor in the data's element type, times ``scale``, plus ``bias``."""
    made = normal if node.dtype(normal) == node.dtype(data) else relay.cast(normal, node.dtype(data))
    if scale is not None:
        made = made * (
            scale if node.dtype(scale) == node.dtype(made) else relay.cast(scale, node.dtype(made))
        )
    return made if bias is None else made + bias


@converter("RMSNormalization", since=23)
def rms_normalization(node: Node, data: Expr, scale: Expr) -> Expr:
    """Data divided by the root of their mean square over the axes from ``axis`` on."""
    return rms_normalized(node, data, scale, trailing_axes(node, data))


def rms_normalized(node: Node, data: Expr, scale: Expr | None, axes: Sequence[int]) -> Expr:
    """Data divided by the root of their mean square over axes, times ``scale``."""
    wide = stashed(node, data)
    square = relay.mean(wide * wide, axis=list(axes), keepdims=True)
    inverse = relay.rsqrt(square + node.constant(float(node.attr("epsilon", 1e-5)), wide))
    return _scaled(node, wide * inverse, data, scale, None)


# Instance, and group


@converter("InstanceNormalization")
def instance_normalization(node: Node, data: Expr, scale: Expr, bias: Expr) -> Expr:
    """Mean 0 and variance 1 of each channel of each item."""
    return relay.nn.instance_norm(data, scale, bias, epsilon=float(node.attr("epsilon", 1e-5)))


@converter("GroupNormalization", since=18)
def group_normalization_by_groups(node: Node, data: Expr, scale: Expr, bias: Expr) -> Expr:
    """Opset 18: scale and bias are one for each group."""
    channels = node.shape(data)[1]
    if channels is None:
        raise node.fail("the number of channels is not known")
    each = channels // int(node.attr("num_groups"))
    return _group_normalized(node, data, relay.repeat(scale, each, 0), relay.repeat(bias, each, 0))


@converter("GroupNormalization", since=21)
def group_normalization(node: Node, data: Expr, scale: Expr, bias: Expr) -> Expr:
    """Mean 0 and variance 1 of each group of channels of each item."""
    return _group_normalized(node, data, scale, bias)


def _group_normalized(node: Node, data: Expr, scale: Expr, bias: Expr) -> Expr:
    groups, epsilon = int(node.attr("num_groups")), float(node.attr("epsilon", 1e-5))
    if node.dtype(data) in ("float32", "float64"):
        return relay.nn.group_norm(data, scale, bias, groups, epsilon=epsilon)
    x, gamma, beta = (relay.cast(each, "float32") for each in (data, scale, bias))
    return relay.cast(relay.nn.group_norm(x, gamma, beta, groups, epsilon=epsilon), node.dtype(data))


# By length


@converter("LpNormalization")
def lp_normalization(node: Node, data: Expr) -> Expr:
    """Data divided by their norm along an axis; what has none stays zero."""
    axis, power = node.axis(-1, node.rank(data)), int(node.attr("p", 2))
    if power not in (1, 2):
        raise node.fail(f"p is 1 or 2, not {power}")
    if power == 1:
        norm = relay.sum(relay.abs(data), axis=axis, keepdims=True)
    else:
        norm = relay.sqrt(relay.sum(data * data, axis=axis, keepdims=True))
    one = node.constant(1, data)
    return data / relay.where(relay.equal(norm, node.constant(0, data)), one, norm)


@converter("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: Node, data: Expr) -> Expr:
    """Mean 0 and deviation 1 over axes."""
    axes = [int(axis) % node.rank(data) for axis in node.attr("axes", [0, 2, 3])]
    centred = data - relay.mean(data, axis=axes, keepdims=True)
    deviation = relay.sqrt(relay.mean(centred * centred, axis=axes, keepdims=True))
    return centred / (deviation + node.constant(1e-9, data))


@converter("LRN")
def lrn(node: Node, data: Expr) -> Expr:
    """Data divided by a power of the energy in the channels around them."""
    size = int(node.attr("size"))
    bias, alpha, beta = (
        float(node.attr(name, default)) for name, default in (("bias", 1.0), ("alpha", 1e-4), ("beta", 0.75))
    )
    if size < 1:
        raise node.fail(f"size is at least 1, not {size}")
    if size % 2:
        return relay.nn.lrn(data, size, 1, bias, alpha, beta)
    # An even window has one more channel after than before.
    channels = node.static_shape(data)[1]
    before, after = min((size - 1) // 2, channels), min(size // 2, channels)
    widths = [(0, 0)] * node.rank(data)
    widths[1] = (before, after)
    squares = relay.nn.pad(data * data, widths, const(0, node.dtype(data)))
    energy = relay.strided_slice(squares, [0], [channels], [1], axes=[1])
    for first in range(1, before + after + 1):
        energy = energy + relay.strided_slice(squares, [first], [first + channels], [1], axes=[1])
    base = node.constant(bias, data) + node.constant(alpha / size, data) * energy
    return data / relay.power(base, node.constant(beta, data))


# Softmax


def _softmax_over(node: Node, data: Expr, axes: list[int], logarithm: bool) -> Expr:
    """The softmax over several axes taken together."""
    if len(axes) == 1:
        return (relay.nn.log_softmax if logarithm else relay.nn.softmax)(data, axis=axes[0])
    shape = node.shape(data)
    if None not in shape and 0 not in shape:
        sizes = [size for size in shape if size is not None]
        flat = relay.reshape(data, (*sizes[: axes[0]], prod(sizes[axes[0] :])))
        return relay.reshape(_softmax_over(node, flat, [axes[0]], logarithm), tuple(sizes))
    moved = data - relay.max(data, axis=axes, keepdims=True)
    total = relay.sum(relay.exp(moved), axis=axes, keepdims=True)
    return moved - relay.log(total) if logarithm else relay.exp(moved) / total


@converter("Softmax", "LogSoftmax")
def softmax_of_matrix(node: Node, data: Expr) -> Expr:
    """Up to opset 12, over the axes from ``axis`` on, taken together."""
    rank = node.rank(data)
    axes = list(range(node.axis(1, rank), rank))
    return _softmax_over(node, data, axes, node.op_type == "LogSoftmax")


@converter("Softmax", "LogSoftmax", since=13)
def softmax(node: Node, data: Expr) -> Expr:
    """Over one axis."""
    axis = node.axis(-1, node.rank(data))
    return _softmax_over(node, data, [axis], node.op_type == "LogSoftmax")


@converter("Hardmax")
def hardmax_of_matrix(node: Node, data: Expr) -> Expr:
    """Up to opset 12: one where the first of the largest elements is, over the axes from ``axis`` on."""
    rank = node.rank(data)
    axis = node.axis(1, rank)
    if axis == rank - 1:
        return _hardmax(node, data, axis)
    flat = relay.reshape(data, (*[0] * axis, -1))
    return reshaped(node, _hardmax(node, flat, axis), extents(node, data))


@converter("Hardmax", since=13)
def hardmax(node: Node, data: Expr) -> Expr:
    """One where the first of the largest elements along an axis is, zero elsewhere."""
    return _hardmax(node, data, node.axis(-1, node.rank(data)))


def _hardmax(node: Node, data: Expr, axis: int) -> Expr:
    largest = relay.argmax(data, axis=axis)
    depth = extent(node, data, axis)
    return relay.one_hot(largest, 1, 0, depth, axis, node.dtype(data))
