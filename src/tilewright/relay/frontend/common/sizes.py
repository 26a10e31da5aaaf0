"""Sizes: each is an int where it is known, otherwise an expression, a scalar of int64."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp, const
from tilewright.relay.frontend.common.node import ModelNode

Expr = ExprWithOp
Size = int | Expr


def size_of(node: ModelNode, data: RelayExpr, axis: int) -> Size:
    """One dimension of a tensor."""
    known = node.shape(data)[axis]
    if known is not None:
        return known
    return relay.take(relay.shape_of(data, "int64"), const(axis % node.rank(data), "int64"), axis=0)


def sizes_of(node: ModelNode, data: RelayExpr) -> list[Size]:
    """The shape of a tensor."""
    return [size_of(node, data, axis) for axis in range(node.rank(data))]


def as_scalar(size: Size, dtype: str = "int64") -> Expr:
    """A size as an expression."""
    if isinstance(size, int):
        return const(size, dtype)
    return size if dtype == "int64" else relay.cast(size, dtype)


def all_known(sizes: Sequence[Any]) -> bool:
    """True if every size is a number."""
    return all(isinstance(size, int) for size in sizes)


def known_or_none(sizes: Sequence[Size]) -> list[int | None]:
    """The sizes that are known, None for the others."""
    return [size if isinstance(size, int) else None for size in sizes]


def vector(sizes: Sequence[Size]) -> Expr:
    """A vector of int64; runs of known sizes are one constant."""
    parts: list[Expr] = []
    run: list[int] = []
    for size in sizes:
        if isinstance(size, int):
            run.append(size)
            continue
        if run:
            parts.append(const(np.asarray(run, "int64")))
            run = []
        parts.append(relay.reshape(size, (1,)))
    if run or not parts:
        parts.append(const(np.asarray(run, "int64")))
    return parts[0] if len(parts) == 1 else relay.concatenate(parts, 0)


def multiplied(sizes: Sequence[Size]) -> Size:
    """The product."""
    known = prod(size for size in sizes if isinstance(size, int))
    unknown = [size for size in sizes if not isinstance(size, int)]
    if not unknown or known == 0:
        return known
    found = unknown[0] if known == 1 else unknown[0] * const(known, "int64")
    for size in unknown[1:]:
        found = found * size
    return found


def added(one: Size, other: Size) -> Size:
    """The sum."""
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    if (isinstance(one, int) and one == 0) or (isinstance(other, int) and other == 0):
        return other if isinstance(one, int) else one
    return as_scalar(one) + as_scalar(other)


def with_known(node: ModelNode, data: Expr, sizes: Sequence[int | None]) -> Expr:
    """A tensor whose type has these sizes where they are known."""
    found = node.shape(data)
    if all(have is not None or wanted is None for have, wanted in zip(found, sizes, strict=True)):
        return data
    if any(have is None and wanted == 0 for have, wanted in zip(found, sizes, strict=True)):
        # A zero in a shape means "as before" unless all sizes are given.
        return data
    return relay.reshape(
        data, [have if have else wanted or 0 for have, wanted in zip(found, sizes, strict=True)]
    )


def reshaped(node: ModelNode, data: Expr, sizes: Sequence[Size]) -> Expr:
    """The elements in a shape, of which one size may be -1, which is what is left."""
    known = known_or_none(sizes)
    have = node.shape(data)
    if None not in have and -1 in known and None not in known:
        rest = prod(size for size in known if size is not None and size != -1)
        total = prod(size for size in have if size is not None)
        known = [(total // rest if rest else 0) if size == -1 else size for size in known]
    if tuple(known) == have and None not in have:
        return data
    unknown = sum(size is None or size == -1 for size in known)
    if unknown == 0:
        return relay.reshape(data, known, allowzero=True)
    if unknown == 1 and 0 not in known:
        return relay.reshape(data, [-1 if size is None else size for size in known])
    if -1 in known:
        rest_of: Size = multiplied([size for size, number in zip(sizes, known, strict=True) if number != -1])
        total_of = multiplied(sizes_of(node, data))
        left = relay.floor_divide(as_scalar(total_of), as_scalar(rest_of))
        sizes = [left if number == -1 else size for size, number in zip(sizes, known, strict=True)]
        known = known_or_none(sizes)
    return with_known(node, relay.reshape(data, vector(sizes), allowzero=True), known)


def broadcast_to(node: ModelNode, data: Expr, sizes: Sequence[Size]) -> Expr:
    """A tensor repeated along axes of one and along new leading axes."""
    known = known_or_none(sizes)
    if tuple(known) == node.shape(data) and None not in known:
        return data
    if None not in known:
        return relay.broadcast_to(data, known)
    return with_known(node, relay.broadcast_to(data, vector(sizes)), known)
