"""Moves the initialisation of a reduction into the block's body.

``init`` of a block becomes a statement that runs where every reduction axis is at its start. Afterwards no block has an
``init``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Block, IfThenElse, Stmt, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Lowerer(StmtMutator):
    def visit_block(self, node: Block) -> Stmt:
        made: Block = node.map_children(self.visit)
        if made.init is None:
            return made
        condition: PrimExpr = operators.const(True, "bool")
        for axis in made.iter_vars:
            if axis.iter_type == IterVar.CommReduce:
                if axis.dom is None:
                    raise LoweringError(
                        f"reduction axis {axis.var.name} of block {made.name_hint} has no range"
                    )
                condition = operators.logical_and(condition, operators.equal(axis.var, axis.dom.min))
        always = not any(axis.iter_type == IterVar.CommReduce for axis in made.iter_vars)
        first: Stmt = made.init if always else IfThenElse(condition, made.init)
        return made.replace(init=None, body=stmt_seq(first, made.body))


def lower_init_block(stmt: Stmt) -> Stmt:
    """The statement without initialisations; see the module's text."""
    return _Lowerer().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class LowerInitBlock(PrimFuncPass):
    """Puts the initialisation of reductions into the bodies of their blocks."""

    name = "tir.LowerInitBlock"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(lower_init_block(function.body))
