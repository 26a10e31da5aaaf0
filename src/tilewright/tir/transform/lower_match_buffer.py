"""Replaces matched buffers by the buffers that they are views of.

An access to a matched buffer becomes an access to its source, offset by the start of the region; the variables in the
declaration of the view (offset, strides, shape, pointer) get their values. Afterwards no block matches buffers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, PrimExpr, Range, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Block, BufferStore, For, MatchBufferRegion, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.block_rewriter import BlockSubstitute, has_blocks
from tilewright.tir.transform.lib.buffer_view import BufferView, bind_view
from tilewright.tir.transform.lib.statement_rewriter import bind_range


class _Lowerer(BlockSubstitute):
    def __init__(self) -> None:
        self.values: dict[Var, PrimExpr] = {}
        super().__init__(self.values)
        self.sources: dict[Buffer, BufferRegion] = {}
        self.analyzer = Analyzer()

    def visit_for(self, node: For) -> Stmt:
        bind_range(self.analyzer, node.loop_var, node.min, node.extent)
        return node.map_children(self.visit)

    def visit_block(self, node: Block) -> Stmt:
        pointers: set[Var] = set()
        if node.match_buffers:
            pointers = {part for part in post_order(node.body) if isinstance(part, Var)}
        for match in node.match_buffers:
            self._bind(match, match.buffer.data not in pointers)
        made: Stmt = super().visit_block(node.replace(match_buffers=()) if node.match_buffers else node)
        return made

    def _bind(self, match: MatchBufferRegion, by_element: bool) -> None:
        source = self.visit_buffer_region(match.source)
        buffer = match.buffer
        box = [(bound.min, bound.extent) for bound in source.region]
        _, values = bind_view(buffer, BufferView.of_buffer(source.buffer), box, self.analyzer, by_element)
        self.values.update(values)
        self.sources[buffer] = source

    def _indices(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[Buffer, list[PrimExpr]]:
        source = self.sources[buffer]
        region = source.region
        surplus = len(region) - len(indices)
        if surplus < 0:
            raise LoweringError(
                f"view {buffer.name} has more dimensions than the box of {source.buffer.name}"
            )
        starts = [bound.min for bound in region]
        moved = [operators.add(start, index) for start, index in zip(starts[surplus:], indices, strict=True)]
        return source.buffer, [*starts[:surplus], *moved]

    def visit_buffer_load(self, node: BufferLoad) -> PrimExpr:
        made: BufferLoad = super().visit_buffer_load(node)
        if node.buffer not in self.sources:
            return made
        return BufferLoad(*self._indices(node.buffer, made.indices), node.span)

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        made: BufferStore = super().visit_buffer_store(node)
        if node.buffer not in self.sources:
            return made
        buffer, indices = self._indices(node.buffer, made.indices)
        return BufferStore(buffer, made.value, indices, node.span)

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        made = super().visit_buffer_region(node)
        if node.buffer not in self.sources:
            return made
        buffer, starts = self._indices(node.buffer, tuple([bound.min for bound in made.region]))
        extents = [bound.extent for bound in made.region]
        ones: list[PrimExpr] = [
            operators.const(1, start.dtype) for start in starts[: len(starts) - len(extents)]
        ]
        bounds = [Range.from_min_extent(*pair) for pair in zip(starts, ones + extents, strict=True)]
        return BufferRegion(buffer, tuple(bounds))


@dataclass(frozen=True)
class LowerMatchBuffer(PrimFuncPass):
    """Replaces views of boxes by the buffers they are views of."""

    name = "tir.LowerMatchBuffer"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Lowerer().visit(function.body)) if has_blocks(function) else function
