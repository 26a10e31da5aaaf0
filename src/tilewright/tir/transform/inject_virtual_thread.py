"""Runs the iterations of virtual threads in one thread, interleaved.

Within ``virtual_thread``, a statement that depends on the virtual thread is repeated for each, innermost statements one
by one, so that the threads advance together. A buffer that depends on it gets one copy per thread; one that does not is
shared by threads of the tag ``vthread``, and copied for any other tag.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import Call, IntImm, IterVar, Load, PrimExpr, Var
from tilewright.ir.functor import Visitor, post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.support.node import Node
from tilewright.tir.folding import FoldingSubstitute
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
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
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator
from tilewright.tir.transform.lib.statement_rewriter import (
    StmtMutator,
    with_one_definition,
)

_UNROLL_LIMIT = 16
"""Fewer threads than this are written out one by one around an innermost statement; more get a loop."""


def _variables(*nodes: Node) -> Iterable[Var]:
    return (found for node in nodes for found in post_order(node) if isinstance(found, Var))


class _Influence(Visitor):
    """Which variables and buffers get their value from which others, by value, by index or by condition."""

    def __init__(self) -> None:
        super().__init__()
        self.influences: dict[Var, set[Var]] = defaultdict(set)
        self.conditions: list[Var] = []

    def visit_store(self, node: Store) -> None:
        self._record(node.buffer_var, node.value, node.index, node.predicate)

    def visit_evaluate(self, node: Evaluate) -> None:
        # What a call does with a pointer is not known: it may write what the other arguments say.
        for found in list(_variables(node.value)):
            if found.dtype.is_handle:
                self._record(found, node.value)

    def visit_let_stmt(self, node: LetStmt) -> None:
        self._record(node.var, node.value)
        self.visit(node.body)

    def visit_for(self, node: For) -> None:
        self._record(node.loop_var, node.min, node.extent)
        self.visit(node.body)

    def visit_if_then_else(self, node: IfThenElse) -> None:
        size = len(self.conditions)
        self.conditions.extend(_variables(node.condition))
        self.visit(node.then_case)
        if node.else_case is not None:
            self.visit(node.else_case)
        del self.conditions[size:]

    def visit_default(self, node: Any) -> None:
        if isinstance(node, Stmt):
            for child in node.children():
                self.visit(child)

    def _record(self, target: Var, *sources: Node) -> None:
        for source in (*_variables(*sources), *self.conditions):
            self.influences[source].add(target)

    def reached_from(self, start: Var) -> set[Var]:
        """Everything that depends on a variable, itself included."""
        reached = {start}
        waiting = [start]
        while waiting:
            for target in self.influences.get(waiting.pop(), ()):
                if target not in reached:
                    reached.add(target)
                    waiting.append(target)
        return reached


class _Injector(ScopedMutator):
    """Rewrites the body of one virtual thread axis."""

    def __init__(self, thread: Var, count: int, touched: set[Var], share: bool) -> None:
        super().__init__()
        self.thread = thread
        self.count = count
        self.touched = touched
        self.share = share
        self.strides: dict[Var, PrimExpr] = {}
        self.repeating = False
        self.loop_depth = 0

    def _depends(self, *exprs: PrimExpr) -> bool:
        return any(found in self.touched for found in _variables(*exprs))

    # Statements that are repeated for each thread

    def visit_store(self, node: Store) -> Stmt:
        made: Store = node.map_children(self.visit)
        if node.buffer_var in self.strides:
            made = made.replace(index=self._own(made.index, node.buffer_var))
        private = node.buffer_var in self.touched or node.buffer_var in self.strides
        return self._repeat_if(private or self._depends(node.value, node.index, node.predicate), made)

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        made: Evaluate = node.map_children(self.visit)
        return self._repeat_if(self._depends(node.value) or not self.share, made)

    def _repeat_if(self, depends: bool, made: Stmt) -> Stmt:
        return self._repeated(made) if depends and not self.repeating else made

    def _repeated(self, stmt: Stmt) -> Stmt:
        """The statement once for each thread."""
        if self.loop_depth == 0 and self.count < _UNROLL_LIMIT:
            threads = [operators.const(number, self.thread.dtype) for number in range(self.count)]
            return stmt_seq(*[FoldingSubstitute({self.thread: thread}).visit(stmt) for thread in threads])
        index = Var(f"{self.thread.name}.s", self.thread.dtype)
        return For(index, 0, self.count, ForKind.SERIAL, FoldingSubstitute({self.thread: index}).visit(stmt))

    def _repeated_whole(self, node: Stmt, loops: int = 0) -> Stmt:
        """A statement whose own expressions depend on the thread: all of it, once for each."""
        self.repeating = True
        made = node.map_children(self.visit)
        self.repeating = False
        self.loop_depth += loops
        return self._repeated(made)

    # Statements around others

    def visit_for(self, node: For) -> Stmt:
        if not self.repeating and self._depends(node.min, node.extent):
            return self._repeated_whole(node, loops=1)
        made: For = node.map_children(self.visit)
        self.loop_depth += 1
        return made

    def visit_while(self, node: While) -> Stmt:
        # Its condition is evaluated between iterations, so each thread runs through on its own.
        return node.map_children(self.visit) if self.repeating else self._repeated_whole(node, loops=1)

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        outer, deepest, made = self.loop_depth, 0, []
        for stmt in node.seq:
            self.loop_depth = 0
            made.append(self.visit(stmt))
            deepest = max(deepest, self.loop_depth)
        self.loop_depth = max(outer, deepest)
        return stmt_seq(*made)

    def _around(self, node: Any, *exprs: PrimExpr) -> Stmt:
        if not self.repeating and self._depends(*exprs):
            return self._repeated_whole(node)
        return node.map_children(self.visit)  # type: ignore[no-any-return]

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        return self._around(node, node.value)

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        return self._around(node, node.condition)

    def visit_assert_stmt(self, node: AssertStmt) -> Stmt:
        return self._around(node, node.condition)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        return self._around(node, node.value)

    def visit_allocate(self, node: Allocate) -> Stmt:
        if not self.repeating and self._depends(*node.extents, node.condition):
            return self._repeated_whole(node)
        private = node.buffer_var in self.touched or not self.share
        if self.repeating or not private:
            return node.map_children(self.visit)
        stride: PrimExpr = operators.const(node.dtype.lanes, node.extents[0].dtype)
        for extent in node.extents:
            stride = operators.multiply(stride, extent)
        self.strides[node.buffer_var] = stride
        made: Allocate = node.map_children(self.visit)
        count = operators.const(self.count, node.extents[0].dtype)
        return made.replace(extents=(count, *made.extents))

    # Accesses of buffers with one copy a thread

    def _own(self, index: PrimExpr, buffer: Var) -> PrimExpr:
        """The index in this thread's copy."""
        return operators.add(index, operators.multiply(self.thread, self.strides[buffer]))

    def visit_load(self, node: Load) -> PrimExpr:
        made: Load = node.map_children(self.visit)
        if node.buffer_var not in self.strides:
            return made
        return made.replace(index=self._own(made.index, node.buffer_var))

    def visit_call(self, node: Call) -> PrimExpr:
        name = getattr(node.op, "name", "")
        if name == "tir.tvm_context_id" and self.share:
            return self.thread
        if name == "tir.tvm_access_ptr" and node.args[1] in self.strides:
            annotation, data, offset, extent, mask = node.args
            assert isinstance(data, Var)
            own = self._own(self.visit(offset), data)
            return node.replace(args=(annotation, data, own, self.visit(extent), mask))
        if any(isinstance(argument, Var) and argument in self.strides for argument in node.args):
            raise LoweringError(
                f"{name} takes the pointer of a buffer that each virtual thread has its own copy of; use access_ptr"
            )
        return node.map_children(self.visit)


class _VirtualThreads(StmtMutator):
    """Finds the axes, inner ones first."""

    found = False

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        made: AttrStmt = node.map_children(self.visit)
        if node.attr_key != "virtual_thread":
            return made
        axis = node.node
        if not isinstance(axis, IterVar) or not isinstance(node.value, IntImm):
            raise LoweringError(
                f"a virtual thread needs an axis and a constant extent, not {axis} and {node.value}"
            )
        self.found = True
        influence = _Influence()
        influence.visit(made.body)
        touched = influence.reached_from(axis.var)
        share = axis.thread_tag.startswith("vthread")
        return _Injector(axis.var, node.value.value, touched, share).visit(made.body)  # type: ignore[no-any-return]


def inject_virtual_thread(stmt: Stmt) -> Stmt:
    """The statement without virtual threads; see the module's text."""
    injector = _VirtualThreads()
    made: Stmt = injector.visit(stmt)
    return with_one_definition(made) if injector.found else stmt


@dataclass(frozen=True)
class InjectVirtualThread(PrimFuncPass):
    """Interleaves virtual threads in one thread."""

    name = "tir.InjectVirtualThread"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(inject_virtual_thread(function.body))
