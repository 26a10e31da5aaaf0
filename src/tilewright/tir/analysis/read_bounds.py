"""Which reads of flat memory are shown to stay inside of their buffer.

What counts is what really decides whether a read happens: the ranges of loops and threads, branches, assertions, and
the condition of ``if_then_else``. A ``Select`` evaluates both of its values, so its condition shows nothing. The size
of a buffer is known if it is a compact parameter or an allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import (
    Broadcast,
    Call,
    IntImm,
    IterVar,
    Let,
    Load,
    PrimExpr,
    Ramp,
    Range,
    Var,
    is_const,
)
from tilewright.support.dtype import DataType
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AssertStmt, AttrStmt, For, IfThenElse, LetStmt

Size = tuple[PrimExpr, DataType]
"""Elements of a buffer, and their type."""


def parameter_sizes(function: PrimFunc) -> dict[Var, Size]:
    """The sizes of a function's parameters, by their data pointer; those with strides of their own are left out."""
    return {
        buffer.data: (elements(buffer.shape), buffer.dtype)
        for buffer in function.buffer_map.values()
        if _is_compact(buffer)
    }


def _is_compact(buffer: Buffer) -> bool:
    return not buffer.strides and is_const(buffer.elem_offset, 0)


def elements(shape: Any) -> PrimExpr:
    """How many elements a buffer of this shape has."""
    if all(isinstance(extent, IntImm) for extent in shape):
        # Indices may be of 32 bits where the number of elements is not.
        return operators.const(prod(extent.value for extent in shape), "int64")
    total: PrimExpr = operators.const(1, "int32")
    for extent in shape:
        total = operators.multiply(total, extent)
    return total


class ReadVisitor(StatementVisitor):
    """Visits every read with an analyzer that knows what holds where it happens.

    ``on_read`` is called for each load, once a statement and set of conditions. Each expression is visited once in
    these, because expressions are graphs. ``loops`` and ``conditions`` are those around the present place.
    """

    def __init__(self, sizes: dict[Var, Size], on_read: Callable[[ReadVisitor, Load], None]) -> None:
        super().__init__()
        self.sizes = dict(sizes)
        self.analyzer = Analyzer()
        self.on_read = on_read
        self.loops: list[tuple[Var, PrimExpr, PrimExpr]] = []
        self.conditions: list[PrimExpr] = []

    @contextmanager
    def where(self, condition: PrimExpr) -> Iterator[None]:
        """Within the block, this holds whenever something is evaluated."""
        outer, self._seen = self._seen, set()
        self.conditions.append(condition)
        if condition.dtype.lanes == 1:
            with self.analyzer.constraint_scope(condition):
                yield
        else:
            yield
        self.conditions.pop()
        self._seen = outer

    # Statements

    def visit_for(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self._bind(node.loop_var, node.min, node.extent)
        self.loops.append((node.loop_var, node.min, node.extent))
        self.visit(node.body)
        self.loops.pop()

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        self.visit(node.value)
        if node.attr_key in ("thread_extent", "virtual_thread") and isinstance(node.node, IterVar):
            first = operators.const(0, node.node.var.dtype)
            self._bind(node.node.var, first, node.value)
            self.loops.append((node.node.var, first, node.value))
            self.visit(node.body)
            self.loops.pop()
        else:
            self.visit(node.body)

    def _bind(self, variable: Var, start: PrimExpr, extent: PrimExpr) -> None:
        if is_const(extent, 1):
            self.analyzer.update(variable, self.analyzer.const_int_bound(start), override=True)
        else:
            self.analyzer.bind(variable, Range.from_min_extent(start, extent), allow_override=True)

    def visit_let_stmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        self._define(node.var, node.value)
        self.visit(node.body)

    def _define(self, variable: Var, value: PrimExpr) -> None:
        if variable.dtype.is_int and variable.dtype.lanes == 1:
            self.analyzer.update(variable, self.analyzer.const_int_bound(value), override=True)

    def visit_if_then_else(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        with self.where(node.condition):
            self.visit(node.then_case)
        if node.else_case is not None:
            with self.where(operators.logical_not(node.condition)):
                self.visit(node.else_case)

    def visit_assert_stmt(self, node: AssertStmt) -> None:
        self.visit(node.condition)
        with self.where(node.condition):
            self.visit(node.body)

    def visit_allocate(self, node: Allocate) -> None:
        for part in (*node.extents, node.condition):
            self.visit(part)
        self.sizes[node.buffer_var] = (elements(node.extents), node.dtype)
        self.visit(node.body)

    # Expressions

    def visit_let(self, node: Let) -> None:
        self.visit(node.value)
        self._define(node.var, node.value)
        self.visit(node.body)

    def visit_call(self, node: Call) -> None:
        name = getattr(node.op, "name", "")
        if name == "tir.address_of":
            # An address is not a read; its index may be the end of the buffer.
            return
        if name == "tir.tvm_thread_allreduce" and isinstance(node.args[0], IntImm):
            # A thread whose condition does not hold gives the identity instead of its values.
            values = node.args[1 : 1 + node.args[0].value]
            condition = node.args[1 + len(values)]
            self.visit(condition)
            with self.where(condition):
                for value in values:
                    self.visit(value)
            return
        if name != "tir.if_then_else":
            self.visit_default(node)
            return
        condition, yes, no = node.args
        self.visit(condition)
        with self.where(condition):
            self.visit(yes)
        with self.where(operators.logical_not(condition)):
            self.visit(no)

    def visit_load(self, node: Load) -> None:
        self.visit(node.index)
        self.visit(node.predicate)
        self.on_read(self, node)

    def size_of(self, node: Load) -> PrimExpr | None:
        """How many elements of the read's type its buffer has; None where it is not known, or made of others."""
        size, dtype = self.sizes.get(node.buffer_var, (None, None))
        if dtype is None or node.dtype.element != dtype.element:
            return None
        return size if node.dtype.lanes == node.index.dtype.lanes * dtype.lanes else None

    def is_inside(self, node: Load) -> bool:
        """True if every lane of the read is shown to be an element of its buffer, whatever its predicate."""
        size = self.size_of(node)
        if size is None:
            return False
        analyzer, index = self.analyzer, node.index
        bound = analyzer.const_int_bound(index)
        if bound.min_value >= 0 and bound.max_value < analyzer.const_int_bound(size).min_value:
            return True
        return all(
            analyzer.can_prove(operators.greater_equal(end, 0)) and self._is_below(end, size)
            for end in _ends(index)
        )

    def _is_below(self, end: PrimExpr, size: PrimExpr) -> bool:
        if isinstance(size, IntImm) and size.value >> end.dtype.bits - 1:
            return True  # more elements than an index of this type can name
        return bool(self.analyzer.can_prove(operators.less(end, operators.cast(end.dtype, size))))


def _ends(index: PrimExpr) -> list[PrimExpr]:
    """The lanes that are inside only if all of them are; for a vector of no linear form one that is never shown."""
    if isinstance(index, Ramp):
        last = operators.add(index.base, operators.multiply(index.stride, index.lanes - 1))
        return [index.base, last]
    if isinstance(index, Broadcast):
        return _ends(index.value)
    return [index] if index.dtype.lanes == 1 else [operators.const(-1, index.dtype.element)]
