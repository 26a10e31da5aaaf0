"""Axes that are known only at run time.

How many there are is known, and so is the rank of every result; its extents are left open. With ``rank`` positions, the
axes are a mask of that length: shapes are chosen by it, and a reduction first moves what it reduces to the end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node


def axes_count(node: Node, axes: Expr) -> int:
    """How many axes a vector has, which has to be known."""
    count = node.shape(axes)[0] if node.rank(axes) else 1
    if count is None:
        raise node.needs_value(axes, "axes")
    return count


def squeezed_at(node: Node, data: Expr, axes: Expr) -> Expr:
    """The tensor without axes of one element."""
    rank = node.rank(data)
    left = rank - axes_count(node, axes)
    if left <= 0:
        return relay.reshape(data, ())
    kept = _first(_order(_mask(node, axes, rank), rank), left)
    return relay.reshape(data, relay.take(relay.shape_of(data, "int64"), kept, axis=0), allowzero=True)


def unsqueezed_at(node: Node, data: Expr, axes: Expr) -> Expr:
    """The tensor with new axes of one element, at places of the result."""
    count = axes_count(node, axes)
    if node.rank(data) == 0:
        return relay.reshape(data, (1,) * count)
    mask = _mask(node, axes, node.rank(data) + count)
    before = relay.cumsum(relay.cast(relay.logical_not(mask), "int64"), axis=0)
    places = relay.maximum(before - const(1, "int64"), const(0, "int64"))
    extents = relay.take(relay.shape_of(data, "int64"), places, axis=0)
    return relay.reshape(data, _ones_where(mask, extents), allowzero=True)


def reduced_at(node: Node, data: Expr, axes: Expr, keepdims: bool, reduction: Callable[[Expr], Expr]) -> Expr:
    """A reduction along axes; ``reduction`` reduces the second axis of a matrix, without keeping it."""
    rank = node.rank(data)
    mask = _mask(node, axes, rank)
    order = _order(mask, rank)
    extents = relay.shape_of(data, "int64")
    kept = _ones_where(mask, extents)
    sizes = [relay.prod(kept), relay.prod(_ones_where(relay.logical_not(mask), extents))]
    matrix = relay.reshape(_permuted(data, extents, order), relay.stack(sizes, axis=0), allowzero=True)
    result = reduction(matrix)
    if keepdims:
        return relay.reshape(result, kept, allowzero=True)
    left = rank - axes_count(node, axes)
    if left <= 0:
        return relay.reshape(result, ())
    return relay.reshape(result, relay.take(extents, _first(order, left), axis=0), allowzero=True)


def _positions(rank: int) -> Expr:
    return const(np.arange(rank, dtype="int64"))


def _mask(node: Node, axes: Expr, rank: int) -> Expr:
    """For each position, whether it is one of the axes; those below zero count from the end."""
    given = relay.reshape(relay.cast(axes, "int64"), (1, -1))
    given = relay.where(relay.less(given, const(0, "int64")), given + const(rank, "int64"), given)
    return relay.any(relay.equal(relay.expand_dims(_positions(rank), 1), given), axis=1)


def _order(mask: Expr, rank: int) -> Expr:
    """The positions: those that are not axes first, each group in order."""
    keys = relay.cast(mask, "int64") * const(rank, "int64") + _positions(rank)
    return relay.argsort(keys, axis=0, dtype="int64")


def _first(vector: Expr, count: int) -> Expr:
    return relay.strided_slice(vector, [0], [count])


def _ones_where(mask: Expr, extents: Expr) -> Expr:
    return relay.where(mask, const(1, "int64"), extents)


def _strides(extents: Expr) -> Expr:
    """How many elements lie between neighbours along each axis, at least one."""
    inner = relay.reverse(relay.cumprod(relay.reverse(extents, 0), axis=0, exclusive=True), 0)
    return relay.maximum(inner, const(1, "int64"))


def _permuted(data: Expr, extents: Expr, order: Expr) -> Expr:
    """The elements, flat, in the order that they have with the axes in another order."""
    moved = relay.take(extents, order, axis=0)
    count = relay.prod(extents)
    places = relay.expand_dims(relay.arange(const(0, "int64"), count, const(1, "int64"), "int64"), 1)
    coordinates = relay.floor_mod(relay.floor_divide(places, _strides(moved)), moved)
    sources = relay.sum(coordinates * relay.take(_strides(extents), order, axis=0), axis=1)
    return relay.take(relay.reshape(data, (-1,)), sources, axis=0)
