"""Removes statements that do nothing: empty loops, branches, bindings and allocations, and expressions without side
effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.expr import IntImm, PrimExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    NO_OP,
    Allocate,
    AttrStmt,
    BufferRealize,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    is_no_op,
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.effects import is_droppable
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Remover(StmtMutator):
    """Bottom-up: a statement whose parts do nothing does nothing, except for the effects of its own expressions."""

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        return NO_OP if is_droppable(node.value) and not is_no_op(node) else node

    def visit_for(self, node: For) -> Stmt:
        if isinstance(node.extent, IntImm) and node.extent.value <= 0:
            return NO_OP
        body = self.visit(node.body)
        if is_no_op(body):
            return _effects([node.min, node.extent])
        return node if body is node.body else node.replace(body=body)

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        body = self.visit(node.body)
        if is_no_op(body):
            return _effects([node.value])
        return node if body is node.body else node.replace(body=body)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "pragma_debug_skip_region":
            return NO_OP
        body = self.visit(node.body)
        if is_no_op(body):
            return _effects([node.value])
        return node if body is node.body else node.replace(body=body)

    def visit_allocate(self, node: Allocate) -> Stmt:
        body = self.visit(node.body)
        if is_no_op(body):
            return _effects(node.extents)
        return node if body is node.body else node.replace(body=body)

    def visit_buffer_realize(self, node: BufferRealize) -> Stmt:
        body = self.visit(node.body)
        if is_no_op(body):
            return body  # type: ignore[no-any-return]
        return node if body is node.body else node.replace(body=body)

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        then_case = self.visit(node.then_case)
        else_case = None if node.else_case is None else self.visit(node.else_case)
        if is_no_op(else_case):
            else_case = None
        if else_case is None and is_no_op(then_case):
            return _effects([node.condition])
        if then_case is node.then_case and else_case is node.else_case:
            return node
        return IfThenElse(node.condition, then_case, else_case, node.span)

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        made = [self.visit(stmt) for stmt in node.seq]
        changed = any(
            new is not old or is_no_op(new) or isinstance(new, SeqStmt)
            for new, old in zip(made, node.seq, strict=True)
        )
        return stmt_seq(*made) if changed or len(made) == 1 else node


def _effects(exprs: Sequence[PrimExpr]) -> Stmt:
    """The expressions that may not be dropped, evaluated."""
    return stmt_seq(NO_OP, *[Evaluate(expr) for expr in exprs if not is_droppable(expr)])


def remove_no_op(stmt: Stmt) -> Stmt:
    """The statement without what does nothing."""
    return _Remover().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class RemoveNoOp(PrimFuncPass):
    """Drops statements that do nothing."""

    name = "tir.RemoveNoOp"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(remove_no_op(function.body))
