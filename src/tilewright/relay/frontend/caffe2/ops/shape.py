"""Shapes, parts and reductions."""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.caffe2.node import Caffe2Node
from tilewright.relay.frontend.caffe2.registry import OPERATORS
from tilewright.relay.frontend.common.graph_node import Expr


@OPERATORS.register("Concat")
def concat(node: Caffe2Node, *data: Expr) -> Expr:
    """Tensors one after another along an axis, or along a new one."""
    if node.text("order", "NCHW") == "NHWC" and "axis" not in node.attributes:
        return relay.concatenate(list(data), node.rank(data[0]) - 1)
    if node.integer("add_axis", 0):
        return relay.stack(list(data), axis=node.integer("axis", 1))
    return relay.concatenate(list(data), node.chosen_axis("axis", 1, data[0]))


@OPERATORS.register("Split")
def split(node: Caffe2Node, data: Expr) -> list[Expr]:
    """Parts along an axis: of given sizes, or as many of one size as there are outputs."""
    axis = node.chosen_axis("axis", 1, data)
    sizes, count = node.integers("split", []), len(node.entry.outputs)
    if count == 1:
        return [data]
    return list(relay.split(data, [int(end) for end in np.cumsum(sizes)[:-1]] if sizes else count, axis))


@OPERATORS.register("Flatten")
def flatten(node: Caffe2Node, data: Expr) -> Expr:
    """A matrix: axes before one are rows."""
    shape, axis = node.static_shape(data), node.integer("axis", 1)
    return relay.reshape(data, (prod(shape[:axis]), prod(shape[axis:])))


@OPERATORS.register("FlattenToVec")
def flatten_to_vector(node: Caffe2Node, data: Expr) -> Expr:
    """All elements in a row."""
    return relay.reshape(data, (-1,))


@OPERATORS.register("Reshape")
def reshape(node: Caffe2Node, data: Expr, *wanted: Expr) -> Expr:
    """The elements in another shape: 0 keeps a size, -1 is what is left."""
    sizes = node.ints(wanted[0], "the shape") if wanted else node.integers("shape", [])
    return relay.reshape(data, sizes)


@OPERATORS.register("Transpose", "NCHW2NHWC", "NHWC2NCHW")
def transpose(node: Caffe2Node, data: Expr) -> Expr:
    """Axes in another order, backwards where none is given."""
    fixed = {"NCHW2NHWC": [0, 2, 3, 1], "NHWC2NCHW": [0, 3, 1, 2]}
    order = fixed.get(node.op_type) or node.integers("axes", list(range(node.rank(data)))[::-1])
    return relay.transpose(data, order)


@OPERATORS.register("Squeeze")
def squeeze(node: Caffe2Node, data: Expr) -> Expr:
    """Axes of one left out."""
    return relay.squeeze(data, axis=node.integers("dims", []))


@OPERATORS.register("ExpandDims")
def expand_dims(node: Caffe2Node, data: Expr) -> Expr:
    """New axes of one, at these places of the result."""
    for axis in sorted(node.integers("dims", [])):
        data = relay.expand_dims(data, axis)
    return data


@OPERATORS.register("Tile")
def tile(node: Caffe2Node, data: Expr) -> Expr:
    """The whole repeated along an axis."""
    counts = [1] * node.rank(data)
    counts[node.chosen_axis("axis", 0, data)] = node.integer("tiles", 1)
    return relay.tile(data, counts)


@OPERATORS.register("PadImage")
def pad_image(node: Caffe2Node, data: Expr) -> Expr:
    """A border of images: one number, the edge, or what is inside it reflected."""
    node.require_order()
    top, left, bottom, right = node.padding()
    mode = node.text("mode", "constant")
    if mode not in ("constant", "reflect", "edge"):
        raise node.fail(f"the mode {mode!r} is not known")
    value = node.constant(node.real("value", 0.0), data)
    return relay.nn.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)), value, pad_mode=mode)


@OPERATORS.register("Slice")
def slice_(node: Caffe2Node, data: Expr) -> Expr:
    """A part of every axis; an end of -1 is the end of the axis."""
    shape = node.static_shape(data)
    begins, ends = node.integers("starts", []), node.integers("ends", [])
    stops = [size + 1 + end if end < 0 else end for size, end in zip(shape, ends, strict=False)]
    return relay.strided_slice(data, begins, stops, axes=list(range(len(begins))))


@OPERATORS.register("Gather")
def gather(node: Caffe2Node, data: Expr, indices: Expr) -> Expr:
    """Parts along an axis by their places."""
    return relay.take(data, indices, axis=node.chosen_axis("axis", 0, data))


@OPERATORS.register("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")
def reduce(node: Caffe2Node, data: Expr) -> Expr:
    """A reduction over axes, or of everything."""
    functions = {
        "ReduceMean": relay.mean,
        "ReduceSum": relay.sum,
        "ReduceMax": relay.max,
        "ReduceMin": relay.min,
    }
    axes = node.integers("axes", range(node.rank(data)))
    return functions[node.op_type](data, axis=axes, keepdims=bool(node.integer("keepdims", 1)))


@OPERATORS.register("ChannelShuffle")
def channel_shuffle(node: Caffe2Node, data: Expr) -> Expr:
    """Channels of groups interleaved."""
    node.require_order()
    batch, channels, *space = node.static_shape(data)
    groups = node.integer("group", 1)
    apart = relay.reshape(data, (batch, groups, channels // groups, *space))
    return relay.reshape(relay.transpose(apart, (0, 2, 1, 3, 4)), (batch, channels, *space))
