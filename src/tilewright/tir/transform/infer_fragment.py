"""Infers the shapes and layouts of tensor-core fragments from the calls that use them.

A fragment's memory is in a scope ``wmma.matrix_a``, ``wmma.matrix_b`` or ``wmma.accumulator``. The allocation gets the
attributes ``fragment_shape`` ("m, n, k") and, for the two matrices, ``fragment_layout``, which code generators need to
declare it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.expr import Call, StringImm, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

_WITH_LAYOUT = "tir.tvm_load_matrix_sync"
_WITH_SHAPE = frozenset({_WITH_LAYOUT, "tir.tvm_store_matrix_sync", "tir.tvm_fill_fragment"})


@dataclass
class _Fragment:
    shape: str
    layout: str | None = None


def _collect(body: Stmt) -> dict[Var, _Fragment]:
    """The shape and layout that the calls imply for each fragment; a conflict is an error."""
    found: dict[Var, _Fragment] = {}
    for call in post_order(body):
        if not (isinstance(call, Call) and isinstance(call.op, Op) and call.op.name in _WITH_SHAPE):
            continue
        variable = call.args[0]
        if not isinstance(variable, Var):
            raise LoweringError(
                f"the first argument of {call.op.name} is the fragment's memory", span=call.span
            )
        shape = ", ".join(str(getattr(size, "value", size)) for size in call.args[1:4])
        layout = (
            call.args[7].value
            if call.op.name == _WITH_LAYOUT and isinstance(call.args[7], StringImm)
            else None
        )
        known = found.setdefault(variable, _Fragment(shape, layout))
        known.layout = known.layout or layout
        if known.shape != shape or (layout is not None and known.layout != layout):
            raise LoweringError(
                f"fragment {variable.name} is used as {known.shape} {known.layout or ''} and as {shape} {layout or ''}"
            )
    return found


class _Annotate(StmtMutator):
    def __init__(self, fragments: dict[Var, _Fragment]) -> None:
        super().__init__()
        self.fragments = fragments

    def visit_allocate(self, node: Allocate) -> Stmt:
        made: Stmt = node.map_children(self.visit)
        fragment = self.fragments.get(node.buffer_var)
        if fragment is None:
            return made
        made = AttrStmt(node.buffer_var, "fragment_shape", StringImm(fragment.shape), made)
        if node.buffer_var.storage_scope in ("wmma.matrix_a", "wmma.matrix_b"):
            made = AttrStmt(
                node.buffer_var, "fragment_layout", StringImm(fragment.layout or "row_major"), made
            )
        return made


@dataclass(frozen=True)
class InferFragment(PrimFuncPass):
    """Annotate the allocations of tensor-core fragments."""

    name = "tir.InferFragment"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        fragments = _collect(function.body)
        return function.with_body(_Annotate(fragments).visit(function.body)) if fragments else function
