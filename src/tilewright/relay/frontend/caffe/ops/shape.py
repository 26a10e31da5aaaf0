"""Shapes, parts and reductions."""

from __future__ import annotations

from math import prod
from typing import Any

from tilewright import relay
from tilewright.relay.frontend.caffe.node import CaffeNode
from tilewright.relay.frontend.caffe.registry import LAYERS
from tilewright.relay.frontend.common.graph_node import Expr


@LAYERS.register("Concat")
def concat(node: CaffeNode, *data: Expr) -> Expr:
    """Tensors one after another along an axis."""
    params = node.params.concat_param
    axis = int(params.concat_dim) if params.has("concat_dim") else params.axis
    return relay.concatenate(list(data), node.chosen_axis(axis, node.rank(data[0])))


@LAYERS.register("Slice")
def slice_(node: CaffeNode, data: Expr) -> list[Expr]:
    """Parts along an axis: that end at given places, or as many of one size as there are outputs."""
    params = node.params.slice_param
    axis = node.chosen_axis(
        int(params.slice_dim) if params.has("slice_dim") else params.axis, node.rank(data)
    )
    places = [int(one) for one in params.slice_point]
    if not places and len(node.entry.tops) == 1:
        return [data]
    return list(relay.split(data, places or len(node.entry.tops), axis))


@LAYERS.register("Split")
def split(node: CaffeNode, data: Expr) -> list[Expr]:
    """The same tensor several times."""
    return [data] * len(node.entry.tops)


@LAYERS.register("Flatten")
def flatten(node: CaffeNode, data: Expr) -> Expr:
    """Neighbouring axes as one."""
    params, shape = node.params.flatten_param, node.static_shape(data)
    first, last = (node.chosen_axis(axis, len(shape)) for axis in (params.axis, params.end_axis))
    return relay.reshape(data, (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]))


@LAYERS.register("Reshape")
def reshape(node: CaffeNode, data: Expr) -> Expr:
    """Some axes in another shape: 0 keeps a size, -1 is what is left."""
    params, shape = node.params.reshape_param, node.static_shape(data)
    first = params.axis if params.axis >= 0 else params.axis + len(shape) + 1
    last = len(shape) if params.num_axes == -1 else first + params.num_axes
    wanted = list(params.shape.dim)
    inside = [shape[first + place] if size == 0 else size for place, size in enumerate(wanted)]
    if -1 in inside:
        rest = prod(size for size in inside if size != -1)
        inside[inside.index(-1)] = prod(shape[first:last]) // rest if rest else 0
    return relay.reshape(data, (*shape[:first], *inside, *shape[last:]))


@LAYERS.register("Permute")
def permute(node: CaffeNode, data: Expr) -> Expr:
    """Axes in another order; those that are not named come last."""
    order = [int(one) for one in node.params.permute_param.order]
    return relay.transpose(data, [*order, *(axis for axis in range(node.rank(data)) if axis not in order)])


@LAYERS.register("Tile")
def tile(node: CaffeNode, data: Expr) -> Expr:
    """The whole repeated along an axis."""
    params = node.params.tile_param
    counts = [1] * node.rank(data)
    counts[node.chosen_axis(params.axis, len(counts))] = params.tiles
    return relay.tile(data, counts)


@LAYERS.register("Crop")
def crop(node: CaffeNode, data: Expr, like: Expr) -> Expr:
    """A part of the size of another tensor, from an axis on."""
    params, shape, wanted = node.params.crop_param, node.static_shape(data), node.static_shape(like)
    first = node.chosen_axis(params.axis, len(shape))
    axes = list(range(first, len(shape)))
    offsets = [int(one) for one in params.offset] or [0]
    offsets = offsets * len(axes) if len(offsets) == 1 else offsets
    ends = [offset + wanted[axis] for offset, axis in zip(offsets, axes, strict=True)]
    if any(end > shape[axis] for end, axis in zip(ends, axes, strict=True)):
        raise node.fail(f"the offsets {offsets} and the sizes {wanted} do not fit {shape}")
    return relay.strided_slice(data, offsets, ends, axes=axes)


@LAYERS.register("Reduction")
def reduction(node: CaffeNode, data: Expr) -> Expr:
    """A reduction of everything from an axis on, times a number."""
    params, rank = node.params.reduction_param, node.rank(data)
    axes = list(range(node.chosen_axis(params.axis, rank), rank))
    if params.operation == "ASUM":
        data = relay.abs(data)
    elif params.operation == "SUMSQ":
        data = relay.multiply(data, data)
    made = (relay.mean if params.operation == "MEAN" else relay.sum)(data, axis=axes)
    return made if params.coeff == 1.0 else relay.multiply(made, node.constant(params.coeff, made))


@LAYERS.register("ArgMax")
def arg_max(node: CaffeNode, data: Expr) -> Expr:
    """The places of the largest elements, as numbers of floating point."""
    params = node.params.argmax_param
    if params.out_max_val:
        raise node.fail("out_max_val is not supported")
    count, kind = int(params.top_k), node.dtype(data)
    if params.has("axis"):
        axis = node.chosen_axis(params.axis, node.rank(data))
        found: Any = relay.topk(data, count, axis=axis, ret_type="indices")
        return relay.cast(found, kind)
    rows = relay.nn.batch_flatten(data)
    places: Any = relay.topk(rows, count, axis=1, ret_type="indices")
    return relay.expand_dims(relay.cast(places, kind), 1)
