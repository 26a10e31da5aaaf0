"""Operators that concatenate and split tensors along an axis."""

from __future__ import annotations

from itertools import accumulate
from math import ceil

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.dimensions import (
    Extent,
    as_scalar,
    element,
    extent_of,
    int64,
)
from tilewright.relay.frontend.onnx.ops.slicing import sliced
from tilewright.relay.frontend.onnx.registry import converter


@converter("Concat")
def concat(node: Node, *inputs: RelayExpr) -> RelayExpr:
    """Tensors one after the other. Before opset 4 the axis may be left out, and is then 1."""
    axis = (
        node.axis(1, node.rank(inputs[0]))
        if node.opset < 4
        else node.axis(node.attr("axis"), node.rank(inputs[0]))
    )
    made = relay.concatenate(inputs, axis) if len(inputs) > 1 else inputs[0]
    if node.rank(inputs[0]) != 1:
        return made
    parts = [node.partial(one) for one in inputs]
    if any(part is None for part in parts):
        return made
    return node.graph.note_partial(made, [item for part in parts if part is not None for item in part])


@converter("Split")
def split_attribute(node: Node, data: RelayExpr) -> list[RelayExpr]:
    """The sizes as an attribute, before opset 13; equal parts without it."""
    axis = node.axis(0, node.rank(data))
    sizes = node.attr("split", None)
    return parts(node, data, axis, list(sizes) if sizes else equal_sizes(node, data, axis, node.num_outputs))


@converter("Split", since=13)
def split(node: Node, data: RelayExpr, sizes: RelayExpr | None = None) -> list[RelayExpr]:
    """The sizes as an input; without it ``num_outputs`` parts, of which the last may be smaller."""
    axis = node.axis(0, node.rank(data))
    if sizes is None:
        count = int(node.attr("num_outputs", node.num_outputs))
        if count != node.num_outputs:
            raise node.fail(f"num_outputs is {count}, but the node has {node.num_outputs} outputs")
        return parts(node, data, axis, equal_sizes(node, data, axis, count))
    return parts(node, data, axis, [element(node, sizes, place) for place in range(node.num_outputs)])


def equal_sizes(node: Node, data: RelayExpr, axis: int, count: int) -> list[Extent]:
    """The sizes of so many parts, equal but for the last, which has what is left."""
    extent = extent_of(node, data, axis)
    if isinstance(extent, int):
        each = ceil(extent / count)
        return [max(min(each, extent - place * each), 0) for place in range(count)]
    total = const(count, "int64")
    whole = relay.floor_divide(relay.add(extent, const(count - 1, "int64")), total)
    last = relay.subtract(extent, relay.multiply(whole, const(count - 1, "int64")))
    return [*[whole] * (count - 1), last]


def parts(node: Node, data: RelayExpr, axis: int, sizes: list[Extent]) -> list[RelayExpr]:
    """The parts of a tensor along an axis that have these sizes."""
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        extent = node.shape(data)[axis]
        if extent is not None and sum(known) != extent:
            raise node.fail(f"parts of {known} do not make up a dimension of {extent}")
        if len(known) == 1:
            return [data]
        made: list[RelayExpr] = list(relay.split(data, list(accumulate(known))[:-1], axis))
        items = node.partial(data) if node.rank(data) == 1 else None
        if items is None:
            return made
        ends = list(accumulate(known))
        return [
            node.graph.note_partial(part, items[end - size : end])
            for part, size, end in zip(made, known, ends, strict=True)
        ]
    found: list[RelayExpr] = []
    begin: Extent = 0
    for size in sizes:
        end: Extent = (
            begin + size
            if isinstance(begin, int) and isinstance(size, int)
            else relay.add(as_scalar(begin), as_scalar(size))
        )
        found.append(sliced(node, data, {axis: (begin, end, 1)}, {axis: size}))
        begin = end
    return found


def sizes_of(node: Node, sizes: RelayExpr) -> list[Extent]:
    """The numbers of a vector of sizes whose length is known."""
    count = node.shape(sizes)[0]
    if count is None:
        raise node.needs_value(sizes, "the sizes of the parts")
    return [element(node, int64(node, sizes), place) for place in range(count)]
