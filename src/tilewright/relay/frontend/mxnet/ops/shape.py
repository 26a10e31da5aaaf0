"""Shapes: reshaping, turning, repeating, joining, padding."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


@converter("Flatten", "flatten", "_npx_batch_flatten")
def flatten(node: SymbolNode, data: Expr) -> Expr:
    """All axes but the first as one."""
    return relay.nn.batch_flatten(data)


@converter("Reshape", "reshape")
def reshape(node: SymbolNode, data: Expr) -> Expr:
    """The elements in another shape. 0 copies a size, -1 is what is left, -2 copies all that remain, -3 multiplies two
    sizes, -4 splits one; read from the end with ``reverse``."""
    shape = node.numbers("shape", ())
    if not shape:
        shape = node.numbers("target_shape", ())
    if not shape:
        raise node.fail("the attribute 'shape' is missing")
    if node.flag("reverse"):
        return relay.reverse_reshape(data, shape)
    return relay.reshape(data, shape)


@converter("reshape_like")
def reshape_like(node: SymbolNode, data: Expr, other: Expr) -> Expr:
    """The elements in the shape of another tensor, or some axes of it."""
    places = {name: node.optional_integer(name) for name in ("lhs_begin", "lhs_end", "rhs_begin", "rhs_end")}
    return relay.reshape_like(
        data,
        other,
        places["lhs_begin"] or 0,
        places["lhs_end"],
        places["rhs_begin"] or 0,
        places["rhs_end"],
    )


@converter("transpose", "_np_transpose")
def transpose(node: SymbolNode, data: Expr) -> Expr:
    """Axes in another order, backwards where none is given."""
    return relay.transpose(data, node.numbers("axes", ()) or tuple(reversed(range(node.rank(data)))))


@converter("SwapAxis", "swapaxes", "SwapAxes")
def swap_axes(node: SymbolNode, data: Expr) -> Expr:
    """Two axes exchanged."""
    rank = node.rank(data)
    one, other = node.chosen_axis("dim1", 0, rank), node.chosen_axis("dim2", 0, rank)
    order = list(range(rank))
    order[one], order[other] = other, one
    return relay.transpose(data, order)


@converter("expand_dims")
def expand_dims(node: SymbolNode, data: Expr) -> Expr:
    """A new axis of one."""
    return relay.expand_dims(data, node.integer("axis"))


@converter("squeeze")
def squeeze(node: SymbolNode, data: Expr) -> Expr:
    """Axes of one left out."""
    axes = None if node.text("axis", "None") == "None" else list(node.numbers("axis"))
    made = relay.squeeze(data, axis=axes)
    return made if node.rank(made) else relay.reshape(made, (1,))


@converter("broadcast_axis", "broadcast_axes")
def broadcast_axis(node: SymbolNode, data: Expr) -> Expr:
    """Axes of one repeated."""
    shape = list(node.static_shape(data))
    axes, sizes = node.numbers("axis", ()), node.numbers("size", ())
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    return relay.broadcast_to(data, shape)


@converter("broadcast_to", "_np_broadcast_to")
def broadcast_to(node: SymbolNode, data: Expr) -> Expr:
    """Axes of one repeated; a size of zero is kept."""
    wanted = node.numbers("shape")
    have = node.static_shape(data)
    if len(wanted) != len(have):
        raise node.fail(f"the shape {wanted} has not as many sizes as the data, {have}")
    return relay.broadcast_to(data, [size or old for size, old in zip(wanted, have, strict=True)])


@converter("broadcast_like")
def broadcast_like(node: SymbolNode, data: Expr, other: Expr) -> Expr:
    """Axes of one repeated as often as in another tensor."""
    if node.text("lhs_axes", "None") == "None":
        return relay.broadcast_to_like(data, other)
    shape, sizes = list(node.static_shape(data)), node.static_shape(other)
    for mine, theirs in zip(node.numbers("lhs_axes"), node.numbers("rhs_axes"), strict=True):
        shape[mine] = sizes[theirs]
    return relay.broadcast_to(data, shape)


@converter("tile")
def tile(node: SymbolNode, data: Expr) -> Expr:
    """The whole repeated along axes."""
    return relay.tile(data, node.numbers("reps"))


@converter("repeat")
def repeat(node: SymbolNode, data: Expr) -> Expr:
    """Each place of an axis repeated; without an axis, each element."""
    if node.text("axis", "None") == "None":
        return relay.repeat(relay.reshape(data, (-1,)), node.integer("repeats"), 0)
    return relay.repeat(data, node.integer("repeats"), node.chosen_axis("axis", 0, node.rank(data)))


@converter("reverse", "flip")
def reverse(node: SymbolNode, data: Expr) -> Expr:
    """The last place of axes first."""
    for axis in node.numbers("axis"):
        data = relay.reverse(data, axis)
    return data


@converter("Concat", "concat", "_rnn_param_concat")
def concat(node: SymbolNode, *inputs: Expr) -> Expr:
    """Tensors one after another along an axis."""
    return relay.concatenate(list(inputs), node.chosen_axis("dim", 1, node.rank(inputs[0])))


@converter("stack")
def stack(node: SymbolNode, *inputs: Expr) -> Expr:
    """Tensors along a new axis."""
    return relay.stack(list(inputs), node.integer("axis", 0))


@converter("Pad", "pad")
def pad(node: SymbolNode, data: Expr) -> Expr:
    """A border of one number, of the edge, or of what is inside it reflected."""
    flat = node.numbers("pad_width")
    if len(flat) != 2 * node.rank(data):
        raise node.fail(f"pad_width {flat} has not two numbers for each of {node.rank(data)} axes")
    widths = [(flat[place], flat[place + 1]) for place in range(0, len(flat), 2)]
    mode = node.text("mode", "constant")
    if mode not in ("constant", "edge", "reflect"):
        raise node.fail(f"the mode {mode!r} is not known")
    value = node.constant(node.number("constant_value", 0.0), data)
    return relay.nn.pad(data, widths, value, pad_mode=mode)


@converter("depth_to_space")
def depth_to_space(node: SymbolNode, data: Expr) -> Expr:
    """Channels as pixels."""
    return relay.nn.depth_to_space(data, node.integer("block_size"))


@converter("space_to_depth")
def space_to_depth(node: SymbolNode, data: Expr) -> Expr:
    """Pixels as channels."""
    return relay.nn.space_to_depth(data, node.integer("block_size"))
