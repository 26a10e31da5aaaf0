"""Shapes and the order of elements."""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.sizes import Size, broadcast_to, multiplied, reshaped, sizes_of
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter
from tilewright.relay.frontend.tensorflow.ops.shape import joined


@converter("shape", reads="Input")
def shape(node: PaddleNode, data: Expr) -> Expr:
    """The sizes of a tensor."""
    declared = node.declared("Out")
    kind = declared.dtype if declared is not None and declared.dtype in ("int32", "int64") else "int32"
    return node.of_elements(sizes_of(node, data), kind)


@converter("size", reads="Input")
def size(node: PaddleNode, data: Expr) -> Expr:
    """The number of elements."""
    return node.of_elements([multiplied(sizes_of(node, data))], "int64", scalar=True)


@converter("reshape2", "reshape", reads="X Shape ShapeTensor*")
def reshape(node: PaddleNode, data: Expr, wanted: Expr | None, parts: list[Expr]) -> Expr:
    """The elements in another shape: 0 keeps a size, -1 is what is left."""
    sizes = node.sizes("shape", wanted, parts)
    have = sizes_of(node, data)
    chosen: list[Size] = [
        have[place] if isinstance(one, int) and one == 0 and place < len(have) else one
        for place, one in enumerate(sizes)
    ]
    followed = node.scope.vectors.get(data)
    if followed is not None and len(chosen) <= 1:
        return node.of_elements(followed, node.dtype(data), scalar=not chosen)
    return reshaped(node, data, chosen)


@converter("flatten_contiguous_range")
def flatten_range(node: PaddleNode, data: Expr) -> Expr:
    """Neighbouring axes as one."""
    rank, sizes = node.rank(data), sizes_of(node, data)
    if rank == 0:
        return relay.reshape(data, (1,))
    first = node.chosen_axis("start_axis", 1, rank)
    last = node.chosen_axis("stop_axis", -1, rank)
    return reshaped(node, data, [*sizes[:first], multiplied(sizes[first : last + 1]), *sizes[last + 1 :]])


@converter("flatten2", "flatten")
def flatten(node: PaddleNode, data: Expr) -> Expr:
    """A matrix of all elements: axes before one are rows."""
    axis, sizes = node.integer("axis", 1), sizes_of(node, data)
    return reshaped(node, data, [multiplied(sizes[:axis]), multiplied(sizes[axis:])])


@converter("transpose2", "transpose")
def transpose(node: PaddleNode, data: Expr) -> Expr:
    """Axes in another order."""
    return relay.transpose(data, node.integers("axis", node.attr("perm", None)))


@converter("squeeze2", "squeeze", reads="X AxesTensor")
def squeeze(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """Axes of one left out; axes that are larger stay."""
    rank, sizes = node.rank(data), node.shape(data)
    asked = [axis % rank for axis in node.known("axes", given, default=[])] or range(rank)
    axes = [axis for axis in asked if sizes[axis] == 1]
    followed = node.scope.vectors.get(data)
    if followed is not None and axes:
        return node.of_elements(followed, node.dtype(data), scalar=True)
    return relay.squeeze(data, axis=axes) if axes else data


@converter("unsqueeze2", "unsqueeze", reads="X AxesTensor AxesTensorList*")
def unsqueeze(node: PaddleNode, data: Expr, given: Expr | None, parts: list[Expr]) -> Expr:
    """New axes of one; each is counted in what the ones before it gave."""
    followed = node.scope.vectors.get(data)
    axes = node.known("axes", given, parts)
    if followed is not None and node.rank(data) == 0 and len(axes) == 1:
        return node.of_elements(followed, node.dtype(data))
    for axis in axes:
        data = relay.expand_dims(data, node.from_front(axis, node.rank(data) + 1))
    return data


@converter("concat", reads="X* AxisTensor")
def concat(node: PaddleNode, parts: list[Expr], axis: Expr | None) -> Expr:
    """Tensors one after another along an axis."""
    return joined(node, parts, node.chosen_axis("axis", 0, node.rank(parts[0]), axis))


@converter("stack", reads="X*", writes="Y")
def stack(node: PaddleNode, parts: list[Expr]) -> Expr:
    """Tensors along a new axis."""
    found = [node.followed(one) for one in parts]
    if node.rank(parts[0]) == 0 and all(one is not None for one in found):
        return node.of_elements([one[0] for one in found if one is not None], node.dtype(parts[0]))
    return relay.stack(parts, axis=node.chosen_axis("axis", 0, node.rank(parts[0]) + 1))


@converter("split", reads="X SectionsTensor SectionsTensorList* AxisTensor", writes="Out*")
def split(
    node: PaddleNode, data: Expr, given: Expr | None, parts: list[Expr], axis: Expr | None
) -> list[Expr]:
    """Parts along an axis: of given sizes, one of which may be what is left, or as many of one size."""
    along = node.chosen_axis("axis", 0, node.rank(data), axis)
    sections = node.known("sections", given, parts, default=[])
    count = node.integer("num", 0)
    if not sections:
        return [data] if count == 1 else list(relay.split(data, count, along))
    if -1 in sections:
        whole = node.static_shape(data)[along]
        sections[sections.index(-1)] = whole - sum(one for one in sections if one != -1)
    if len(sections) == 1:
        return [data]
    return list(relay.split(data, [int(end) for end in np.cumsum(sections)[:-1]], along))


@converter("unstack", writes="Y*")
def unstack(node: PaddleNode, data: Expr) -> list[Expr]:
    """The tensors along an axis."""
    axis = node.chosen_axis("axis", 0, node.rank(data))
    elements = node.scope.vectors.get(data)
    if elements is not None:
        return [node.of_elements([one], node.dtype(data), scalar=True) for one in elements]
    count = node.static_shape(data)[axis]
    whole = [data] if count == 1 else list(relay.split(data, count, axis))
    return [relay.squeeze(one, axis=[axis]) for one in whole]


@converter("unbind", writes="Out*")
def unbind(node: PaddleNode, data: Expr) -> list[Expr]:
    """The tensors along an axis."""
    return unstack(node, data)


@converter("expand_v2", reads="X Shape expand_shapes_tensor*")
def expand(node: PaddleNode, data: Expr, wanted: Expr | None, parts: list[Expr]) -> Expr:
    """Axes of one repeated, and new leading axes; -1 keeps a size."""
    sizes = node.sizes("shape", wanted, parts)
    have: list[Size] = [*[1] * (len(sizes) - node.rank(data)), *sizes_of(node, data)]
    chosen = [
        old if isinstance(one, int) and one == -1 else one for one, old in zip(sizes, have, strict=True)
    ]
    return broadcast_to(node, data, chosen)


@converter("expand_as_v2", reads="X Y")
def expand_as(node: PaddleNode, data: Expr, other: Expr | None) -> Expr:
    """Axes of one repeated as in another tensor."""
    if other is None:
        return broadcast_to(node, data, list(node.integers("target_shape")))
    return broadcast_to(node, data, sizes_of(node, other))


@converter("expand", reads="X ExpandTimes expand_times_tensor*")
def expand_times(node: PaddleNode, data: Expr, given: Expr | None, parts: list[Expr]) -> Expr:
    """The whole repeated along axes."""
    return relay.tile(data, node.known("expand_times", given, parts))


@converter("tile", reads="X RepeatTimes repeat_times_tensor*")
def tile(node: PaddleNode, data: Expr, given: Expr | None, parts: list[Expr]) -> Expr:
    """The whole repeated along axes."""
    return relay.tile(data, node.known("repeat_times", given, parts))


@converter("flip", "reverse")
def flip(node: PaddleNode, data: Expr) -> Expr:
    """The last place of axes first."""
    for axis in node.integers("axis"):
        data = relay.reverse(data, axis)
    return data


@converter("roll", reads="X ShiftsTensor")
def roll(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """Elements moved along axes; what leaves at one end comes in at the other."""
    shifts, axes = node.known("shifts", given), node.integers("axis", [])
    sizes = whole = node.static_shape(data)
    flat = not axes
    if flat:
        data, axes, whole = relay.reshape(data, (-1,)), [0], (prod(sizes),)
    for shift, axis in zip(shifts, axes, strict=True):
        extent = whole[axis]
        order = (np.arange(extent) - shift) % max(extent, 1)
        data = relay.take(data, const(order.astype("int64")), axis=axis)
    return relay.reshape(data, sizes) if flat else data


@converter("pad3d", "pad2d", "pad1d", reads="X Paddings")
def pad(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """A border of the last axes of space: one number, the edge, or what is inside it reflected."""
    flat = node.known("paddings", given)
    last = node.text("data_format", "NCDHW").endswith("C")
    mode = node.text("mode", "constant")
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge"}
    rank = node.rank(data)
    if mode == "circular":
        raise node.fail("the mode 'circular' is not supported")
    if mode not in modes:
        raise node.fail(f"the mode {mode!r} is not known")
    pairs = [(flat[place], flat[place + 1]) for place in range(0, len(flat), 2)]
    if node.op_type == "pad3d":
        pairs = pairs[::-1]  # width first
    space = range(1, rank - 1) if last else range(2, rank)
    if len(pairs) != len(space):
        raise node.fail(f"paddings {flat} do not fit {rank} dimensions")
    widths = [(0, 0)] * rank
    for axis, pair in zip(space, pairs, strict=True):
        widths[axis] = pair
    value = node.constant(node.real("value", node.real("pad_value", 0.0)), data)
    return relay.nn.pad(data, widths, value, pad_mode=modes[mode])


@converter("pad")
def pad_all(node: PaddleNode, data: Expr) -> Expr:
    """A border of every axis."""
    flat = node.integers("paddings")
    widths = [(flat[place], flat[place + 1]) for place in range(0, len(flat), 2)]
    return relay.nn.pad(data, widths, node.constant(node.real("pad_value", 0.0), data))


@converter("pixel_shuffle")
def pixel_shuffle(node: PaddleNode, data: Expr) -> Expr:
    """Channels as pixels."""
    if node.text("data_format", "NCHW") != "NCHW":
        raise node.fail("only NCHW is supported")
    return relay.nn.depth_to_space(data, node.integer("upscale_factor"), mode="CRD")


@converter("shuffle_channel", "channel_shuffle")
def shuffle_channel(node: PaddleNode, data: Expr) -> Expr:
    """Channels of groups interleaved."""
    groups = node.integer("group", node.integer("groups", 1))
    sizes = sizes_of(node, data)
    channels = node.static_shape(data)[1]
    apart = reshaped(node, data, [sizes[0], groups, channels // groups, *sizes[2:]])
    order = [0, 2, 1, *range(3, node.rank(apart))]
    return reshaped(node, relay.transpose(apart, order), sizes)


@converter("meshgrid", reads="X*", writes="Out*")
def meshgrid(node: PaddleNode, parts: list[Expr]) -> list[Expr]:
    """Grids of coordinates."""
    return list(relay.meshgrid(parts, indexing="ij"))


@converter("space_to_depth")
def space_to_depth(node: PaddleNode, data: Expr) -> Expr:
    """Pixels as channels."""
    return relay.nn.space_to_depth(data, node.integer("blocksize"))
