"""Operators on shapes that TFLite writes in a way of its own, pooling, and conversions between types."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.tensorflow.ops import reduction
from tilewright.relay.frontend.tensorflow.ops.pooling import average_pooled, max_pooled
from tilewright.relay.frontend.tensorflow.ops.shape import pad_widths
from tilewright.relay.frontend.tensorflow.ops.shape import reshape as reshape_to
from tilewright.relay.frontend.tflite.node import LiteNode
from tilewright.relay.frontend.tflite.ops.layers import with_window
from tilewright.relay.frontend.tflite.quantization import (
    activated,
    clamped,
    dequantized,
    is_quantized,
    quantization_of,
    quantized,
    real,
    requantized,
)
from tilewright.relay.frontend.tflite.registry import lite_converter


@lite_converter("RESHAPE")
def reshape(node: LiteNode, data: Expr, shape: Expr | None = None) -> Expr:
    """The elements in another shape: an input, or in old files an option."""
    if shape is None or node.rank(shape) != 1:
        wanted = node.attr("new_shape", None)
        if wanted is None:
            wanted = [-1 if size is None else size for size in node.outputs[0].signature]
        shape = const(np.asarray(wanted, "int32"))
    made = reshape_to(node, data, shape)
    given, output = node.input(0), node.outputs[0]
    return requantized(node, made, given, output) if is_quantized(given) and is_quantized(output) else made


# Padding


@lite_converter("PAD", "PADV2")
def pad(node: LiteNode, data: Expr, paddings: Expr, value: Expr | None = None) -> Expr:
    """A border of one number: of integers, the one that stands for it."""
    given = node.input(0)
    filler: Expr = node.constant(0, data) if value is None else value
    if is_quantized(given) and value is None:
        filler = const(quantization_of(node, given).zero_point.astype(given.dtype)[0])
    elif value is not None and is_quantized(given):
        filler = requantized(node, value, node.input(2), given)
    made = relay.nn.pad(data, pad_widths(node, paddings), filler)
    output = node.outputs[0]
    return requantized(node, made, given, output) if is_quantized(given) and is_quantized(output) else made


@lite_converter("SPACE_TO_BATCH_ND")
def space_to_batch_nd(node: LiteNode, data: Expr, block: Expr, paddings: Expr) -> Expr:
    """Blocks of space as batches, in a border of zeros."""
    given = node.input(0)
    zero: Any = int(quantization_of(node, given).zero_point[0]) if is_quantized(given) else 0
    pads = node.required_value(paddings, "the paddings").reshape(-1, 2).tolist()
    return relay.nn.space_to_batch_nd(data, node.ints(block, "the block"), pads, zero)


# Pooling


def _with_kernel(node: LiteNode) -> LiteNode:
    node.attributes["ksize"] = [1, int(node.attr("filter_h")), int(node.attr("filter_w")), 1]
    return with_window(node)


@lite_converter("MAX_POOL_2D")
def max_pool2d(node: LiteNode, data: Expr) -> Expr:
    """The greatest element of each window."""
    made = max_pooled(_with_kernel(node), data, "NHWC")
    given, output, activation = node.input(0), node.outputs[0], str(node.attr("activation"))
    if is_quantized(given):
        return clamped(node, requantized(node, made, given, output), output, activation)
    return activated(node, made, activation)


@lite_converter("AVERAGE_POOL_2D")
def average_pool2d(node: LiteNode, data: Expr) -> Expr:
    """The mean of each window; of integers it is rounded to the nearest one."""
    given, output, activation = node.input(0), node.outputs[0], str(node.attr("activation"))
    if not is_quantized(given):
        return activated(node, average_pooled(_with_kernel(node), data, "NHWC"), activation)
    means = average_pooled(_with_kernel(node), relay.cast(data, "float32"), "NHWC")
    made = relay.cast(relay.round(means), given.dtype)
    return clamped(node, requantized(node, made, given, output), output, activation)


@lite_converter("L2_POOL_2D")
def l2_pool2d(node: LiteNode, data: Expr) -> Expr:
    """The root of the mean of squares of each window."""
    squares = relay.multiply(data, data)
    made = relay.sqrt(average_pooled(_with_kernel(node), squares, "NHWC"))
    return activated(node, made, str(node.attr("activation")))


# Reductions of quantised tensors


@lite_converter("MEAN")
def mean(node: LiteNode, data: Expr, axes: Expr) -> Expr:
    """Means along axes. Of integers they are those of the numbers they stand for, rounded once."""
    given, output = node.input(0), node.outputs[0]
    if not is_quantized(given):
        return reduction.reduced(node, relay.mean, data, axes)
    of, to = quantization_of(node, given), quantization_of(node, output)
    sums = reduction.reduced(node, relay.sum, relay.cast(data, "int32"), axes)
    shape, along = node.shape(data), reduction.axes_of(node, data, axes)
    sizes = [size for axis, size in enumerate(shape) if axis in along and size is not None]
    if len(sizes) < len(along):
        raise node.fail("the sizes of the axes of a quantised mean have to be known")
    count = prod(sizes)
    factor = float(of.scale[0]) / float(to.scale[0])
    shift = float(to.zero_point[0]) - factor * float(of.zero_point[0])
    scaled = relay.add(
        relay.multiply(relay.cast(sums, "float32"), const(np.float32(factor / count))),
        const(np.float32(shift)),
    )
    limits = np.iinfo(output.dtype)
    return relay.cast(relay.clip(relay.round(scaled), int(limits.min), int(limits.max)), output.dtype)


# Types


@lite_converter("QUANTIZE")
def quantize(node: LiteNode, data: Expr) -> Expr:
    """Numbers as integers, or integers of another scale."""
    given, output = node.input(0), node.outputs[0]
    return requantized(node, data, given, output) if is_quantized(given) else quantized(node, data, output)


@lite_converter("DEQUANTIZE")
def dequantize(node: LiteNode, data: Expr) -> Expr:
    """Integers as numbers; numbers of half precision in full."""
    given = node.input(0)
    if is_quantized(given):
        return dequantized(node, data, given)
    if given.value is not None:
        return node.scope.stored(given.name, given.value.astype("float32"))
    return relay.cast(data, "float32")


@lite_converter("DENSIFY")
def densify(node: LiteNode, data: Expr) -> Expr:
    """A sparse weight with all its elements, as the reader has it already."""
    return data


@lite_converter("CAST")
def cast(node: LiteNode, data: Expr) -> Expr:
    """Elements of another type: that of the output."""
    dtype = node.outputs[0].dtype
    elements = node.followed(data)
    if elements is not None and dtype in ("int32", "int64"):
        return node.of_elements(elements, dtype, node.rank(data) == 0)
    return data if node.dtype(data) == dtype else relay.cast(data, dtype)


@lite_converter("BITCAST")
def bitcast(node: LiteNode, data: Expr) -> Expr:
    """The same bits as the type of the output."""
    return relay.reinterpret(data, node.outputs[0].dtype)


@lite_converter("FAKE_QUANT")
def fake_quant(node: LiteNode, data: Expr) -> Expr:
    """Numbers rounded to those that an integer of some bits can stand for."""
    least, most = float(node.attr("min")), float(node.attr("max"))
    low = 1 if node.attr("narrow_range") else 0
    high = (1 << int(node.attr("num_bits"))) - 1
    scale = (most - least) / (high - low)
    zero = low - least / scale
    nudged = low if zero < low else high if zero > high else int(np.floor(zero + 0.5))
    floor, ceiling = (low - nudged) * scale, (high - nudged) * scale
    clipped = relay.clip(data, floor, ceiling)
    steps = relay.multiply(
        relay.subtract(clipped, node.constant(floor, data)), node.constant(1 / scale, data)
    )
    whole = relay.floor(relay.add(steps, node.constant(0.5, data)))
    return relay.add(relay.multiply(whole, node.constant(scale, data)), node.constant(floor, data))


@lite_converter("ARG_MAX", "ARG_MIN")
def position(node: LiteNode, data: Expr, axis: Expr) -> Expr:
    """Where the greatest or least elements are; integers serve as well as the numbers they stand for."""
    node.attributes["output_type"] = node.outputs[0].dtype
    return (
        reduction.arg_max(node, data, axis)
        if node.op_type == "ARG_MAX"
        else reduction.arg_min(node, data, axis)
    )


@lite_converter("SPARSE_TO_DENSE")
def sparse_to_dense(node: LiteNode, indices: Expr, shape: Expr, values: Expr, default: Expr) -> Expr:
    """Values at indices, and one number elsewhere."""
    given = real(node, values, node.input(2))
    return relay.sparse_to_dense(indices, node.ints(shape, "the shape"), given, default)
