"""Quasi-affine iterator maps: the index expressions that splitting and fusing loops produces.

``IterMark(source, extent)`` is a value in ``0 .. extent - 1``: a loop variable (minus its start), or a fused sum.
``IterSplitExpr`` is a digit of a mark, ``(mark // lower_factor) % extent * scale``. ``IterSumExpr`` is a sum of such
digits and a base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr
from tilewright.support.dtype import INT32
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Child, Children, Node, node
from tilewright.support.recursion import with_recursion_room


class IterMapExpr(PrimExpr):
    """Base of the expressions of iterator maps."""

    __slots__ = ()


@node
class IterMark(Node):
    """A value that takes each integer from zero to below ``extent``; ``source`` says which value."""

    source: Child[PrimExpr]
    extent: Child[PrimExpr]

    def __init__(self, source: PrimExpr, extent: ExprLike) -> None:
        self.source = source
        self.extent = operators.as_expr(extent)

    def __repr__(self) -> str:
        return f"IterMark({self.source!r}, {self.extent!r})"


@node
class IterSplitExpr(IterMapExpr):
    """``(source // lower_factor) % extent * scale``."""

    source: Child[IterMark]
    lower_factor: Child[PrimExpr]
    extent: Child[PrimExpr]
    scale: Child[PrimExpr]

    def __init__(
        self,
        source: IterMark,
        lower_factor: ExprLike | None = None,
        extent: ExprLike | None = None,
        scale: ExprLike | None = None,
    ) -> None:
        dtype = source.source.dtype
        self.source = source
        self.lower_factor = (
            operators.const(1, dtype) if lower_factor is None else operators.as_expr(lower_factor)
        )
        self.extent = source.extent if extent is None else operators.as_expr(extent)
        self.scale = operators.const(1, dtype) if scale is None else operators.as_expr(scale)
        self.dtype = dtype

    def rebuild(self, **changes: Any) -> IterSplitExpr:
        return IterSplitExpr(changes["source"], changes["lower_factor"], changes["extent"], changes["scale"])


@node
class IterSumExpr(IterMapExpr):
    """The sum of splits and a base."""

    args: Children[IterSplitExpr]
    base: Child[PrimExpr]

    def __init__(self, args: Sequence[IterSplitExpr], base: ExprLike = 0) -> None:
        self.args = tuple(args)
        self.base = operators.as_expr(base)
        self.dtype = (
            self.args[0].dtype if self.args else self.base.dtype if isinstance(base, PrimExpr) else INT32
        )

    def rebuild(self, **changes: Any) -> IterSumExpr:
        return IterSumExpr(changes["args"], changes["base"])


def same_value(a: PrimExpr, b: PrimExpr) -> bool:
    """True for one expression, or two equal constants."""
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)


def same_split(a: IterSplitExpr, b: IterSplitExpr) -> bool:
    """True if two splits are the same digit of the same mark, with the same scale."""
    return (
        a.source is b.source
        and same_value(a.lower_factor, b.lower_factor)
        and same_value(a.extent, b.extent)
        and same_value(a.scale, b.scale)
    )


@with_recursion_room
def normalize_iter_map_to_expr(expr: PrimExpr) -> PrimExpr:
    """The plain expression that an iterator map stands for."""
    return _plain(expr)


def _plain(expr: PrimExpr) -> PrimExpr:
    if isinstance(expr, IterSumExpr):
        total: PrimExpr | None = None
        for split in expr.args:
            made = _plain(split)
            total = made if total is None else operators.add(total, made)
        return expr.base if total is None else operators.add(total, expr.base)
    if not isinstance(expr, IterSplitExpr):
        if isinstance(expr, PrimExpr):
            return expr
        raise TilewrightError(f"{type(expr).__name__} is not an expression of an iterator map")
    mark = expr.source
    value = _plain(mark.source)
    covered = operators.multiply(expr.lower_factor, expr.extent)
    if not same_value(covered, mark.extent) and not (
        same_value(expr.extent, mark.extent) and same_value(expr.lower_factor, operators.const(1, expr.dtype))
    ):
        value = operators.floormod(value, covered)
    value = operators.floordiv(value, expr.lower_factor)
    return operators.multiply(value, expr.scale)
