"""The root of primitive expressions, constants and variables, and Python's operators for them."""

from __future__ import annotations

from typing import Any as AnyType

from tilewright.ir import operators, text
from tilewright.ir.base import TypedExpr
from tilewright.ir.type import PointerType, PrimType, Type
from tilewright.support.dtype import HANDLE_TYPE, INT32, DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import node
from tilewright.support.span import Span

ExprLike = AnyType
"""The values that convert to an expression: an expression, an axis, a tensor element, a number, a NumPy scalar."""


class ExprOp:
    """The arithmetic operators of Python, for everything that stands for an expression."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __add__(self, other: ExprLike) -> PrimExpr:
        return NotImplemented if isinstance(other, ManyElements) else operators.add(self, other)

    def __radd__(self, other: ExprLike) -> PrimExpr:
        return operators.add(other, self)

    def __sub__(self, other: ExprLike) -> PrimExpr:
        return NotImplemented if isinstance(other, ManyElements) else operators.subtract(self, other)

    def __rsub__(self, other: ExprLike) -> PrimExpr:
        return operators.subtract(other, self)

    def __mul__(self, other: ExprLike) -> PrimExpr:
        return NotImplemented if isinstance(other, ManyElements) else operators.multiply(self, other)

    def __rmul__(self, other: ExprLike) -> PrimExpr:
        return operators.multiply(other, self)

    def __truediv__(self, other: ExprLike) -> PrimExpr:
        return NotImplemented if isinstance(other, ManyElements) else operators.true_divide(self, other)

    def __rtruediv__(self, other: ExprLike) -> PrimExpr:
        return operators.true_divide(other, self)

    __div__ = __truediv__
    __rdiv__ = __rtruediv__

    def __floordiv__(self, other: ExprLike) -> PrimExpr:
        return operators.floordiv(self, other)

    def __rfloordiv__(self, other: ExprLike) -> PrimExpr:
        return operators.floordiv(other, self)

    def __mod__(self, other: ExprLike) -> PrimExpr:
        return operators.floormod(self, other)

    def __rmod__(self, other: ExprLike) -> PrimExpr:
        return operators.floormod(other, self)

    def __neg__(self) -> PrimExpr:
        return operators.negative(self)

    def __lshift__(self, other: ExprLike) -> PrimExpr:
        return operators.left_shift(self, other)

    def __rlshift__(self, other: ExprLike) -> PrimExpr:
        return operators.left_shift(other, self)

    def __rshift__(self, other: ExprLike) -> PrimExpr:
        return operators.right_shift(self, other)

    def __rrshift__(self, other: ExprLike) -> PrimExpr:
        return operators.right_shift(other, self)

    def __and__(self, other: ExprLike) -> PrimExpr:
        return operators.bitwise_and(self, other)

    def __rand__(self, other: ExprLike) -> PrimExpr:
        return operators.bitwise_and(other, self)

    def __or__(self, other: ExprLike) -> PrimExpr:
        return operators.bitwise_or(self, other)

    def __ror__(self, other: ExprLike) -> PrimExpr:
        return operators.bitwise_or(other, self)

    def __xor__(self, other: ExprLike) -> PrimExpr:
        return operators.bitwise_xor(self, other)

    def __rxor__(self, other: ExprLike) -> PrimExpr:
        return operators.bitwise_xor(other, self)

    def __invert__(self) -> PrimExpr:
        return operators.bitwise_not(self)

    def __lt__(self, other: ExprLike) -> PrimExpr:
        return operators.less(self, other)

    def __le__(self, other: ExprLike) -> PrimExpr:
        return operators.less_equal(self, other)

    def __gt__(self, other: ExprLike) -> PrimExpr:
        return operators.greater(self, other)

    def __ge__(self, other: ExprLike) -> PrimExpr:
        return operators.greater_equal(self, other)

    def __eq__(self, other: object) -> EqualOp:  # type: ignore[override]
        return EqualOp(self, other)

    def __ne__(self, other: object) -> NotEqualOp:  # type: ignore[override]
        return NotEqualOp(self, other)

    def __bool__(self) -> bool:
        raise ExpressionError(
            "the value of an expression is not known while the program is written: use tir.all, tir.any, tir.Not or "
            "tir.if_then_else instead of and, or, not and if"
        )

    __nonzero__ = __bool__

    def equal(self, other: ExprLike, span: Span | None = None) -> PrimExpr:
        """The expression that is true where both are equal."""
        return operators.equal(self, other, span)

    def astype(self, dtype: str, span: Span | None = None) -> PrimExpr:
        """This value converted to another type."""
        return operators.cast(dtype, self, span)


class ManyElements(ExprOp):
    """A value of many elements: expressions leave arithmetic with it to its own operators."""

    __slots__ = ()


class EqualOp(ExprOp):
    """The result of ``a == b``: an expression when used as one, an identity test when used as a condition."""

    __slots__ = ("a", "b", "span")
    __hash__ = object.__hash__

    def __init__(self, a: AnyType, b: AnyType, span: Span | None = None) -> None:
        self.a = a
        self.b = b
        self.span = span

    def __bool__(self) -> bool:
        return self.a is self.b or _same_constant(self.a, self.b)

    __nonzero__ = __bool__

    def asobject(self) -> PrimExpr:
        """The comparison as an expression."""
        return operators.equal(self.a, self.b, self.span)


class NotEqualOp(ExprOp):
    """The result of ``a != b``; see ``EqualOp``."""

    __slots__ = ("a", "b", "span")
    __hash__ = object.__hash__

    def __init__(self, a: AnyType, b: AnyType, span: Span | None = None) -> None:
        self.a = a
        self.b = b
        self.span = span

    def __bool__(self) -> bool:
        return not (self.a is self.b or _same_constant(self.a, self.b))

    __nonzero__ = __bool__

    def asobject(self) -> PrimExpr:
        """The comparison as an expression."""
        return operators.not_equal(self.a, self.b, self.span)


def _same_constant(a: AnyType, b: AnyType) -> bool:
    """True if one is a constant and the other a constant or number of the same value."""
    left = a.value if isinstance(a, ConstExpr) else a
    right = b.value if isinstance(b, ConstExpr) else b
    if not (isinstance(a, ConstExpr) or isinstance(b, ConstExpr)):
        return False
    return isinstance(left, (int, float, str)) and isinstance(right, (int, float, str)) and left == right


class PrimExpr(TypedExpr, ExprOp):
    """Base of primitive expressions."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = ExprOp.__eq__
    __ne__ = ExprOp.__ne__

    def __repr__(self) -> str:
        return text.expr_text(self)


PrimExprWithOp = PrimExpr


class ConstExpr(PrimExpr):
    """Base of constants."""

    __slots__ = ()
    value: AnyType


@node
class IntImm(ConstExpr):
    """An integer or bool constant."""

    dtype: DataType
    value: int
    span: Span | None = None

    def __init__(self, dtype: str, value: int, span: Span | None = None) -> None:
        kind = DataType(dtype)
        if not kind.is_integral or kind.lanes != 1:
            if not kind.is_handle:
                raise ExpressionError(f"an integer constant cannot have type {kind}")
        self.dtype = kind
        self.value = wrap_integer(kind, int(value))
        self.span = span

    def __bool__(self) -> bool:
        return self.value != 0

    __nonzero__ = __bool__

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)


def wrap_integer(dtype: DataType, value: int) -> int:
    """The value modulo two to the number of bits, in the range of the type."""
    bits = dtype.bits if not dtype.is_handle else 64
    if dtype.is_uint or dtype.is_handle:
        return value & ((1 << bits) - 1)
    half = 1 << (bits - 1)
    return value if -half <= value < half else ((value + half) & ((1 << bits) - 1)) - half


@node
class FloatImm(ConstExpr):
    """A floating-point constant; ``value`` is stored in double precision and rounded at code generation."""

    dtype: DataType
    value: float
    span: Span | None = None

    def __init__(self, dtype: str, value: float, span: Span | None = None) -> None:
        kind = DataType(dtype)
        if kind.is_integral or kind.is_handle or kind.lanes != 1:
            raise ExpressionError(f"a floating-point constant cannot have type {kind}")
        self.dtype = kind
        self.value = float(value)
        self.span = span

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)


@node
class StringImm(ConstExpr):
    """A string constant: an argument of calls and attributes."""

    value: str
    dtype: DataType
    span: Span | None = None
    derived = ("dtype",)

    def __init__(self, value: str, span: Span | None = None) -> None:
        self.value = value
        self.dtype = HANDLE_TYPE
        self.span = span

    def __eq__(self, other: object) -> bool:  # type: ignore[override]
        return self.value == (other.value if isinstance(other, StringImm) else other)

    def __ne__(self, other: object) -> bool:  # type: ignore[override]
        return not self == other

    def __hash__(self) -> int:
        return hash(self.value)


@node
class Var(PrimExpr):
    """A variable; the node itself is its identity. A handle says in ``type_annotation`` what it points to."""

    name: str
    dtype: DataType
    type_annotation: Type
    span: Span | None = None

    def __init__(self, name: str = "tindex", dtype: str | Type = INT32, span: Span | None = None) -> None:
        if not isinstance(name, str):
            raise ExpressionError(f"the name of a variable is a string, not {name!r}")
        self.name = name
        if isinstance(dtype, Type):
            self.type_annotation = dtype
            self.dtype = dtype.dtype if isinstance(dtype, PrimType) else HANDLE_TYPE
        else:
            self.dtype = DataType(dtype)
            self.type_annotation = PrimType(self.dtype)
        self.span = span

    @property
    def name_hint(self) -> str:
        """The older name of ``name``."""
        return self.name

    @property
    def storage_scope(self) -> str:
        """Where the memory that a pointer variable points to lives; "global" by default."""
        annotation = self.type_annotation
        return (annotation.storage_scope or "global") if isinstance(annotation, PointerType) else "global"

    @property
    def element_type(self) -> DataType | None:
        """The type of the elements that a pointer variable points to, if it says."""
        annotation = self.type_annotation
        if isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType):
            return annotation.element_type.dtype
        return None


@node
class SizeVar(Var):
    """A variable that is never negative: a size."""

    def __init__(self, name: str = "size", dtype: str | Type = INT32, span: Span | None = None) -> None:
        Var.__init__(self, name, dtype, span)
