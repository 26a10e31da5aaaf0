"""Removes assertions: what they check is then assumed."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AssertStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Skipper(StmtMutator):
    def visit_assert_stmt(self, node: AssertStmt) -> Stmt:
        return self.visit(node.body)  # type: ignore[no-any-return]


def skip_assert(stmt: Stmt) -> Stmt:
    """The statement without assertions."""
    return _Skipper().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SkipAssert(PrimFuncPass):
    """Drops assertions."""

    name = "tir.SkipAssert"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(skip_assert(function.body))
