"""Gives all loops bound to one thread index one variable, around everything that uses it.

Loops of kind THREAD_BINDING inside a kernel disappear; the outermost of them becomes one loop per thread index used
inside. Loops with the same index must have the same extent. Threads that attributes launch count as loops, where the
function has blocks. Virtual threads without a dimension ("vthread") stay unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, Var
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import statements_in
from tilewright.tir.stmt import AttrStmt, Block, For, ForKind, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.block_rewriter import BlockSubstitute
from tilewright.tir.transform.lib.bound_updates import require_bound_updates
from tilewright.tir.transform.lib.statement_rewriter import thread_axis


@dataclass(slots=True)
class _Thread:
    """A thread index of the present kernel: its axis and the loop that it came from."""

    axis: IterVar
    extent: PrimExpr
    launched: For | AttrStmt


@dataclass(slots=True)
class _Kernel:
    threads: dict[str, _Thread] = field(default_factory=dict)


class _Unifier(BlockSubstitute):
    def __init__(self, attributes: bool) -> None:
        self.attributes = attributes
        self.values: dict[Var, PrimExpr] = {}
        super().__init__(self.values)
        self.kernel: _Kernel | None = None
        self.analyzer = Analyzer()

    def visit_for(self, node: For) -> Stmt:
        binding = node.thread_binding
        if node.kind != ForKind.THREAD_BINDING or binding is None:
            return node.map_children(self.visit)
        if binding.thread_tag == "vthread":
            return node.map_children(self.visit)
        return self._unified(node, binding, node.loop_var, self.visit(node.min), self.visit(node.extent))

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        axis = thread_axis(node) if self.attributes else None
        if axis is None or axis.thread_tag == "vthread":
            return node.map_children(self.visit)
        return self._unified(node, axis, axis.var, operators.const(0, axis.var.dtype), self.visit(node.value))

    def _unified(
        self, node: For | AttrStmt, binding: IterVar, loop_var: Var, start: PrimExpr, extent: PrimExpr
    ) -> Stmt:
        """The body of what runs for each thread, with its index for the variable; the outermost in its loops."""
        tag = binding.thread_tag
        launches = self.kernel is None
        kernel = self.kernel = self.kernel or _Kernel()
        thread = kernel.threads.get(tag)
        if thread is None:
            axis = IterVar(None, Var(tag, loop_var.dtype), IterVar.ThreadIndex, tag)
            thread = kernel.threads[tag] = _Thread(axis, extent, node)
        elif not self.analyzer.can_prove_equal(thread.extent, extent):
            raise LoweringError(
                f"loops bound to {tag} have the extents {thread.extent} and {extent}; they must be equal in one kernel"
            )
        self.values[loop_var] = operators.add(start, operators.cast(loop_var.dtype, thread.axis.var))
        if binding.var is not loop_var:
            self.values[binding.var] = self.values[loop_var]
        body: Stmt = self.visit(node.body)
        if not launches:
            return body
        self.kernel = None
        for one in reversed(kernel.threads.values()):
            annotations = one.launched.annotations if isinstance(one.launched, For) else None
            body = For(
                one.axis.var,
                0,
                one.extent,
                ForKind.THREAD_BINDING,
                body,
                IterVar(None, Var("", one.axis.var.dtype), IterVar.ThreadIndex, one.axis.thread_tag),
                annotations,
                one.launched.span,
            )
        return body


def unify_thread_binding(stmt: Stmt) -> Stmt:
    """The statement with one variable for each thread index; see the module's text."""
    found = statements_in(stmt)
    blocks = any(isinstance(one, Block) for one in found)
    bound = any(isinstance(one, For) and one.kind == ForKind.THREAD_BINDING for one in found)
    launched = blocks and any(isinstance(one, AttrStmt) and thread_axis(one) is not None for one in found)
    if not bound and not launched:
        return stmt
    require_bound_updates(stmt)
    return _Unifier(blocks).visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class UnifyThreadBinding(PrimFuncPass):
    """Gives all loops bound to one thread index one variable."""

    name = "tir.UnifyThreadBinding"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(unify_thread_binding(function.body))
