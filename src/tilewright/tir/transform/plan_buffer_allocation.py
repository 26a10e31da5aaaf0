"""Moves the allocation of each buffer to the innermost loop or block that contains all of its accesses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import is_

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.analysis.buffer_access_lca import detect_buffer_access_lca
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Block, BlockRealize, For, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Mover(StmtMutator):
    def __init__(self, places: dict[Stmt, list[Buffer]]) -> None:
        super().__init__()
        self.places = places
        self.moved = {buffer for buffers in places.values() for buffer in buffers}

    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        buffers = self.places.get(node)
        if not buffers:
            return made
        block = Block([], [], [], "", made.body, alloc_buffers=buffers)
        return made.replace(body=BlockRealize([], operators.const(True, "bool"), block))

    def visit_block(self, node: Block) -> Stmt:
        made: Block = node.map_children(self.visit)
        buffers = [buffer for buffer in node.alloc_buffers if buffer not in self.moved]
        buffers += self.places.get(node, [])
        same = len(buffers) == len(node.alloc_buffers) and all(map(is_, buffers, node.alloc_buffers))
        return made if same else made.replace(alloc_buffers=tuple(buffers))


@dataclass(frozen=True)
class PlanAndUpdateBufferAllocationLocation(PrimFuncPass):
    """Moves allocations next to the accesses."""

    name = "tir.PlanAndUpdateBufferAllocationLocation"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        blocks = [found for found in post_order(function.body) if isinstance(found, Block)]
        allocated = [buffer for block in blocks for buffer in block.alloc_buffers]
        if not allocated:
            return function
        scopes = detect_buffer_access_lca(function)
        places: dict[Stmt, list[Buffer]] = defaultdict(list)
        for buffer in allocated:
            scope = scopes.get(buffer)
            if isinstance(scope, (For, Block)):
                places[scope].append(buffer)
        return function.with_body(_Mover(places).visit(function.body))
