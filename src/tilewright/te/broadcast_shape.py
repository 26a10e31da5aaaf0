"""The shape in which tensors of different shapes meet, and the index at which each of them is read.

Dimensions are aligned from the right. A dimension of 1, or one that is missing, repeats. Where a symbolic dimension may
turn out to be 1 when the program runs, the index is chosen then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr, Select
from tilewright.ir.operators import as_expr, cast, const, equal, subtract
from tilewright.support.errors import ExpressionError


def shape_text(shape: Sequence[Any]) -> str:
    """A shape as messages show it."""
    return f"({', '.join(str(extent) for extent in shape)})"


def as_extents(shape: ExprLike | Sequence[ExprLike]) -> tuple[PrimExpr, ...]:
    """A shape given as a number or a sequence of numbers and expressions."""
    if isinstance(shape, Sequence) or hasattr(shape, "__iter__"):
        return tuple(as_expr(extent) for extent in shape)
    return (as_expr(shape),)


def same_extent(one: PrimExpr, other: PrimExpr) -> bool:
    """True if two dimensions are known to be equal."""
    if one is other:
        return True
    if isinstance(one, IntImm) or isinstance(other, IntImm):
        if isinstance(one, IntImm) and isinstance(other, IntImm):
            return one.value == other.value
    return Analyzer().can_prove(equal(subtract(one, other), 0))


def known_different(one: PrimExpr, other: PrimExpr) -> bool:
    """True if two dimensions are known to differ."""
    return isinstance(one, IntImm) and isinstance(other, IntImm) and one.value != other.value


def _is_one(extent: PrimExpr) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def _common_extent(name: str, one: PrimExpr, other: PrimExpr, shapes: str) -> PrimExpr:
    """The dimension in which two aligned dimensions meet."""
    if _is_one(other):
        return one
    if _is_one(one):
        return other
    if known_different(one, other):
        raise ExpressionError(
            f"{name}: shapes {shapes} do not match: {one} and {other} are neither equal nor 1"
        )
    if isinstance(one, IntImm):
        return one
    if isinstance(other, IntImm):
        return other
    # Not the larger of the two: one of them may be zero.
    return one if same_extent(one, other) else Select(equal(one, 1), other, one)


def broadcast_shapes(name: str, *shapes: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The shape in which all the shapes meet."""
    text = " and ".join(shape_text(shape) for shape in shapes)
    result: tuple[PrimExpr, ...] = ()
    for shape in shapes:
        rank = max(len(shape), len(result))
        missing = const(1)
        one = (missing,) * (rank - len(result)) + tuple(result)
        other = (missing,) * (rank - len(shape)) + tuple(shape)
        result = tuple(_common_extent(name, a, b, text) for a, b in zip(one, other, strict=True))
    return result


def broadcast_index(
    indices: Sequence[PrimExpr], shape: Sequence[PrimExpr], out_shape: Sequence[PrimExpr]
) -> list[PrimExpr]:
    """Where a tensor of ``shape`` is read for the element of ``out_shape`` at ``indices``."""
    aligned = list(indices)[len(indices) - len(shape) :]
    extents = list(out_shape)[len(out_shape) - len(shape) :]
    read: list[PrimExpr] = []
    for index, extent, out_extent in zip(aligned, shape, extents, strict=True):
        if same_extent(extent, out_extent):
            read.append(index)
        elif _is_one(extent):
            read.append(const(0, index.dtype))
        else:
            read.append(Select(equal(extent, 1), const(0, index.dtype), cast(index.dtype, index)))
    return read
