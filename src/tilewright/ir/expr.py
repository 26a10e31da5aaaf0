"""Primitive expressions: the values that loops and tensor expressions compute.

Semantics, for every pass, code generator and interpreter:

* An expression has a data type with lanes; a binary node's operands have the same type, its result too (a comparison
  gives bool with the same lanes).
* Integer arithmetic wraps around. Index arithmetic (int32 and int64) is assumed not to overflow: the simplifier uses it.
* ``Div`` and ``Mod`` truncate towards zero, ``FloorDiv`` and ``FloorMod`` round down. Division by zero is undefined.
* ``And`` and ``Or`` do not promise to skip their second operand. ``Select`` evaluates all its operands; the intrinsic
  ``tir.if_then_else`` evaluates only the branch that is taken.
* Floating-point expressions are not reassociated by the simplifier. A product followed by a sum may become one FMA.
* Expressions have no side effects, but for calls whose operator says so.

``a == b`` gives an ``EqualOp``: an expression where one is asked for, an identity test as a condition. Nodes hash by
identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any as AnyType, ClassVar, Self

from tilewright.ir import operators, text
from tilewright.ir.base import BaseExpr, TypedExpr
from tilewright.ir.op import CallEffectKind, Op
from tilewright.ir.type import PointerType, PrimType, Type
from tilewright.support.dtype import BOOL, HANDLE_TYPE, INT32, DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Child, Children, Defines, Node, OptionalChild, node
from tilewright.support.span import Span

if TYPE_CHECKING:
    from tilewright.ir.buffer import Buffer

ExprLike = AnyType
"""What users may write for an expression: an expression, an axis, a tensor element, a number, a NumPy scalar."""


class ExprOp:
    """The arithmetic operators of Python, for everything that stands for an expression."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __add__(self, other: ExprLike) -> PrimExpr:
        return operators.add(self, other)

    def __radd__(self, other: ExprLike) -> PrimExpr:
        return operators.add(other, self)

    def __sub__(self, other: ExprLike) -> PrimExpr:
        return operators.subtract(self, other)

    def __rsub__(self, other: ExprLike) -> PrimExpr:
        return operators.subtract(other, self)

    def __mul__(self, other: ExprLike) -> PrimExpr:
        return operators.multiply(self, other)

    def __rmul__(self, other: ExprLike) -> PrimExpr:
        return operators.multiply(other, self)

    def __truediv__(self, other: ExprLike) -> PrimExpr:
        return operators.true_divide(self, other)

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


class EqualOp(ExprOp):
    """What ``a == b`` gives: an expression when used as one, an identity test when used as a condition."""

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
    """What ``a != b`` gives; see ``EqualOp``."""

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
    """A floating-point constant; ``value`` is kept in double precision and rounded when code is made."""

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
    """A variable; two are the same only if they are the same node. Handles say in ``type_annotation`` what they point to."""

    name: str
    dtype: DataType
    type_annotation: Type
    span: Span | None = None

    def __init__(self, name: str = "tindex", dtype: str | Type = INT32, span: Span | None = None) -> None:
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
        """Where the memory that a pointer variable points to lives; "global" if nothing else is said."""
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


@node
class Range(Node):
    """The integers from ``min`` to ``min + extent``, the end left out."""

    min: Child[PrimExpr]
    extent: Child[PrimExpr]
    span: Span | None = None

    def __init__(self, begin: ExprLike, end: ExprLike | None = None, span: Span | None = None) -> None:
        if end is None:
            self.extent = operators.as_expr(begin)
            self.min = operators.const(0, self.extent.dtype)
        else:
            self.min = operators.as_expr(begin)
            self.extent = operators.subtract(end, self.min)
        self.span = span

    @staticmethod
    def from_min_extent(min_value: ExprLike, extent: ExprLike, span: Span | None = None) -> Range:
        """The range that starts here and has this many elements."""
        made = object.__new__(Range)
        object.__setattr__(made, "min", operators.as_expr(min_value))
        object.__setattr__(made, "extent", operators.as_expr(extent))
        object.__setattr__(made, "span", span)
        return made

    def __repr__(self) -> str:
        return f"range(min={self.min}, ext={self.extent})"


@node
class IterVar(Node, ExprOp):
    """An axis: a variable, the range it runs over, and how. ``thread_tag`` names the thread index it is bound to."""

    dom: OptionalChild[Range]
    var: Defines[Var]
    iter_type: int
    thread_tag: str = ""
    span: Span | None = None

    DataPar: ClassVar[int] = 0
    ThreadIndex: ClassVar[int] = 1
    CommReduce: ClassVar[int] = 2
    Ordered: ClassVar[int] = 3
    DimInfo: ClassVar[int] = 4
    Opaque: ClassVar[int] = 4
    Unrolled: ClassVar[int] = 5
    Vectorized: ClassVar[int] = 6
    Parallelized: ClassVar[int] = 7
    Tensorized: ClassVar[int] = 8

    __hash__ = object.__hash__
    __eq__ = ExprOp.__eq__
    __ne__ = ExprOp.__ne__

    def __init__(
        self,
        dom: Range | Sequence[ExprLike] | None,
        var: Var | str,
        iter_type: int,
        thread_tag: str = "",
        span: Span | None = None,
    ) -> None:
        if dom is not None and not isinstance(dom, Range):
            if not isinstance(dom, (tuple, list)) or len(dom) != 2:
                raise ExpressionError(f"the domain of an axis is a Range or a pair (begin, end), not {dom!r}")
            dom = Range(*dom)
        self.dom = dom
        dtype = dom.extent.dtype if dom is not None else INT32
        self.var = Var(var, dtype) if isinstance(var, str) else var
        self.iter_type = iter_type
        self.thread_tag = thread_tag
        self.span = span

    @property
    def dtype(self) -> DataType:
        """The type of the axis' variable."""
        return self.var.dtype

    def __repr__(self) -> str:
        domain = f", {self.dom}" if self.dom is not None else ""
        return f"iter_var({self.var.name}{domain}{', ' + self.thread_tag if self.thread_tag else ''})"


@node
class CommReducer(Node):
    """A commutative, associative combination of tuples: ``result`` in terms of ``lhs`` and ``rhs``, and its identity."""

    lhs: Defines[tuple[Var, ...]]
    rhs: Defines[tuple[Var, ...]]
    result: Children[PrimExpr]
    identity_element: Children[PrimExpr]
    span: Span | None = None

    def __init__(
        self,
        lhs: Sequence[Var],
        rhs: Sequence[Var],
        result: Sequence[PrimExpr],
        identity_element: Sequence[PrimExpr],
        span: Span | None = None,
    ) -> None:
        self.lhs = tuple(lhs)
        self.rhs = tuple(rhs)
        self.result = tuple(operators.as_expr(value) for value in result)
        self.identity_element = tuple(operators.as_expr(value) for value in identity_element)
        self.span = span


@node
class Reduce(PrimExpr):
    """One output of a reduction of ``source`` over ``axis``; elements where ``condition`` is false do not take part."""

    combiner: CommReducer
    source: Children[PrimExpr]
    init: Children[PrimExpr]
    axis: tuple[IterVar, ...]
    condition: Child[PrimExpr]
    value_index: int
    dtype: DataType
    span: Span | None = None
    derived = ("dtype",)

    def __init__(
        self,
        combiner: CommReducer,
        src: Sequence[ExprLike],
        rdom: Sequence[IterVar],
        condition: ExprLike,
        value_index: int,
        init: Sequence[ExprLike] | None = None,
        span: Span | None = None,
    ) -> None:
        self.combiner = combiner
        self.source = tuple(operators.as_expr(value) for value in src)
        self.init = tuple(operators.as_expr(value) for value in init) if init else ()
        self.axis = tuple(rdom)
        self.condition = operators.as_expr(True if condition is None else condition)
        self.value_index = int(value_index)
        if not 0 <= self.value_index < len(self.source):
            raise ExpressionError(f"a reduction of {len(self.source)} values has no value number {value_index}")
        if len(combiner.lhs) != len(self.source):
            raise ExpressionError(
                f"the combiner takes {len(combiner.lhs)} values at a time, the reduction gives {len(self.source)}"
            )
        self.dtype = self.source[self.value_index].dtype
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        made = self.replace(**changes)
        source = changes.get("source", self.source)
        return made.replace(dtype=source[self.value_index].dtype)


@node
class Cast(PrimExpr):
    """A value converted to another type: floats to integers truncate, integers to narrower ones wrap, to bool test for zero."""

    dtype: DataType
    value: Child[PrimExpr]
    span: Span | None = None

    def __init__(self, dtype: str, value: ExprLike, span: Span | None = None) -> None:
        self.dtype = DataType(dtype)
        self.value = operators.as_expr(value)
        if self.dtype.lanes != self.value.dtype.lanes:
            raise ExpressionError(f"a cast cannot change the number of lanes: {self.value.dtype} to {self.dtype}")
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
            raise ExpressionError(f"operands of {type(self).__name__} have types {left.dtype} and {right.dtype}")
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
    """Quotient; of integers, rounded towards zero."""

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
    """The smaller; of a NaN and a number, ``a < b ? a : b`` decides."""

    __slots__ = ()


class Max(BinaryOpExpr):
    """The larger; of a NaN and a number, ``a > b ? a : b`` decides."""

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
            raise ExpressionError(f"operands of {type(self).__name__} have types {left.dtype} and {right.dtype}")
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


@node
class Load(PrimExpr):
    """Elements of flat memory: ``buffer_var[index]`` where ``predicate`` holds."""

    dtype: DataType
    buffer_var: Child[Var]
    index: Child[PrimExpr]
    predicate: Child[PrimExpr]
    span: Span | None = None

    def __init__(
        self, dtype: str, buffer_var: Var, index: ExprLike, predicate: ExprLike | None = None, span: Span | None = None
    ) -> None:
        self.dtype = DataType(dtype)
        self.buffer_var = buffer_var
        self.index = operators.as_expr(index)
        self.predicate = (
            operators.const_true(self.index.dtype.lanes) if predicate is None else operators.as_expr(predicate)
        )
        self.span = span


@node
class BufferLoad(PrimExpr):
    """An element (or, where the last index is a vector, several) of a multi-dimensional buffer."""

    buffer: Buffer
    indices: Children[PrimExpr]
    dtype: DataType
    span: Span | None = None
    derived = ("dtype",)

    def __init__(self, buffer: Buffer, indices: Sequence[ExprLike], span: Span | None = None) -> None:
        self.buffer = buffer
        self.indices = tuple(operators.as_expr(index) for index in indices)
        lanes = self.indices[-1].dtype.lanes if self.indices else 1
        self.dtype = buffer.dtype.with_lanes(buffer.dtype.lanes * lanes)
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(self.buffer, changes["indices"], self.span)


class DataProducer(Node):
    """Base of what gives elements by index: a tensor."""

    __slots__ = ()
    shape: tuple[PrimExpr, ...]
    dtype: DataType

    @property
    def name_hint(self) -> str:
        """A name for messages."""
        return "producer"


@node
class ProducerLoad(PrimExpr):
    """An element of a tensor, before the tensor has a buffer."""

    producer: DataProducer
    indices: Children[PrimExpr]
    dtype: DataType
    span: Span | None = None
    derived = ("dtype",)

    def __init__(self, producer: DataProducer, indices: Sequence[ExprLike], span: Span | None = None) -> None:
        self.producer = producer
        self.indices = tuple(operators.as_expr(index) for index in indices)
        self.dtype = producer.dtype
        self.span = span


@node
class Ramp(PrimExpr):
    """The vector ``base, base + stride, base + 2 * stride, ...``."""

    base: Child[PrimExpr]
    stride: Child[PrimExpr]
    lanes: int

    def __init__(self, base: ExprLike, stride: ExprLike, lanes: int, span: Span | None = None) -> None:
        self.base = operators.as_expr(base)
        step = operators.as_expr(stride)
        self.lanes = int(lanes)
        if self.base.dtype.lanes != 1 or step.dtype.lanes != 1 or not self.base.dtype.is_integral:
            raise ExpressionError(f"a ramp goes from an integer in integer steps, not from {self.base.dtype}")
        if self.lanes < 2:
            raise ExpressionError(f"a ramp has two lanes or more, not {lanes}")
        self.stride = operators.cast(self.base.dtype, step)
        self.dtype = self.base.dtype.with_lanes(self.lanes)
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(changes["base"], changes["stride"], self.lanes, self.span)


@node
class Broadcast(PrimExpr):
    """A value in every lane."""

    value: Child[PrimExpr]
    lanes: int

    def __init__(self, value: ExprLike, lanes: int, span: Span | None = None) -> None:
        self.value = operators.as_expr(value)
        self.lanes = int(lanes)
        if self.value.dtype.lanes != 1:
            raise ExpressionError(f"only a scalar can be broadcast, not {self.value.dtype}")
        if self.lanes < 2:
            raise ExpressionError(f"a broadcast has two lanes or more, not {lanes}")
        self.dtype = self.value.dtype.with_lanes(self.lanes)
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(changes["value"], self.lanes, self.span)


@node
class Shuffle(PrimExpr):
    """Lanes picked by constant ``indices`` out of the concatenation of ``vectors``."""

    vectors: Children[PrimExpr]
    indices: Children[PrimExpr]

    def __init__(self, vectors: Sequence[ExprLike], indices: Sequence[ExprLike], span: Span | None = None) -> None:
        self.vectors = tuple(operators.as_expr(vector) for vector in vectors)
        self.indices = tuple(operators.as_expr(index) for index in indices)
        if not self.vectors or not self.indices:
            raise ExpressionError("a shuffle needs vectors and indices")
        element = self.vectors[0].dtype.element
        if any(vector.dtype.element is not element for vector in self.vectors):
            raise ExpressionError("the vectors of a shuffle must have one element type")
        total = sum(vector.dtype.lanes for vector in self.vectors)
        for index in self.indices:
            if isinstance(index, IntImm) and not 0 <= index.value < total:
                raise ExpressionError(f"a shuffle of {total} lanes has no lane {index.value}")
        self.dtype = element.with_lanes(len(self.indices))
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(changes["vectors"], changes["indices"], self.span)


@node
class Call(PrimExpr):
    """A call of an operator; ``op.effect`` says what it may do."""

    dtype: DataType
    op: AnyType
    args: Children[PrimExpr]
    span: Span | None = None

    def __init__(self, dtype: str, op: Op | BaseExpr | str, args: Sequence[ExprLike], span: Span | None = None) -> None:
        if isinstance(op, str):
            op = Op.get(op if op.startswith("tir.") or op in Op.registry else f"tir.{op}")
        self.dtype = DataType(dtype)
        self.op = op
        self.args = tuple(operators.as_argument(argument) for argument in args)
        self.span = span

    @property
    def effect(self) -> CallEffectKind:
        """What the call may do; a call of a function that is not an operator may do anything."""
        return self.op.effect if isinstance(self.op, Op) else CallEffectKind.UpdateState


@node
class Let(PrimExpr):
    """``body`` with ``var`` standing for ``value``."""

    var: Defines[Var]
    value: Child[PrimExpr]
    body: Child[PrimExpr]

    def __init__(self, var: Var, value: ExprLike, body: ExprLike, span: Span | None = None) -> None:
        self.var = var
        self.value = operators.as_expr(value)
        self.body = operators.as_expr(body)
        if self.value.dtype is not var.dtype:
            raise ExpressionError(f"{var.name} has type {var.dtype}, its value {self.value.dtype}")
        self.dtype = self.body.dtype
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        return type(self)(self.var, changes["value"], changes["body"], self.span)


@node
class Any(PrimExpr):
    """A size that is not known: a wildcard in a shape."""

    dtype: DataType
    span: Span | None = None

    def __init__(self, span: Span | None = None) -> None:
        self.dtype = INT32
        self.span = span


Rewriter = Callable[[PrimExpr], PrimExpr]


def is_const(expr: object, value: float) -> bool:
    """True if the expression is a constant, or a broadcast of one, of this value."""
    while isinstance(expr, Broadcast):
        expr = expr.value
    return isinstance(expr, (IntImm, FloatImm)) and expr.value == value and not math.isnan(expr.value)


def const_value(expr: object) -> int | None:
    """The value of an integer constant, or None."""
    return expr.value if isinstance(expr, IntImm) else None
