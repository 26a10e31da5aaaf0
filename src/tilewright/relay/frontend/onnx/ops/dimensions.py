"""Shapes as values: vectors of integers of which some elements are known.

An extent is an int if it is known, otherwise an expression: a scalar of int64.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node

Extent = int | RelayExpr


def int64(node: Node, expr: RelayExpr) -> RelayExpr:
    """The integers as int64; what is known of them stays known."""
    if node.dtype(expr) == "int64":
        return expr
    items = node.partial(expr)
    made = relay.cast(expr, "int64")
    return made if items is None else node.graph.note_partial(made, items)


def shape_vector(node: Node, data: RelayExpr) -> RelayExpr:
    """The shape of a tensor as a vector of int64."""
    return node.graph.note_partial(relay.shape_of(data, "int64"), node.shape(data))


def extent_of(node: Node, data: RelayExpr, axis: int) -> Extent:
    """One dimension of a tensor."""
    known = node.shape(data)[axis]
    if known is not None:
        return known
    return relay.take(relay.shape_of(data, "int64"), const(axis % node.rank(data), "int64"), axis=0)


def as_scalar(extent: Extent) -> RelayExpr:
    """An extent as an expression."""
    return const(extent, "int64") if isinstance(extent, int) else extent


def scalar(node: Node, expr: RelayExpr) -> RelayExpr:
    """A tensor of one element as a scalar."""
    value = node.value(expr)
    if value is not None:
        return const(value.reshape(()))
    return expr if node.rank(expr) == 0 else relay.reshape(expr, ())


def element(node: Node, vector: RelayExpr, position: int) -> Extent:
    """One number of a vector of integers."""
    items = node.partial(vector)
    known = items[position] if items is not None else None
    if known is not None:
        return known
    flat = vector if node.rank(vector) else relay.reshape(vector, (1,))
    return relay.take(int64(node, flat), const(position, "int64"), axis=0)


def vector(node: Node, items: Sequence[Extent]) -> RelayExpr:
    """A vector of int64 from its numbers; runs of known ones are one constant."""
    known = [item if isinstance(item, int) else None for item in items]
    parts: list[RelayExpr] = []
    run: list[int] = []
    for item in items:
        if isinstance(item, int):
            run.append(item)
            continue
        if run:
            parts.append(node.constants(run))
            run = []
        parts.append(relay.reshape(item, (1,)))
    if run or not parts:
        parts.append(node.constants(run))
    made = parts[0] if len(parts) == 1 else relay.concatenate(parts, 0)
    return node.graph.note_partial(made, known)


def with_known(node: Node, data: RelayExpr, extents: Sequence[int | None]) -> RelayExpr:
    """A tensor with these known dimensions put into its type."""
    found = node.shape(data)
    if all(have is not None or wanted in (None, 0) for have, wanted in zip(found, extents, strict=True)):
        return data
    return relay.reshape(data, [0 if extent is None else extent for extent in extents])


def reshaped(node: Node, data: RelayExpr, extents: Sequence[Extent]) -> RelayExpr:
    """The elements in a shape of known and computed extents."""
    known = [extent if isinstance(extent, int) else None for extent in extents]
    unknown = known.count(None)
    if unknown == 0:
        return relay.reshape(data, known, allowzero=True)
    if unknown == 1 and 0 not in known:
        return relay.reshape(data, [-1 if extent is None else extent for extent in known])
    return with_known(node, relay.reshape(data, vector(node, extents), allowzero=True), known)


def from_front(node: Node, indices: RelayExpr, extent: Extent) -> RelayExpr:
    """Indices of which the negative ones count from the back, as such that count from the front."""
    value = node.value(indices)
    if value is not None and (isinstance(extent, int) or bool((value >= 0).all())):
        return const(np.where(value < 0, value + extent, value) if isinstance(extent, int) else value)
    dtype = node.dtype(indices)
    if dtype.startswith("uint"):
        return indices
    size = relay.cast(as_scalar(extent), dtype) if dtype != "int64" else as_scalar(extent)
    return relay.where(relay.less(indices, const(0, dtype)), relay.add(indices, size), indices)
