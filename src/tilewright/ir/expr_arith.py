"""Arithmetic, comparisons, logic, casts and selection."""

from __future__ import annotations

from typing import Any as AnyType
from typing import Self

from tilewright.ir import operators
from tilewright.ir.expr_base import ExprLike, PrimExpr
from tilewright.support.dtype import BOOL, DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Child, node
from tilewright.support.span import Span


@node
class Cast(PrimExpr):
    """A value as another type.

    A float becomes the integer next towards zero; beyond the ends of the integer's range it becomes the nearer end, and
    a NaN becomes zero. An integer becomes a narrower one, or one of the other signedness, by wrapping. A float becomes
    a narrower one by rounding to the nearest, ties to even, and infinite beyond its range. To bool, everything but zero
    is true, a NaN included.
    """

    dtype: DataType
    value: Child[PrimExpr]
    span: Span | None = None

    def __init__(self, dtype: str, value: ExprLike, span: Span | None = None) -> None:
        self.dtype = DataType(dtype)
        self.value = operators.as_expr(value)
        if self.dtype.lanes != self.value.dtype.lanes:
            raise ExpressionError(
                f"a cast cannot change the number of lanes: {self.value.dtype} to {self.dtype}"
            )
        self.span = span


@node
class BinaryOpExpr(PrimExpr):
    """Base of arithmetic nodes: operands and result have one type."""

    a: Child[PrimExpr]
    b: Child[PrimExpr]

    def __init__(self, a: ExprLike, b: ExprLike, span: Span | None = None) -> None:
        left = a if isinstance(a, PrimExpr) else operators.as_expr(a)
        right = b if isinstance(b, PrimExpr) else operators.as_expr(b)
        if left.dtype is not right.dtype:
            raise ExpressionError(
                f"operands of {type(self).__name__} have types {left.dtype} and {right.dtype}"
            )
        self.a = left
        self.b = right
        self.dtype = left.dtype
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(changes["a"], changes["b"], self.span)


class Add(BinaryOpExpr):
    """Sum."""

    __slots__ = ()


class Sub(BinaryOpExpr):
    """Difference."""

    __slots__ = ()


class Mul(BinaryOpExpr):
    """Product."""

    __slots__ = ()


class Div(BinaryOpExpr):
    """Quotient; of integers, rounded towards zero. An integer divisor of zero counts as one."""

    __slots__ = ()


class Mod(BinaryOpExpr):
    """Remainder of ``Div``: has the sign of the dividend."""

    __slots__ = ()


class FloorDiv(BinaryOpExpr):
    """Quotient rounded down."""

    __slots__ = ()


class FloorMod(BinaryOpExpr):
    """Remainder of ``FloorDiv``: has the sign of the divisor."""

    __slots__ = ()


class Min(BinaryOpExpr):
    """The smaller: NaN where either operand is NaN, otherwise ``a <= b ? a : b`` (of equal operands, zeros of different
    sign included, the first)."""

    __slots__ = ()


class Max(BinaryOpExpr):
    """The larger: NaN where either operand is NaN, otherwise ``a >= b ? a : b`` (of equal operands, zeros of different
    sign included, the first)."""

    __slots__ = ()


@node
class CmpExpr(PrimExpr):
    """Base of comparisons: operands have one type, the result is bool with as many lanes."""

    a: Child[PrimExpr]
    b: Child[PrimExpr]

    def __init__(self, a: ExprLike, b: ExprLike, span: Span | None = None) -> None:
        left = a if isinstance(a, PrimExpr) else operators.as_expr(a)
        right = b if isinstance(b, PrimExpr) else operators.as_expr(b)
        if left.dtype is not right.dtype:
            raise ExpressionError(
                f"operands of {type(self).__name__} have types {left.dtype} and {right.dtype}"
            )
        self.a = left
        self.b = right
        self.dtype = BOOL.with_lanes(left.dtype.lanes)
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(changes["a"], changes["b"], self.span)


class EQ(CmpExpr):
    """Equal."""

    __slots__ = ()


class NE(CmpExpr):
    """Not equal."""

    __slots__ = ()


class LT(CmpExpr):
    """Less."""

    __slots__ = ()


class LE(CmpExpr):
    """Less or equal."""

    __slots__ = ()


class GT(CmpExpr):
    """Greater."""

    __slots__ = ()


class GE(CmpExpr):
    """Greater or equal."""

    __slots__ = ()


class LogicalExpr(PrimExpr):
    """Base of logical nodes: operands and result are bool."""

    __slots__ = ()


@node
class BinaryLogicalExpr(LogicalExpr):
    """Base of logical nodes with two operands."""

    a: Child[PrimExpr]
    b: Child[PrimExpr]

    def __init__(self, a: ExprLike, b: ExprLike, span: Span | None = None) -> None:
        left = operators.as_expr(a)
        right = operators.as_expr(b)
        if not (left.dtype.is_bool and left.dtype is right.dtype):
            raise ExpressionError(
                f"operands of {type(self).__name__} have types {left.dtype} and {right.dtype}, both must be bool"
            )
        self.a = left
        self.b = right
        self.dtype = left.dtype
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(changes["a"], changes["b"], self.span)


class And(BinaryLogicalExpr):
    """Both."""

    __slots__ = ()


class Or(BinaryLogicalExpr):
    """Either."""

    __slots__ = ()


@node
class Not(LogicalExpr):
    """The opposite."""

    a: Child[PrimExpr]

    def __init__(self, a: ExprLike, span: Span | None = None) -> None:
        self.a = operators.as_expr(a)
        if not self.a.dtype.is_bool:
            raise ExpressionError(f"the operand of Not has type {self.a.dtype}, it must be bool")
        self.dtype = self.a.dtype
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(changes["a"], self.span)


@node
class Select(PrimExpr):
    """One of two values, both of which are evaluated."""

    condition: Child[PrimExpr]
    true_value: Child[PrimExpr]
    false_value: Child[PrimExpr]

    def __init__(
        self, condition: ExprLike, true_value: ExprLike, false_value: ExprLike, span: Span | None = None
    ) -> None:
        self.condition = operators.as_expr(condition)
        self.true_value = operators.as_expr(true_value)
        self.false_value = operators.as_expr(false_value)
        if not self.condition.dtype.is_bool:
            raise ExpressionError(f"the condition of Select has type {self.condition.dtype}, it must be bool")
        if self.true_value.dtype is not self.false_value.dtype:
            raise ExpressionError(
                f"the values of Select have types {self.true_value.dtype} and {self.false_value.dtype}"
            )
        self.dtype = self.true_value.dtype
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(changes["condition"], changes["true_value"], changes["false_value"], self.span)
