"""Memory reads, vectors, calls and let; and tests for constants, which may be vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self
from typing import Any as AnyType

from tilewright.ir import operators
from tilewright.ir.base import BaseExpr
from tilewright.ir.expr_base import ExprLike, FloatImm, IntImm, PrimExpr, Var
from tilewright.ir.op import CallEffectKind, Op
from tilewright.support.dtype import INT32, DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Child, Children, Defines, Node, node
from tilewright.support.span import Span

if TYPE_CHECKING:
    from tilewright.ir.buffer import Buffer


@node
class Load(PrimExpr):
    """Elements of flat memory: ``buffer_var[index]`` where ``predicate`` holds."""

    dtype: DataType
    buffer_var: Child[Var]
    index: Child[PrimExpr]
    predicate: Child[PrimExpr]
    span: Span | None = None

    def __init__(
        self,
        dtype: str,
        buffer_var: Var,
        index: ExprLike,
        predicate: ExprLike | None = None,
        span: Span | None = None,
    ) -> None:
        self.dtype = DataType(dtype)
        self.buffer_var = buffer_var
        self.index = operators.as_expr(index)
        self.predicate = (
            operators.const_true(self.index.dtype.lanes)
            if predicate is None
            else operators.as_expr(predicate)
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

    @property
    def index(self) -> PrimExpr:
        """The element of the flat memory, as the load has it that ``Buffer.vload`` gives in TVM."""
        return self.buffer.offset_of(self.indices)


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

    def __init__(
        self, vectors: Sequence[ExprLike], indices: Sequence[ExprLike], span: Span | None = None
    ) -> None:
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

    def __init__(
        self, dtype: str, op: Op | BaseExpr | str, args: Sequence[ExprLike], span: Span | None = None
    ) -> None:
        if isinstance(op, str):
            # A graph-level operator may have the same name: the loop-level one is meant.
            full = f"tir.{op.removeprefix('tir.')}"
            op = Op.get(full if full in Op.registry or op not in Op.registry else op)
        self.dtype = DataType(dtype)
        self.op = op
        self.args = tuple(operators.as_argument(argument) for argument in args)
        self.span = span

    @property
    def effect(self) -> CallEffectKind:
        """The side effects of the call; a call of a function that is not an operator may have any."""
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


def is_const(expr: object, value: float) -> bool:
    """True if the expression is a constant, or a broadcast of one, of this value."""
    while isinstance(expr, Broadcast):
        expr = expr.value
    return isinstance(expr, (IntImm, FloatImm)) and expr.value == value and not math.isnan(expr.value)


def const_value(expr: object) -> int | None:
    """The value of an integer constant, or None."""
    return expr.value if isinstance(expr, IntImm) else None
