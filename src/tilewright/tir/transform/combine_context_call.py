"""Queries a thread's context only once.

``tvm_thread_context(call)`` is a value that is constant within a thread, such as a command queue. All uses of one such
call become a variable, bound at the top of the enclosing function or parallel loop body.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.expr import Call, PrimExpr, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.node import Node
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import For, ForKind, LetStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator


class _Combine(ScopedMutator):
    def __init__(self) -> None:
        super().__init__()
        self.contexts: list[tuple[PrimExpr, Var]] = []

    def scope(self, body: Stmt) -> Stmt:
        """The body with the contexts that it uses bound around it."""
        outer, self.contexts = self.contexts, []
        made: Stmt = self.visit(body)
        for call, variable in reversed(self.contexts):
            made = LetStmt(variable, call, made)
        self.contexts = outer
        return made

    def visit_for(self, node: For) -> Stmt:
        if node.kind != ForKind.PARALLEL:
            return node.map_children(self.visit)
        return node.replace(
            min=self.visit(node.min), extent=self.visit(node.extent), body=self.scope(node.body)
        )

    def visit_call(self, node: Call) -> PrimExpr:
        if not _is_context(node):
            return node.map_children(self.visit)
        call = self.visit(node.args[0])
        for known, variable in self.contexts:
            if expr_deep_equal(known, call):
                return variable
        variable = Var("context", call.dtype)
        self.contexts.append((call, variable))
        return variable


def _is_context(node: Node) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", "") == "tir.tvm_thread_context"


@dataclass(frozen=True)
class CombineContextCall(PrimFuncPass):
    """Bind each thread context once."""

    name = "tir.CombineContextCall"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        # Looking for a context visits what is shared once; few functions have one.
        if not any(_is_context(part) for part in post_order(function.body)):
            return function
        return function.with_body(_Combine().scope(function.body))
