"""Elements chosen by indices."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


def _indices(node: SymbolNode, data: Expr, axis: int, given: Expr) -> Expr:
    """Integers inside an axis: cut off at its ends, or counted around it."""
    mode = node.text("mode", "clip")
    extent = node.static_shape(data)[axis]
    whole = relay.cast(given, "int32")
    if mode == "wrap":
        return relay.floor_mod(whole, node.constant(extent, "int32"))
    if mode not in ("clip", "raise"):
        raise node.fail(f"the mode {mode!r} is not known")
    return relay.clip(whole, 0, extent - 1)


@converter("take")
def take(node: SymbolNode, data: Expr, indices: Expr) -> Expr:
    """Places of an axis."""
    axis = node.chosen_axis("axis", 0, node.rank(data))
    return relay.take(data, _indices(node, data, axis, indices), axis=axis)


@converter("pick")
def pick(node: SymbolNode, data: Expr, indices: Expr) -> Expr:
    """One element of each row along an axis."""
    rank = node.rank(data)
    axis = node.chosen_axis("axis", -1, rank)
    places = _indices(node, data, axis, indices)
    if node.rank(places) != rank:
        places = relay.expand_dims(places, axis)
    made = relay.gather(data, axis, places)
    return made if node.flag("keepdims") else relay.squeeze(made, axis=[axis])


@converter("gather_nd")
def gather_nd(node: SymbolNode, data: Expr, indices: Expr) -> Expr:
    """Elements at coordinates, which are along the first axis."""
    return relay.gather_nd(data, relay.cast(indices, "int32"))


@converter("one_hot")
def one_hot(node: SymbolNode, indices: Expr) -> Expr:
    """A new last axis with one place on."""
    kind = node.text("dtype", "float32")
    return relay.one_hot(
        relay.cast(indices, "int32"),
        node.constant(node.number("on_value", 1.0), kind),
        node.constant(node.number("off_value", 0.0), kind),
        node.integer("depth"),
        -1,
        kind,
    )


@converter("SequenceMask")
def sequence_mask(node: SymbolNode, data: Expr, length: Expr | None = None) -> Expr:
    """What comes after the length of each sequence replaced."""
    if length is None or not node.flag("use_sequence_length"):
        return data
    axis = node.chosen_axis("axis", 0, node.rank(data))
    return relay.sequence_mask(data, relay.cast(length, "int32"), node.number("value", 0.0), axis)


@converter("SequenceReverse")
def sequence_reverse(node: SymbolNode, data: Expr, length: Expr | None = None) -> Expr:
    """Sequences along the first axis, last place first, each within its length."""
    if length is None or not node.flag("use_sequence_length"):
        return relay.reverse(data, 0)
    return relay.reverse_sequence(data, relay.cast(length, "int32"), seq_axis=0, batch_axis=1)
