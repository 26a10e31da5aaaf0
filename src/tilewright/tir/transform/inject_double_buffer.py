"""Overlaps filling a buffer with using it.

The attribute ``double_buffer_scope`` marks the statement, inside a loop, that fills a buffer for one iteration. The
buffer gets two halves: before the loop the first half is filled for the first iteration, and iteration ``i`` fills the
half ``(i + 1) % 2`` for the next one and reads the half ``i % 2``. With ``split_loop`` (1, or an even number) the loop
is split by that factor and its last iterations follow it; an even factor makes the halves constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir import operators
from tilewright.ir.buffer import WRITE
from tilewright.ir.expr import Call, IntImm, Load, PrimExpr, Var
from tilewright.ir.module import IRModule
from tilewright.ir.pass_config import with_own_options
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.folding import FoldingSubstitute
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import statements_in, substitute
from tilewright.tir.stmt import Allocate, AttrStmt, For, IfThenElse, Stmt, Store, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator
from tilewright.tir.transform.lib.statement_rewriter import (
    StmtMutator,
    with_one_definition,
)

_SCOPE = "double_buffer_scope"
_WRITE = "double_buffer_write"


@dataclass(slots=True, eq=False)
class _Doubled:
    """A buffer with two halves: the size of one, and the halves to read and write, known once its loop is."""

    stride: PrimExpr
    allocation: Allocate
    depth: int
    read_half: PrimExpr | None = None
    write_half: Var | None = None


@dataclass(slots=True)
class _Loop:
    """A loop while its body is rewritten: what goes before it, and the buffers whose allocation moves out of it."""

    node: For
    before: list[Stmt] = field(default_factory=list)
    buffers: list[_Doubled] = field(default_factory=list)


class _Injector(ScopedMutator):
    def __init__(self, marked: set[Var], split_loop: int) -> None:
        super().__init__()
        self.marked = marked
        self.split_loop = split_loop
        self.doubled: dict[Var, _Doubled] = {}
        self.loops: list[_Loop] = []
        self.filling: Var | None = None

    def visit_allocate(self, node: Allocate) -> Stmt:
        if node.buffer_var not in self.marked:
            return node.map_children(self.visit)
        stride: PrimExpr = IntImm("int32", 1)
        for extent in node.extents:
            stride = operators.multiply(stride, extent)
        stride = operators.multiply(stride, node.dtype.lanes)
        two = operators.const(2, node.extents[0].dtype)
        allocation = node.replace(extents=(two, *node.extents))
        self.doubled[node.buffer_var] = doubled = _Doubled(stride, allocation, len(self.loops))
        body: Stmt = self.visit(node.body)
        # The loop around puts the allocation before itself, if it is the one whose iterations the halves serve.
        return body if self.loops and doubled in self.loops[-1].buffers else allocation.replace(body=body)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != _SCOPE or node.node not in self.marked:
            return node.map_children(self.visit)
        if not self.loops:
            raise LoweringError(
                f"buffer {node.node.name} is double buffered, so it must be filled inside a loop"
            )
        doubled = self.doubled.get(node.node)
        if doubled is None:
            raise LoweringError(
                f"buffer {node.node.name} is double buffered, but is not allocated in this function"
            )
        loop = self.loops[-1]
        variable, start, extent = loop.node.loop_var, loop.node.min, loop.node.extent
        if doubled.depth == len(self.loops):
            loop.buffers.append(doubled)
        write_half = doubled.write_half = Var(f"{variable.name}.db", variable.dtype)
        doubled.read_half = operators.floormod(operators.subtract(variable, start), 2)
        outer, self.filling = self.filling, node.node
        body = self.visit(node.body)
        self.filling = outer
        zero = operators.const(0, variable.dtype)
        first: Stmt = FoldingSubstitute({variable: start, write_half: zero}).visit(body)
        if not (isinstance(extent, IntImm) and extent.value > 0):
            first = IfThenElse(operators.greater(extent, 0), first)
        loop.before.append(AttrStmt(node.node, _WRITE, 1, first))
        after = operators.add(variable, 1)
        half = operators.floormod(operators.subtract(after, start), 2)
        filled = substitute(body, {variable: after, write_half: half})
        following = IfThenElse(operators.less(after, operators.add(start, extent)), filled)
        return AttrStmt(node.node, _WRITE, 1, following)

    def visit_for(self, node: For) -> Stmt:
        self.loops.append(_Loop(node))
        made: For = node.map_children(self.visit)
        loop = self.loops.pop()
        if not loop.before:
            return made
        stmt = stmt_seq(*loop.before, self._split(made) if self.split_loop else made)
        for doubled in reversed(loop.buffers):
            stmt = doubled.allocation.replace(body=stmt)
        return stmt

    def _split(self, loop: For) -> Stmt:
        """The loop but for its last iterations, then those, which fill nothing for iterations that never come."""
        factor = self.split_loop
        outer = Var(f"{loop.loop_var.name}.outer", loop.loop_var.dtype)
        last = operators.maximum(operators.subtract(loop.extent, 1), operators.const(0, loop.loop_var.dtype))
        count = operators.floordiv(last, factor)
        bodies = []
        for number in range(factor):
            iteration = operators.add(loop.min, operators.add(operators.multiply(outer, factor), number))
            bodies.append(substitute(loop.body, {loop.loop_var: iteration}))
        main = For(outer, 0, count, loop.kind, stmt_seq(*bodies), loop.thread_binding, loop.annotations)
        unfilled = _WithoutFilling().visit(loop.body)
        rest: list[Stmt] = []
        done = operators.multiply(count, factor)
        for number in range(factor):
            iteration = operators.add(done, number)
            value = operators.add(loop.min, iteration)
            # With an even factor more than one iteration may be left, and all but the last still fill.
            body = loop.body if factor > 1 else unfilled
            step: Stmt = FoldingSubstitute({loop.loop_var: value}).visit(body)
            inside = operators.less(iteration, loop.extent)
            if not isinstance(inside, IntImm):
                rest.append(IfThenElse(inside, step))
            elif inside.value:
                rest.append(step)
        return stmt_seq(main, *rest)

    def visit_load(self, node: Load) -> PrimExpr:
        made: Load = node.map_children(self.visit)
        doubled = self.doubled.get(node.buffer_var)
        return (
            made
            if doubled is None
            else made.replace(index=self._shifted(made.index, node.buffer_var, doubled, False))
        )

    def visit_store(self, node: Store) -> Stmt:
        made: Store = node.map_children(self.visit)
        doubled = self.doubled.get(node.buffer_var)
        return (
            made
            if doubled is None
            else made.replace(index=self._shifted(made.index, node.buffer_var, doubled, True))
        )

    def visit_call(self, node: Call) -> PrimExpr:
        if getattr(node.op, "name", "") != "tir.tvm_access_ptr" or node.args[1] not in self.doubled:
            return node.map_children(self.visit)
        annotation, data, offset, extent, mask = node.args
        assert isinstance(data, Var)
        writes = isinstance(mask, IntImm) and bool(mask.value & WRITE)
        shifted = self._shifted(self.visit(offset), data, self.doubled[data], writes)
        return node.replace(args=(annotation, data, shifted, self.visit(extent), mask))

    def visit_var(self, node: Var) -> PrimExpr:
        return node

    def _shifted(self, index: PrimExpr, buffer: Var, doubled: _Doubled, write: bool) -> PrimExpr:
        if doubled.read_half is None or doubled.write_half is None:
            raise LoweringError(
                f"buffer {buffer.name} is used before the statement that fills its first half"
            )
        # A statement that fills the buffer also reads what it has just written.
        half: PrimExpr = doubled.write_half if self.filling is buffer else doubled.read_half
        if write and self.filling is not buffer:
            raise LoweringError(
                f"buffer {buffer.name} is double buffered and written outside its double_buffer_scope"
            )
        return operators.add(operators.multiply(half, doubled.stride), index)


class _WithoutFilling(StmtMutator):
    """Drops the statements that fill a half for the next iteration."""

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        return stmt_seq() if node.attr_key == _WRITE else node.map_children(self.visit)


def inject_double_buffer(stmt: Stmt, split_loop: int = 1) -> Stmt:
    """The statement with its double buffers in place; see the module's text."""
    if split_loop < 0 or (split_loop > 1 and split_loop % 2):
        raise LoweringError(f"tir.InjectDoubleBuffer: split_loop is 0, 1 or an even number, not {split_loop}")
    marked = {
        found.node
        for found in statements_in(stmt)
        if isinstance(found, AttrStmt) and found.attr_key == _SCOPE and isinstance(found.node, Var)
    }
    return with_one_definition(_Injector(marked, split_loop).visit(stmt)) if marked else stmt


@dataclass(frozen=True)
class InjectDoubleBuffer(PrimFuncPass):
    """Gives buffers that are filled in a loop a second half, filled while the first is used.

    ``split_loop`` wins over that of ``tir.InjectDoubleBuffer`` in the context.
    """

    split_loop: int | None = None

    name = "tir.InjectDoubleBuffer"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        options = with_own_options(context.get("tir.InjectDoubleBuffer"), self)
        return function.with_body(inject_double_buffer(function.body, options.split_loop))
