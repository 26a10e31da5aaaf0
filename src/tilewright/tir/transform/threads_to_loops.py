"""Turns thread indices into loops, for targets without GPU threads.

The threads of a kernel that neither share memory nor synchronise may run one after another: each thread index becomes a
loop. An index that is already bound around a statement is the same index inside it. A kernel that shares memory, uses
barriers or combines values across threads stays unchanged, and its code generator rejects it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import Call, IterVar, PrimExpr, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import Allocate, AttrStmt, For, ForKind, LetStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

_TOGETHER = frozenset({"tir.tvm_storage_sync", "tir.tvm_thread_allreduce", "tir.tvm_warp_shuffle"})


def _work_together(kernel: Stmt) -> bool:
    """True if the threads of a kernel need one another."""
    for part in post_order(kernel):
        if isinstance(part, Call) and isinstance(part.op, Op) and part.op.name in _TOGETHER:
            return True
        if isinstance(part, Allocate) and not part.buffer_var.storage_scope.startswith("local"):
            return True
    return False


class _Looper(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.running: dict[str, Var] = {}
        self.defined: set[Var] = set()

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        thread = node.node
        if node.attr_key != "thread_extent" or not isinstance(thread, IterVar):
            return self.visit_default(node)  # type: ignore[no-any-return]
        if not self.running and _work_together(node):
            return node
        same = self.running.get(thread.thread_tag)
        if same is not None:
            body: Stmt = self.visit(node.body)
            return body if same is thread.var else LetStmt(thread.var, same, body)
        self.running[thread.thread_tag] = thread.var
        body = self.visit(node.body)
        del self.running[thread.thread_tag]
        variable = thread.var
        if variable in self.defined:
            # Several kernels may use one thread index; each loop defines its own variable.
            variable = Var(variable.name, variable.dtype)
            body = substitute(body, {thread.var: variable})
        self.defined.add(variable)
        extent: PrimExpr = operators.cast(variable.dtype, node.value)
        return For(variable, operators.const(0, variable.dtype), extent, ForKind.SERIAL, body)


@dataclass(frozen=True)
class ThreadsToLoops(PrimFuncPass):
    """Makes loops of the thread indices of kernels whose threads do not need one another."""

    name = "tir.ThreadsToLoops"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Looper().visit(function.body))
