"""Operators that read and write elements at indices."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.dimensions import (
    as_scalar,
    extent_of,
    from_front,
    int64,
    scalar,
)
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter


@converter("Gather")
def gather(node: Node, data: RelayExpr, indices: RelayExpr) -> RelayExpr:
    """Slices along an axis."""
    axis = node.axis(0, node.rank(data))
    made = relay.take(data, from_front(node, indices, extent_of(node, data, axis)), axis=axis)
    items = node.partial(data) if node.rank(data) == 1 else None
    places = node.value(indices)
    if items is None or places is None or places.ndim > 1:
        return made
    if any(not -len(items) <= place < len(items) for place in places.reshape(-1).tolist()):
        raise node.fail(f"indices {places.tolist()} are out of range for {len(items)} elements")
    return node.graph.note_partial(made, [items[place] for place in places.reshape(-1).tolist()])


@converter("GatherElements")
def gather_elements(node: Node, data: RelayExpr, indices: RelayExpr) -> RelayExpr:
    """Elements whose index on an axis is given."""
    return relay.gather(data, node.axis(0, node.rank(data)), indices)


def _vectors_first(node: Node, indices: RelayExpr) -> RelayExpr:
    """Index vectors along the last axis, moved to the first."""
    rank = node.rank(indices)
    return relay.transpose(indices, [rank - 1, *range(rank - 1)])


@converter("GatherND")
@converter("GatherND", domain=MICROSOFT_DOMAIN)
def gather_nd(node: Node, data: RelayExpr, indices: RelayExpr) -> RelayExpr:
    """Slices at index vectors."""
    if node.shape(indices)[-1] is None:
        raise node.fail("the length of the index vectors is not known")
    return relay.gather_nd(data, _vectors_first(node, indices), int(node.attr("batch_dims", 0)))


@converter("Scatter", "ScatterElements")
def scatter_elements(node: Node, data: RelayExpr, indices: RelayExpr, updates: RelayExpr) -> RelayExpr:
    """Elements written at given indices on an axis, or combined with what is there."""
    axis = node.axis(0, node.rank(data))
    reduction = str(node.attr("reduction", "none"))
    if reduction == "none":
        return relay.scatter(data, indices, updates, axis)
    if reduction == "add":
        return relay.scatter_add(data, indices, updates, axis)
    shape = node.static_shape(indices, "the indices")
    grid: list[RelayExpr] = [const(one) for one in np.indices(shape).astype("int64")]
    grid[axis] = int64(node, indices)
    return relay.scatter_nd(data, relay.stack(grid, 0), updates, _mode(node, reduction))


@converter("ScatterND")
def scatter_nd(node: Node, data: RelayExpr, indices: RelayExpr, updates: RelayExpr) -> RelayExpr:
    """Slices written at index vectors, or combined with what is there."""
    if node.shape(indices)[-1] is None:
        raise node.fail("the length of the index vectors is not known")
    mode = _mode(node, str(node.attr("reduction", "none")))
    return relay.scatter_nd(data, _vectors_first(node, indices), updates, mode)


def _mode(node: Node, reduction: str) -> str:
    modes = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}
    if reduction not in modes:
        raise node.fail(f"the reduction is one of {', '.join(modes)}, not {reduction!r}")
    return modes[reduction]


@converter("TensorScatter")
def tensor_scatter(
    node: Node, past: RelayExpr, update: RelayExpr, write_indices: RelayExpr | None = None
) -> RelayExpr:
    """New elements of a cache, at a place along an axis that each member of the batch has for itself."""
    rank = node.rank(past)
    axis = node.axis(-2, rank)
    count = as_scalar(extent_of(node, update, axis))
    places = relay.arange(const(0, "int64"), count, const(1, "int64"), "int64")
    places = relay.reshape(places, [-1 if one == axis else 1 for one in range(rank)])
    if write_indices is not None:
        first = relay.reshape(int64(node, write_indices), [-1, *[1] * (rank - 1)])
        places = relay.add(first, places)
    if str(node.attr("mode", "linear")) == "circular":
        places = relay.floor_mod(places, as_scalar(extent_of(node, past, axis)))
    return relay.scatter(past, relay.broadcast_to_like(places, update), update, axis)


@converter("OneHot")
def one_hot(node: Node, indices: RelayExpr, depth: RelayExpr, values: RelayExpr) -> RelayExpr:
    """The second of two values where the index along a new axis is the one given, the first elsewhere."""
    rank = node.rank(indices) + 1
    axis = node.axis(-1, rank)
    number = scalar(node, depth)
    number = number if node.dtype(number) == "int64" else relay.cast(number, "int64")
    known = node.value(depth)
    count = int(known.reshape(-1)[0]) if known is not None else number
    places = from_front(node, relay.cast(indices, "int64"), count)
    dtype = node.dtype(values)
    off, on = (relay.take(values, const(place, "int64"), axis=0) for place in (0, 1))
    return relay.one_hot(places, on, off, count, axis, dtype)


@converter("NonZero")
def non_zero(node: Node, data: RelayExpr) -> RelayExpr:
    """The indices of the elements that are not zero: a row for each axis."""
    found = relay.argwhere(data if node.rank(data) else relay.reshape(data, (1,)))
    rows = relay.cast(relay.transpose(found, (1, 0)), "int64")
    # A scalar has no axes.
    return rows if node.rank(data) else relay.strided_slice(rows, [0], [0], axes=[0])


@converter("Compress")
def compress(node: Node, data: RelayExpr, condition: RelayExpr) -> RelayExpr:
    """The slices along an axis for which a condition holds; without an axis, elements of the flattened tensor."""
    places = relay.reshape(relay.argwhere(condition), (-1,))
    if node.attr("axis", None) is None:
        return relay.take(relay.reshape(data, (-1,)), places, axis=0)
    return relay.take(data, places, axis=node.axis(0, node.rank(data)))
