"""Arithmetic functions by name. Nothing here is overridden for tensors: they overload Python's operators."""

from __future__ import annotations

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr
from tilewright.support.span import Span

add = operators.add
subtract = operators.subtract
multiply = operators.multiply
divide = operators.div
floordiv = operators.floordiv


def cast(src: ExprLike, dtype: str, span: Span | None = None) -> PrimExpr:
    """The value as another type."""
    return operators.cast(dtype, src, span)
