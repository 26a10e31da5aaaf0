"""Moves the allocation of each buffer to the innermost loop or block that contains all of its accesses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from operator import is_

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.analysis.block_access_region import get_block_read_write_region
from tilewright.tir.analysis.buffer_access_lca import detect_buffer_access_lca
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import statements_in
from tilewright.tir.stmt import Block, BlockRealize, For, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Mover(StmtMutator):
    def __init__(self, places: dict[Stmt, list[Buffer]], buffers: Iterable[Buffer]) -> None:
        super().__init__()
        self.places = places
        self.buffers = {buffer.data: buffer for buffer in buffers}
        self.moved = {buffer for buffers in places.values() for buffer in buffers}

    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        buffers = self.places.get(node)
        if not buffers:
            return made
        block = Block([], [], [], "", made.body, alloc_buffers=buffers)
        outside = {data: buffer for data, buffer in self.buffers.items() if buffer not in buffers}
        reads, writes = get_block_read_write_region(block, outside)
        block = block.replace(reads=tuple(reads), writes=tuple(writes))
        return made.replace(body=BlockRealize([], operators.const(True, "bool"), block))

    def visit_block(self, node: Block) -> Stmt:
        made: Block = node.map_children(self.visit)
        buffers = [buffer for buffer in node.alloc_buffers if buffer not in self.moved]
        buffers += self.places.get(node, [])
        same = len(buffers) == len(node.alloc_buffers) and all(map(is_, buffers, node.alloc_buffers))
        if same:
            return made
        own = [buffer for buffer in buffers if buffer in self.moved]
        # What it allocates is nobody else's.
        return made.replace(
            alloc_buffers=tuple(buffers),
            reads=tuple([region for region in made.reads if region.buffer not in own]),
            writes=tuple([region for region in made.writes if region.buffer not in own]),
        )


@dataclass(frozen=True)
class PlanAndUpdateBufferAllocationLocation(PrimFuncPass):
    """Moves allocations next to the accesses."""

    name = "tir.PlanAndUpdateBufferAllocationLocation"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        blocks = [found for found in statements_in(function.body) if isinstance(found, Block)]
        allocated = [buffer for block in blocks for buffer in block.alloc_buffers]
        if not allocated:
            return function
        scopes = detect_buffer_access_lca(function)
        places: dict[Stmt, list[Buffer]] = defaultdict(list)
        for buffer in allocated:
            scope = scopes.get(buffer)
            if isinstance(scope, (For, Block)):
                places[scope].append(buffer)
        return function.with_body(
            _Mover(places, [*function.buffer_map.values(), *allocated]).visit(function.body)
        )
