"""Axes: ranges, the variables that run over them, and reductions over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyType
from typing import ClassVar, Self

from tilewright.ir import operators
from tilewright.ir.expr_base import ExprLike, ExprOp, PrimExpr, Var
from tilewright.support.dtype import INT32, DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Child, Children, Defines, Node, OptionalChild, node
from tilewright.support.span import Span


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
    """A commutative, associative combination of tuples: ``result`` of ``lhs`` and ``rhs``, and its identity."""

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
        combiner: CommReducer | None,
        src: Sequence[ExprLike],
        rdom: Sequence[IterVar],
        condition: ExprLike,
        value_index: int,
        init: Sequence[ExprLike] | None = None,
        span: Span | None = None,
    ) -> None:
        # Programs take a reduction apart and put it together again, for a while without its combiner.
        self.combiner = combiner  # type: ignore[assignment]
        self.source = tuple(operators.as_expr(value) for value in src)
        self.init = tuple(operators.as_expr(value) for value in init) if init else ()
        self.axis = tuple(rdom)
        self.condition = operators.as_expr(True if condition is None else condition)
        self.value_index = int(value_index)
        if not 0 <= self.value_index < len(self.source):
            raise ExpressionError(
                f"a reduction of {len(self.source)} values has no value number {value_index}"
            )
        if combiner is not None and len(combiner.lhs) != len(self.source):
            raise ExpressionError(
                f"the combiner takes {len(combiner.lhs)} values at a time, the reduction gives {len(self.source)}"
            )
        self.dtype = self.source[self.value_index].dtype
        self.span = span

    def rebuild(self, **changes: AnyType) -> Self:
        made = self.replace(**changes)
        source = changes.get("source", self.source)
        return made.replace(dtype=source[self.value_index].dtype)
