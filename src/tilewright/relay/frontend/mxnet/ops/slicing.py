"""Parts of tensors."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


def _part(node: SymbolNode, data: Expr, axis: int, begin: int | None, end: int | None, step: int) -> Expr:
    """What Python's slices give along one axis."""
    extent = node.static_shape(data)[axis]
    if step == 0:
        raise node.fail("a step is zero")
    chosen = range(*slice(begin, end, step).indices(extent))
    if chosen == range(extent):
        return data
    if not chosen:
        raise node.fail(f"begin {begin} and end {end} leave nothing of {extent} places")
    # One past the last place; backwards it may be before the first, which only a far negative number says.
    stop = chosen[-1] + (1 if step > 0 else -1)
    return relay.strided_slice(data, [chosen[0]], [stop if stop >= 0 else -extent - 1], [step], axes=[axis])


@converter("slice", "crop")
def slice_(node: SymbolNode, data: Expr) -> Expr:
    """A part of the first axes."""
    begin, end = node.numbers("begin"), node.numbers("end")
    steps = node.numbers("step", ()) or (None,) * len(begin)
    if not len(begin) == len(end) == len(steps) <= node.rank(data):
        raise node.fail(f"begin {begin}, end {end} and step {steps} do not fit {node.rank(data)} axes")
    for axis, (first, last, step) in enumerate(zip(begin, end, steps, strict=True)):
        data = _part(node, data, axis, first, last, 1 if step is None else step)
    return data


@converter("slice_axis")
def slice_axis(node: SymbolNode, data: Expr) -> Expr:
    """A part of one axis."""
    axis = node.chosen_axis("axis", 0, node.rank(data))
    return _part(node, data, axis, node.integer("begin"), node.optional_integer("end"), 1)


@converter("slice_like")
def slice_like(node: SymbolNode, data: Expr, other: Expr) -> Expr:
    """The first places of axes, as many as another tensor has."""
    axes = node.numbers("axes", ())
    return relay.slice_like(data, other, list(axes) or None)


@converter("SliceChannel", "split")
def split(node: SymbolNode, data: Expr) -> list[Expr]:
    """Parts of one size."""
    axis = node.chosen_axis("axis", 1, node.rank(data))
    parts: list[Expr] = list(relay.split(data, node.integer("num_outputs"), axis))
    return [relay.squeeze(one, axis=[axis]) for one in parts] if node.flag("squeeze_axis") else parts


@converter("_split_v2")
def split_v2(node: SymbolNode, data: Expr) -> list[Expr]:
    """Parts of one size, or parts that begin at given places."""
    axis = node.chosen_axis("axis", 1, node.rank(data))
    sections = node.integer("sections", 0)
    places = [place for place in node.numbers("indices", ()) if place]
    parts: list[Expr] = list(relay.split(data, sections or places, axis))
    return [relay.squeeze(one, axis=[axis]) for one in parts] if node.flag("squeeze_axis") else parts
