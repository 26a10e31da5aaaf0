"""Simplifies every expression with what is known at its place, and removes dead branches.

Known are the ranges of loops and threads and the conditions of the enclosing branches. A branch whose condition is
known becomes one of its sides, an assertion that holds becomes its body, and a loop without iterations is removed.
Bindings of constants, variables and short affine indices are substituted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import Add, Call, FloatImm, IntImm, IterVar, Load, Mul, PrimExpr, Sub, Var, is_const
from tilewright.ir.functor import Mutator, post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.folding import FoldingSubstitute
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    NO_OP,
    AssertStmt,
    AttrStmt,
    Block,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    is_no_op,
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import bind_range, thread_axis

_INLINED_NODES = 16
"""An index of at most so many nodes is written out where its variable stood."""


class _Simplifier(Mutator):
    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer
        self.values: dict[Var, PrimExpr] = {}
        self.substitution = FoldingSubstitute({})

    def visit_default(self, node: Any) -> Any:
        if isinstance(node, PrimExpr):
            made = self.analyzer.simplify(self.substitution.visit(node) if self.values else node)
            return node if expr_deep_equal(made, node) else made
        return node.map_children(self.visit)

    def visit_var(self, node: Var) -> PrimExpr:
        return self.values.get(node, node)

    def visit_for(self, node: For) -> Stmt:
        start, extent = self.visit(node.min), self.visit(node.extent)
        if isinstance(extent, IntImm) and extent.value <= 0:
            return NO_OP
        if isinstance(extent, IntImm) and extent.value == 1:
            self._let(node.loop_var, start)
        elif node.loop_var in self.values:
            self._let(node.loop_var, node.loop_var)
        bind_range(self.analyzer, node.loop_var, start, extent)
        body = self.visit(node.body)
        if start is node.min and extent is node.extent and body is node.body:
            return node
        return node.rebuild(min=start, extent=extent, body=body)

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        value = self.visit(node.value)
        if _is_inlined(value):
            self._let(node.var, value)
            return self.visit(node.body)  # type: ignore[no-any-return]
        body = self.visit(node.body)
        if value is node.value and body is node.body:
            return node
        return LetStmt(node.var, value, body, node.span)

    def _let(self, variable: Var, value: PrimExpr) -> None:
        self.values = {**self.values, variable: value}
        self.substitution = FoldingSubstitute(self.values)

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        condition = self.visit(node.condition)
        decided = condition.value if isinstance(condition, IntImm) else None
        if decided is not None:
            if decided:
                return self.visit(node.then_case)  # type: ignore[no-any-return]
            return NO_OP if node.else_case is None else self.visit(node.else_case)
        if condition.dtype.lanes > 1:
            return node.map_children(self.visit)
        bare = _without_likely(condition)
        with self.analyzer.constraint_scope(bare):
            then_case = self.visit(node.then_case)
        else_case = None
        if node.else_case is not None:
            with self.analyzer.constraint_scope(operators.logical_not(bare)):
                else_case = self.visit(node.else_case)
        if is_no_op(else_case) and is_no_op(then_case):
            return NO_OP
        if condition is node.condition and then_case is node.then_case and else_case is node.else_case:
            return node
        return IfThenElse(condition, then_case, else_case, node.span)

    def visit_assert_stmt(self, node: AssertStmt) -> Stmt:
        condition, message = self.visit(node.condition), self.visit(node.message)
        if is_const(condition, 1):
            return self.visit(node.body)  # type: ignore[no-any-return]
        with self.analyzer.constraint_scope(condition):
            body = self.visit(node.body)
        if condition is node.condition and message is node.message and body is node.body:
            return node
        return AssertStmt(condition, message, body, node.span)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        value = self.visit(node.value)
        axis = thread_axis(node)
        if axis is not None:
            self._bind_axis(axis, value)
        body = self.visit(node.body)
        named = self.values.get(node.node) if isinstance(node.node, Var) else None
        if value is node.value and body is node.body and named is None:
            return node
        return AttrStmt(node.node if named is None else named, node.attr_key, value, body, node.span)

    def _bind_axis(self, axis: IterVar, extent: PrimExpr) -> None:
        bind_range(self.analyzer, axis.var, operators.const(0, axis.var.dtype), extent)

    def visit_store(self, node: Store) -> Stmt:
        made: Store = node.map_children(self.visit)
        value = made.value
        if (
            isinstance(value, Load)
            and value.buffer_var is made.buffer_var
            and value.dtype is made.value.dtype
        ):
            if (
                expr_deep_equal(value.index, made.index)
                and is_const(made.predicate, 1)
                and is_const(value.predicate, 1)
            ):
                return NO_OP
        return made

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        made: SeqStmt = node.map_children(self.visit)
        if made is node or not any(is_no_op(part) or isinstance(part, SeqStmt) for part in made.seq):
            return made
        return stmt_seq(*made.seq)

    def visit_block(self, node: Block) -> Stmt:
        for axis in node.iter_vars:
            if axis.dom is not None:
                bind_range(self.analyzer, axis.var, axis.dom.min, axis.dom.extent)
        return node.map_children(self.visit)

    def visit_iter_var(self, node: IterVar) -> IterVar:
        return node.map_children(self.visit)


def _without_likely(condition: PrimExpr) -> PrimExpr:
    if isinstance(condition, Call) and getattr(condition.op, "name", "") == "tir.likely":
        return condition.args[0]
    return condition


def _is_inlined(value: PrimExpr) -> bool:
    """True for what is at least as cheap and as clear as the variable that stands for it."""
    if isinstance(value, (IntImm, FloatImm, Var)):
        return not value.dtype.is_handle or isinstance(value, Var)
    if not value.dtype.is_int or value.dtype.lanes != 1:
        return False
    parts = post_order(value)
    return len(parts) <= _INLINED_NODES and all(
        isinstance(part, (Add, Sub, Mul, IntImm, Var)) for part in parts
    )


def simplify(stmt: Stmt, analyzer: Analyzer | None = None) -> Stmt:
    """The statement with its expressions simplified; see the module's text."""
    return _Simplifier(analyzer or Analyzer()).visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Simplify(PrimFuncPass):
    """Simplifies expressions and drops what they decide."""

    name = "tir.Simplify"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(simplify(function.body))
