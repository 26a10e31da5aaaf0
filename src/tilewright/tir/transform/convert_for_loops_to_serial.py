"""Makes parallel loops serial, for targets without threads."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import For, ForKind, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Serializer(StmtMutator):
    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        return made.replace(kind=ForKind.SERIAL) if made.kind == ForKind.PARALLEL else made


def convert_for_loops_to_serial(stmt: Stmt) -> Stmt:
    """The statement with its parallel loops made serial."""
    return _Serializer().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ConvertForLoopsToSerial(PrimFuncPass):
    """Makes parallel loops serial."""

    name = "tir.ConvertForLoopsToSerial"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(convert_for_loops_to_serial(function.body))
