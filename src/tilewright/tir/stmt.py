"""Statements: loops, conditions, memory and effects.

There are two forms of memory access. Before flattening, ``BufferStore``/``BufferLoad``/``BufferRealize`` and
``ProducerStore``/``ProducerLoad``/``ProducerRealize`` use multi-dimensional indices; after it, ``Store``/``Load`` and
``Allocate`` use a pointer and a flat index.

A ``For`` runs ``loop_var`` over ``min .. min + extent`` and its ``kind`` says how: ``PARALLEL`` iterations may run at
the same time, ``VECTORIZED`` ones become lanes, ``UNROLLED`` ones copies, ``THREAD_BINDING`` ones GPU threads.
``AttrStmt`` attaches information to its body; ``AssertStmt`` ends the function with an error if its condition is false.
``Block`` isolates a computation with its own axes; ``BlockRealize`` gives the values of those axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import (
    DataProducer,
    ExprLike,
    FloatImm,
    IntImm,
    IterVar,
    PrimExpr,
    Range,
    StringImm,
    Var,
)
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Child, Children, Defines, Node, OptionalChild, node
from tilewright.support.span import Span
from tilewright.tir import text


class Stmt(Node):
    """Base of statements."""

    __slots__ = ("span",)
    span: Span | None

    def __repr__(self) -> str:
        return text.stmt_text(self)


class ForKind(IntEnum):
    """How the iterations of a loop run."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


@node
class LetStmt(Stmt):
    """``body`` with ``var`` standing for ``value``."""

    var: Defines[Var]
    value: Child[PrimExpr]
    body: Child[Stmt]

    def __init__(self, var: Var, value: ExprLike, body: Stmt, span: Span | None = None) -> None:
        self.var = var
        self.value = operators.as_expr(value)
        self.body = body
        self.span = span


@node
class AssertStmt(Stmt):
    """Fails with ``message`` if ``condition`` is false; ``body`` may rely on the condition."""

    condition: Child[PrimExpr]
    message: Child[PrimExpr]
    body: Child[Stmt]

    def __init__(self, condition: ExprLike, message: ExprLike, body: Stmt, span: Span | None = None) -> None:
        self.condition = operators.as_expr(condition)
        self.message = operators.as_expr(message)
        self.body = body
        if not self.condition.dtype.is_bool:
            raise ExpressionError(f"an assertion needs a bool condition, not {self.condition.dtype}")
        self.span = span


@node
class For(Stmt):
    """A loop; see ``ForKind``."""

    loop_var: Defines[Var]
    min: Child[PrimExpr]
    extent: Child[PrimExpr]
    kind: ForKind
    body: Child[Stmt]
    thread_binding: IterVar | None
    annotations: Mapping[str, Any]

    def __init__(
        self,
        loop_var: Var,
        min_val: ExprLike,
        extent: ExprLike,
        kind: ForKind | int,
        body: Stmt,
        thread_binding: IterVar | None = None,
        annotations: Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        self.loop_var = loop_var
        self.min = operators.cast(loop_var.dtype, min_val)
        self.extent = operators.cast(loop_var.dtype, extent)
        self.kind = ForKind(kind)
        self.body = body
        self.thread_binding = thread_binding
        self.annotations = dict(annotations) if annotations else {}
        self.span = span

    def rebuild(self, **changes: Any) -> For:
        made = self.replace(**changes)
        if made.min.dtype is self.loop_var.dtype and made.extent.dtype is self.loop_var.dtype:
            return made
        return For(
            self.loop_var,
            made.min,
            made.extent,
            self.kind,
            made.body,
            self.thread_binding,
            self.annotations,
            self.span,
        )


@node
class While(Stmt):
    """Runs ``body`` while ``condition`` holds."""

    condition: Child[PrimExpr]
    body: Child[Stmt]

    def __init__(self, condition: ExprLike, body: Stmt, span: Span | None = None) -> None:
        self.condition = operators.as_expr(condition)
        self.body = body
        self.span = span


@node
class Store(Stmt):
    """Writes ``value`` to flat memory at ``index`` where ``predicate`` holds."""

    buffer_var: Child[Var]
    value: Child[PrimExpr]
    index: Child[PrimExpr]
    predicate: Child[PrimExpr]

    def __init__(
        self,
        buffer_var: Var,
        value: ExprLike,
        index: ExprLike,
        predicate: ExprLike | None = None,
        span: Span | None = None,
    ) -> None:
        self.buffer_var = buffer_var if isinstance(buffer_var, Var) else operators.as_expr(buffer_var)
        self.value = operators.as_expr(value)
        self.index = operators.as_expr(index)
        self.predicate = (
            operators.const_true(self.index.dtype.lanes)
            if predicate is None
            else operators.as_expr(predicate)
        )
        self.span = span


@node
class BufferStore(Stmt):
    """Writes an element (or, where the last index is a vector, several) of a buffer."""

    buffer: Buffer
    value: Child[PrimExpr]
    indices: Children[PrimExpr]

    def __init__(
        self, buffer: Buffer, value: ExprLike, indices: Sequence[ExprLike], span: Span | None = None
    ) -> None:
        self.buffer = buffer
        self.value = operators.as_expr(value)
        self.indices = tuple(operators.as_expr(index) for index in indices)
        self.span = span


@node
class BufferRealize(Stmt):
    """Within ``body`` the box ``bounds`` of the buffer has memory."""

    buffer: Buffer
    bounds: Children[Range]
    condition: Child[PrimExpr]
    body: Child[Stmt]

    def __init__(
        self,
        buffer: Buffer,
        bounds: Sequence[Range],
        condition: ExprLike,
        body: Stmt,
        span: Span | None = None,
    ) -> None:
        self.buffer = buffer
        self.bounds = tuple(bounds)
        self.condition = operators.as_expr(condition)
        self.body = body
        self.span = span


@node
class ProducerStore(Stmt):
    """Writes an element of a tensor, before the tensor has a buffer."""

    producer: DataProducer
    value: Child[PrimExpr]
    indices: Children[PrimExpr]

    def __init__(
        self, producer: DataProducer, value: ExprLike, indices: Sequence[ExprLike], span: Span | None = None
    ) -> None:
        self.producer = producer
        self.value = operators.as_expr(value)
        self.indices = tuple(operators.as_expr(index) for index in indices)
        self.span = span


@node
class ProducerRealize(Stmt):
    """Within ``body`` the box ``bounds`` of the tensor has memory, in ``storage_scope``."""

    producer: DataProducer
    bounds: Children[Range]
    condition: Child[PrimExpr]
    body: Child[Stmt]
    storage_scope: str

    def __init__(
        self,
        producer: DataProducer,
        bounds: Sequence[Range],
        condition: ExprLike,
        body: Stmt,
        storage_scope: str = "",
        span: Span | None = None,
    ) -> None:
        self.producer = producer
        self.bounds = tuple(bounds)
        self.condition = operators.as_expr(condition)
        self.body = body
        self.storage_scope = storage_scope
        self.span = span


@node
class Allocate(Stmt):
    """Within ``body``, ``buffer_var`` points to memory for ``extents`` elements of ``dtype``, in the variable's
    storage scope."""

    buffer_var: Defines[Var]
    dtype: DataType
    extents: Children[PrimExpr]
    condition: Child[PrimExpr]
    body: Child[Stmt]
    annotations: Mapping[str, Any]

    def __init__(
        self,
        buffer_var: Var,
        dtype: str,
        extents: Sequence[ExprLike],
        condition: ExprLike,
        body: Stmt,
        annotations: Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        self.buffer_var = buffer_var
        self.dtype = DataType(dtype)
        self.extents = tuple(operators.as_expr(extent) for extent in extents)
        self.condition = operators.as_expr(condition)
        self.body = body
        self.annotations = dict(annotations) if annotations else {}
        self.span = span

    def constant_size(self) -> int | None:
        """The number of elements, where all extents are constants."""
        total = 1
        for extent in self.extents:
            value = getattr(extent, "value", None)
            if not isinstance(value, int):
                return None
            total *= value
        return total


EXPLICIT_SYNC: Final = "explicit_sync"
"""The attribute of a kernel that places its barriers itself: no pass adds any."""


@node
class AttrStmt(Stmt):
    """``body`` with the attribute ``attr_key`` of ``node`` set to ``value``."""

    node: Any
    attr_key: str
    value: Child[PrimExpr]
    body: Child[Stmt]

    def __init__(
        self, node: Any, attr_key: str, value: ExprLike, body: Stmt, span: Span | None = None
    ) -> None:
        self.node = StringImm(node) if isinstance(node, str) else node
        self.attr_key = attr_key
        self.value = operators.as_expr(value)
        self.body = body
        self.span = span


@node
class SeqStmt(Stmt):
    """Statements one after another."""

    seq: Children[Stmt]

    def __init__(self, seq: Sequence[Stmt], span: Span | None = None) -> None:
        self.seq = tuple(seq)
        self.span = span

    def __getitem__(self, i: int) -> Stmt:
        return self.seq[i]

    def __len__(self) -> int:
        return len(self.seq)


@node
class IfThenElse(Stmt):
    """One of two statements; the second may be missing."""

    condition: Child[PrimExpr]
    then_case: Child[Stmt]
    else_case: OptionalChild[Stmt]

    def __init__(
        self, condition: ExprLike, then_case: Stmt, else_case: Stmt | None = None, span: Span | None = None
    ) -> None:
        self.condition = operators.as_expr(condition)
        self.then_case = then_case
        self.else_case = else_case
        self.span = span


@node
class Evaluate(Stmt):
    """Evaluates an expression for its effect."""

    value: Child[PrimExpr]

    def __init__(self, value: ExprLike, span: Span | None = None) -> None:
        self.value = operators.as_expr(value)
        self.span = span


@node
class Prefetch(Stmt):
    """A hint that a box of a buffer will soon be read."""

    buffer: Any
    bounds: Children[Range]

    def __init__(self, buffer: Any, bounds: Sequence[Range], span: Span | None = None) -> None:
        self.buffer = buffer
        self.bounds = tuple(bounds)
        self.span = span


@node
class MatchBufferRegion(Node):
    """``buffer`` is another view of the box ``source``."""

    buffer: Defines[Buffer]
    source: BufferRegion


@node
class Block(Stmt):
    """A computation with its own axes, the regions it reads and writes, and the initialisation of its reduction."""

    iter_vars: Children[IterVar]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name_hint: str
    body: Child[Stmt]
    init: OptionalChild[Stmt]
    alloc_buffers: tuple[Buffer, ...]
    match_buffers: tuple[MatchBufferRegion, ...]
    annotations: Mapping[str, Any]

    def __init__(
        self,
        iter_vars: Sequence[IterVar],
        reads: Sequence[BufferRegion],
        writes: Sequence[BufferRegion],
        name_hint: str,
        body: Stmt,
        init: Stmt | None = None,
        alloc_buffers: Sequence[Buffer] | None = None,
        match_buffers: Sequence[MatchBufferRegion] | None = None,
        annotations: Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        self.iter_vars = tuple(iter_vars)
        self.reads = tuple(reads)
        self.writes = tuple(writes)
        self.name_hint = name_hint
        self.body = body
        self.init = init
        self.alloc_buffers = tuple(alloc_buffers or ())
        self.match_buffers = tuple(match_buffers or ())
        self.annotations = dict(annotations) if annotations else {}
        self.span = span


@node
class BlockRealize(Stmt):
    """A block run with these values of its axes, where ``predicate`` holds."""

    iter_values: Children[PrimExpr]
    predicate: Child[PrimExpr]
    block: Child[Block]

    def __init__(
        self, iter_values: Sequence[ExprLike], predicate: ExprLike, block: Block, span: Span | None = None
    ) -> None:
        self.iter_values = tuple(operators.as_expr(value) for value in iter_values)
        self.predicate = operators.as_expr(predicate)
        self.block = block
        self.span = span


NO_OP = Evaluate(0)
"""A statement without effect."""


def is_no_op(stmt: Stmt | None) -> bool:
    """True for None and for the evaluation of a constant."""
    return stmt is None or (
        isinstance(stmt, Evaluate) and isinstance(stmt.value, (IntImm, FloatImm, StringImm))
    )


def stmt_seq(*args: Any) -> Stmt:
    """The statements one after another; expressions are evaluated, sequences laid flat, no-ops dropped."""
    flat: list[Stmt] = []
    for argument in args:
        for stmt in argument if isinstance(argument, (list, tuple)) else (argument,):
            if not isinstance(stmt, Stmt):
                stmt = Evaluate(stmt)
            flat.extend(stmt.seq if isinstance(stmt, SeqStmt) else (stmt,))
    kept = [stmt for stmt in flat if not is_no_op(stmt)]
    if not kept:
        return flat[0] if flat else NO_OP
    return kept[0] if len(kept) == 1 else SeqStmt(kept)


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, laid flat."""
    if not isinstance(stmt, SeqStmt):
        return [stmt]
    flat: list[Stmt] = []
    for part in stmt.seq:
        flat.extend(stmt_list(part))
    return flat
