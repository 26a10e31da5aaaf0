"""Writing loop programs as Python ``with`` blocks.

    builder = ir_builder.create()
    data = builder.buffer_ptr(buffer)
    with builder.for_range(0, n, name="i") as i:
        with builder.if_scope(i % 2 == 0):
            data[i] = data[i] + 1.0
        with builder.else_scope():
            data[i] = 0.0
    body = builder.get()

Statements are emitted in order. A statement that encloses the rest of its scope (``let``, ``allocate``, ``scope_attr``)
is emitted as a function from that rest to the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import ExprLike, IntImm, Load, PrimExpr, Ramp, StringImm, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.tir.op import likely
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
)

Emitted = Stmt | Callable[[Stmt], Stmt]

_KINDS = {
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "vectorized": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "unrolled": ForKind.UNROLLED,
}


class WithScope:
    """A scope of the builder: ``exit_cb`` runs at the end of the ``with`` block, unless an exception leaves it."""

    def __init__(
        self, enter_value: Any, exit_cb: Callable[[], None], enter_cb: Callable[[], None] | None = None
    ) -> None:
        self._enter_value = enter_value
        self._exit_cb = exit_cb
        self._enter_cb = enter_cb

    def __enter__(self) -> Any:
        if self._enter_cb is not None:
            self._enter_cb()
        return self._enter_value

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: object) -> None:
        if kind is None:
            self._exit_cb()


class BufferVar:
    """Memory that is read and written with brackets; a vector content type makes each element that many lanes."""

    def __init__(
        self,
        builder: IRBuilder,
        buffer_var: Var,
        shape: Sequence[ExprLike] | None,
        content_type: str,
        strides: Sequence[PrimExpr] = (),
        offset: PrimExpr | None = None,
    ) -> None:
        self._builder = builder
        self._buffer_var = buffer_var
        self._shape = tuple(operators.as_expr(extent) for extent in shape) if shape is not None else None
        self._content_type = DataType(content_type)
        self._strides = tuple(strides)
        self._offset = offset

    def asobject(self) -> Var:
        """The pointer."""
        return self._buffer_var

    @property
    def dtype(self) -> DataType:
        """The type of an element."""
        return self._content_type

    def _flat_index(self, index: Any) -> PrimExpr:
        """The position in memory, in elements; row-major unless there are strides."""
        if not isinstance(index, (tuple, list)):
            flat = operators.as_expr(index)
        elif len(index) == 1 and (self._shape is None or len(self._shape) == 1):
            flat = operators.as_expr(index[0])
        else:
            if self._shape is None:
                raise ExpressionError(
                    f"{self._buffer_var.name} has no shape: index it with one number, or give buffer_ptr a shape"
                )
            if len(index) != len(self._shape):
                raise ExpressionError(
                    f"{self._buffer_var.name} has {len(self._shape)} dimensions, {len(index)} indices were given"
                )
            flat = operators.const(0)
            for position, each in enumerate(index):
                if self._strides:
                    flat = operators.add(flat, operators.multiply(each, self._strides[position]))
                else:
                    flat = operators.add(operators.multiply(flat, self._shape[position]), each)
        if self._offset is not None:
            flat = operators.add(flat, self._offset)
        if not flat.dtype.is_integral:
            raise ExpressionError(
                f"{self._buffer_var.name} is indexed with an integer, not {flat.dtype}: {flat}"
            )
        lanes = self._content_type.lanes
        if lanes > 1:
            flat = Ramp(operators.multiply(flat, lanes), 1, lanes)
        return flat

    def __getitem__(self, index: Any) -> Load:
        flat = self._flat_index(index)
        return Load(self._content_type.element.with_lanes(flat.dtype.lanes), self._buffer_var, flat)

    def __setitem__(self, index: Any, value: Any) -> None:
        flat = self._flat_index(index)
        kind = self._content_type.element.with_lanes(flat.dtype.lanes)
        if isinstance(value, (bool, int, float)):
            stored = operators.const(value, kind)
        else:
            stored = operators.as_expr(value)
        if stored.dtype is kind.element and kind.lanes > 1:
            stored = operators.cast(kind, stored)
        if stored.dtype.is_int and kind.is_int and stored.dtype.lanes == kind.lanes:
            # Whether a loop counts in 32 or 64 bits depends on its ends.
            stored = operators.cast(kind, stored)
        if stored.dtype is not kind:
            raise ExpressionError(
                f"data type does not match content type: {stored.dtype} is stored into {self._buffer_var.name}, "
                f"which holds {self._content_type}"
            )
        self._builder.emit(Store(self._buffer_var, stored, flat))


class IRBuilder:
    """Collects the statements of nested scopes; ``get`` gives the whole once every scope is closed."""

    def __init__(self) -> None:
        self._scopes: list[list[Emitted]] = [[]]
        self._unnamed_loops = 0

    def _current(self) -> list[Emitted]:
        if not self._scopes:
            raise ExpressionError("the program of this builder was taken by get(): create another builder")
        return self._scopes[-1]

    def _open(self) -> None:
        self._current()
        self._scopes.append([])

    def _close(self) -> Stmt:
        """End the innermost scope: its statements as one, inside out."""
        statements = self._scopes.pop()
        tail: list[Stmt] = []
        for emitted in reversed(statements):
            if isinstance(emitted, Stmt):
                tail.append(emitted)
            else:
                tail = [emitted(_sequence(tail))]
        return _sequence(tail)

    def _scope(self, enter_value: Any, make: Callable[[Stmt], Stmt]) -> WithScope:
        """A ``with`` block whose statements become one, emitted at its end."""
        self._current()
        return WithScope(enter_value, lambda: self.emit(make(self._close())), self._open)

    def emit(self, stmt: Emitted | PrimExpr) -> None:
        """Append a statement, an expression to evaluate, or a function from the rest of the scope to a statement."""
        if isinstance(stmt, PrimExpr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, Stmt) and not callable(stmt):
            raise ExpressionError(f"a builder emits statements and expressions, not {type(stmt).__name__}")
        self._current().append(stmt)

    def scope_attr(self, node: Any, attr_key: str, value: ExprLike) -> None:
        """Attach an attribute to the rest of the scope."""
        holder = StringImm(node) if isinstance(node, str) else node
        attribute = operators.as_expr(value)
        self.emit(lambda body: AttrStmt(holder, attr_key, attribute, body))

    def for_range(
        self, begin: ExprLike, end: ExprLike, name: str = "i", dtype: str | None = None, kind: str = "serial"
    ) -> WithScope:
        """A loop from ``begin`` to ``end``, the end left out; the block gets the loop variable.

        Without a ``dtype`` the variable is an int64 if one of the ends is, and else an int32.
        """
        if kind not in _KINDS:
            raise ExpressionError(f"a loop is one of {', '.join(_KINDS)}, not {kind!r}")
        start, stop = operators.as_expr(begin), operators.as_expr(end)
        if dtype is None:
            dtype = "int64" if "int64" in (start.dtype, stop.dtype) else "int32"
        variable = Var(self._loop_name() if name == "i" else name, dtype)
        extent = operators.subtract(stop, start)

        def make(body: Stmt) -> Stmt:
            return For(variable, start, extent, _KINDS[kind], body)

        return self._scope(variable, make)

    def _loop_name(self) -> str:
        """The name of the next loop that was not given one: i, j, k, then i_0, i_1, ..."""
        number = self._unnamed_loops
        self._unnamed_loops += 1
        return "ijk"[number] if number < 3 else f"i_{number - 3}"

    def while_loop(self, condition: ExprLike) -> WithScope:
        """A loop that runs while the condition holds."""
        test = _condition(condition)
        return self._scope(None, lambda body: While(test, body))

    def if_scope(self, cond: ExprLike) -> WithScope:
        """The branch that runs if the condition holds."""
        test = _condition(cond)
        return self._scope(None, lambda body: IfThenElse(test, body, None))

    def else_scope(self) -> WithScope:
        """The branch that runs if the condition of the preceding ``if_scope`` does not hold."""
        statements = self._current()
        previous = statements[-1] if statements else None
        if not isinstance(previous, IfThenElse) or previous.else_case is not None:
            raise ExpressionError("else_scope must follow an if_scope directly")

        def finish() -> None:
            body = self._close()
            self._current()[-1] = IfThenElse(previous.condition, previous.then_case, body, previous.span)

        return WithScope(None, finish, self._open)

    def new_scope(self) -> WithScope:
        """A new scope: what is allocated in it ends with it."""
        return self._scope(None, lambda body: body)

    def let(self, var_name: str, value: ExprLike) -> Var:
        """A variable that stands for a value in the rest of the scope."""
        expr = operators.as_expr(value)
        variable = Var(var_name, expr.dtype)
        self.emit(lambda body: LetStmt(variable, expr, body))
        return variable

    def allocate(
        self, dtype: str, shape: ExprLike | Sequence[ExprLike], name: str = "buf", scope: str = ""
    ) -> BufferVar:
        """Memory for the rest of the scope, in a storage scope ("global", "shared", "local", ...)."""
        variable = Var(name, PointerType(PrimType(dtype), scope))
        extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.emit(lambda body: Allocate(variable, dtype, extents, operators.const_true(), body))
        return BufferVar(self, variable, extents, dtype)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """A pointer that comes from outside the program."""
        return BufferVar(self, Var(name, PointerType(PrimType(content_type), scope)), None, content_type)

    def buffer_ptr(self, buf: Buffer, shape: Sequence[ExprLike] | None = None) -> BufferVar:
        """Access to a buffer with brackets: by one flat index, or by as many as it (or ``shape``) has dimensions."""
        strides = buf.strides if shape is None else ()
        zero = isinstance(buf.elem_offset, IntImm) and buf.elem_offset.value == 0
        offset = None if zero else buf.elem_offset
        return BufferVar(self, buf.data, buf.shape if shape is None else shape, buf.dtype, strides, offset)

    def likely(self, expr: ExprLike) -> PrimExpr:
        """The condition, marked as almost always true."""
        return likely(expr)

    def get(self) -> Stmt:
        """The program. Every scope must be closed, and the builder takes no more statements."""
        if len(self._scopes) != 1:
            self._current()
            raise ExpressionError(
                "get() was called inside a scope of the builder: leave every with block first"
            )
        return self._close()


def _sequence(reversed_statements: list[Stmt]) -> Stmt:
    """Statements that were collected back to front, as one; an empty scope does nothing."""
    if not reversed_statements:
        return Evaluate(0)
    return reversed_statements[0] if len(reversed_statements) == 1 else SeqStmt(reversed_statements[::-1])


def _condition(value: ExprLike) -> PrimExpr:
    condition = operators.as_expr(value)
    if not condition.dtype.is_bool:
        raise ExpressionError(f"a condition is a bool, not {condition.dtype}: {condition}")
    return condition


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()
