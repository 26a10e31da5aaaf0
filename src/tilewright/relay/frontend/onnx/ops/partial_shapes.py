"""Partly known shapes: helpers to reshape, broadcast and slice without knowing every dimension.

An extent is an int if it is known at import, otherwise a scalar of int64 that the program computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node

Extent = int | Expr
MOST_CONSTANTS = 1 << 25
"""Elements: converters make no larger tables of constants."""


def check_constants(node: Node, *factors: int) -> None:
    """Refuse a table of constants of so many elements before it is made."""
    count = prod(factors)
    if count > MOST_CONSTANTS:
        raise node.fail(f"it takes a table of {count} constants, more than {MOST_CONSTANTS}")


def extents(node: Node, data: Expr) -> list[Extent]:
    """The shape of a tensor."""
    found: list[Extent] = []
    shape: Expr | None = None
    for axis, size in enumerate(node.shape(data)):
        if size is not None:
            found.append(size)
            continue
        if shape is None:
            shape = relay.shape_of(data, "int64")
        found.append(relay.take(shape, const(axis, "int64"), axis=0))
    return found


def extent(node: Node, data: Expr, axis: int) -> Extent:
    """One dimension of a tensor."""
    return extents(node, data)[axis]


def scalar(value: Extent) -> Expr:
    """An extent as an expression of int64."""
    return value if isinstance(value, Expr) else const(value, "int64")


def shape_vector(sizes: Sequence[Extent]) -> tuple[int, ...] | Expr:
    """Extents as numbers where all are known, else as a vector that the program computes."""
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        return tuple(known)
    return relay.concatenate([relay.reshape(scalar(size), (1,)) for size in sizes], axis=0)


def reshaped(node: Node, data: Expr, sizes: Sequence[Extent]) -> Expr:
    """The elements in another shape; one extent that is not known is what the others leave."""
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) >= len(sizes) - 1 and 0 not in known:
        target = tuple(size if isinstance(size, int) else -1 for size in sizes)
        return data if target == node.shape(data) else relay.reshape(data, target)
    if len(known) == len(sizes):
        return relay.reshape(data, tuple(known), allowzero=True)
    return relay.reshape(data, shape_vector(sizes), allowzero=True)


def broadcast(node: Node, data: Expr, sizes: Sequence[Extent]) -> Expr:
    """The tensor repeated to a shape."""
    target = shape_vector(sizes)
    return data if target == node.shape(data) else relay.broadcast_to(data, target)


def part(data: Expr, begin: int, end: int, axis: int) -> Expr:
    """The elements ``begin`` to ``end`` along one axis."""
    return relay.strided_slice(data, [begin], [end], [1], axes=[axis])


def as_matrices(node: Node, data: Expr) -> Expr:
    """All dimensions but the last two joined into one."""
    rank = node.rank(data)
    if rank == 2:
        return relay.expand_dims(data, axis=0)
    rows, columns = node.shape(data)[-2:]
    if rank > 3 and rows and columns:
        return relay.reshape(data, (-1, rows, columns))
    for _ in range(rank - 3):
        data = relay.reshape(data, (-3, -2))
    return data


def from_matrices(node: Node, data: Expr, like: Expr) -> Expr:
    """The first dimension split into all but the last two of another tensor."""
    rank = node.rank(like)
    if rank == 2:
        return relay.squeeze(data, axis=[0])
    if rank == 3:
        return data
    lead, rest = node.shape(like)[:-2], node.shape(data)[1:]
    if None not in lead and None not in rest and 0 not in lead:
        return relay.reshape(data, (*lead, *rest))
    return relay.reshape_like(data, like, 0, 1, 0, rank - 2)


def arange(count: Extent, dtype: str = "int64") -> Expr:
    """The numbers from 0 up to an extent."""
    if isinstance(count, int) and count <= MOST_CONSTANTS:
        return const(np.arange(count, dtype=dtype))
    numbers = relay.arange(const(0, "int64"), scalar(count), const(1, "int64"), dtype="int64")
    return numbers if dtype == "int64" else relay.cast(numbers, dtype)


def combined(first: Extent, second: Extent, operation: Any) -> Extent:
    """Two extents combined by Python's operator where both are known, else by the program: both sides overload it."""
    if isinstance(first, int) and isinstance(second, int):
        return int(operation(first, second))
    made: Expr = operation(scalar(first), scalar(second))
    return made
