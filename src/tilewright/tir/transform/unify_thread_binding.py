"""Gives all loops bound to one thread index one variable, around everything that uses it.

Loops of kind THREAD_BINDING inside a kernel disappear; the outermost of them becomes one loop per thread index used
inside. Loops with the same index must have the same extent. Virtual threads stay unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, Range, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import For, ForKind, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.block_rewriter import BlockSubstitute
from tilewright.tir.transform.lib.bound_updates import require_bound_updates


@dataclass(slots=True)
class _Thread:
    """A thread index of the present kernel: its axis and the loop that it came from."""

    axis: IterVar
    extent: PrimExpr
    loop: For


@dataclass(slots=True)
class _Kernel:
    threads: dict[str, _Thread] = field(default_factory=dict)


class _Unifier(BlockSubstitute):
    def __init__(self) -> None:
        self.values: dict[Var, PrimExpr] = {}
        super().__init__(self.values)
        self.kernel: _Kernel | None = None
        self.analyzer = Analyzer()

    def visit_for(self, node: For) -> Stmt:
        binding = node.thread_binding
        if node.kind != ForKind.THREAD_BINDING or binding is None:
            return node.map_children(self.visit)
        tag = binding.thread_tag
        if tag.startswith("vthread"):
            return node.map_children(self.visit)
        launches = self.kernel is None
        kernel = self.kernel = self.kernel or _Kernel()
        start, extent = self.visit(node.min), self.visit(node.extent)
        thread = kernel.threads.get(tag)
        if thread is None:
            axis = IterVar(
                Range.from_min_extent(0, extent), Var(tag, node.loop_var.dtype), IterVar.ThreadIndex, tag
            )
            thread = kernel.threads[tag] = _Thread(axis, extent, node)
        elif not self.analyzer.can_prove_equal(thread.extent, extent):
            raise LoweringError(
                f"loops bound to {tag} have the extents {thread.extent} and {extent}; they must be equal in one kernel"
            )
        self.values[node.loop_var] = operators.add(
            start, operators.cast(node.loop_var.dtype, thread.axis.var)
        )
        if binding.var is not node.loop_var:
            self.values[binding.var] = self.values[node.loop_var]
        body: Stmt = self.visit(node.body)
        if not launches:
            return body
        self.kernel = None
        for launched in reversed(kernel.threads.values()):
            body = For(
                launched.axis.var,
                0,
                launched.extent,
                ForKind.THREAD_BINDING,
                body,
                launched.axis,
                launched.loop.annotations,
                launched.loop.span,
            )
        return body


def unify_thread_binding(stmt: Stmt) -> Stmt:
    """The statement with one variable for each thread index; see the module's text."""
    bound = any(isinstance(found, For) and found.kind == ForKind.THREAD_BINDING for found in post_order(stmt))
    if not bound:
        return stmt
    require_bound_updates(stmt)
    return _Unifier().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class UnifyThreadBinding(PrimFuncPass):
    """Gives all loops bound to one thread index one variable."""

    name = "tir.UnifyThreadBinding"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(unify_thread_binding(function.body))
