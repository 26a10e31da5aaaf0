"""Substitutes the values of a block's axes. Afterwards no block has axes."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.expr import PrimExpr, Var
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Block, BlockRealize, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.block_rewriter import BlockSubstitute, has_blocks


class _Converter(BlockSubstitute):
    """The mapping grows with each block; a block's variables occur nowhere before it."""

    def __init__(self) -> None:
        self.values: dict[Var, PrimExpr] = {}
        super().__init__(self.values)

    def visit_block_realize(self, node: BlockRealize) -> Stmt:
        values = tuple([self.visit(value) for value in node.iter_values])
        predicate = self.visit(node.predicate)
        block = node.block
        if block.init is not None:
            raise LoweringError(
                f"block {block.name_hint} still has an initialisation: run LowerInitBlock first"
            )
        for axis, value in zip(block.iter_vars, values, strict=True):
            self.values[axis.var] = value
        made = self.visit(block.replace(iter_vars=()) if block.iter_vars else block)
        if made is block and predicate is node.predicate and not values:
            return node
        assert isinstance(made, Block)
        return BlockRealize([], predicate, made, node.span)


@dataclass(frozen=True)
class ConvertBlocksToOpaque(PrimFuncPass):
    """Replaces the axes of blocks by their values."""

    name = "tir.ConvertBlocksToOpaque"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Converter().visit(function.body)) if has_blocks(function) else function
