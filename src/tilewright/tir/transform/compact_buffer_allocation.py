"""Shrinks allocated buffers to the region that is accessed.

For each buffer that a block allocates, the pass takes the union of the regions that the block's body reads and writes
in any iteration, and gives the buffer the shape of that region; indices are relative to its corner. A condition around
an access narrows the region. A pointer that is used directly reaches what the blocks around it say that they read and
write of its buffer, and everything if they say nothing; such a buffer only loses elements at its end.
``buffer_dim_align`` among a block's annotations gives the buffers it writes strides with the requested remainders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.arith import Analyzer, IntervalSet, IntSet, eval_int_set, union_sets
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, Call, IntImm, PrimExpr, Range, Var
from tilewright.ir.functor import Visitor
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Block, BlockRealize, BufferStore, For, IfThenElse, LetStmt, Stmt
from tilewright.tir.storage_rank import StorageRank, is_shared_by, storage_rank
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.block_rewriter import BlockMutator, has_blocks
from tilewright.tir.transform.lib.buffer_view import aligned_strides
from tilewright.tir.transform.lib.narrowed_ranges import narrowed, negated
from tilewright.tir.transform.lib.statement_rewriter import bind_range


@dataclass(slots=True)
class _Box:
    """The accesses of an allocated buffer; the allocation is nested in ``depth`` loops."""

    buffer: Buffer
    depth: int
    bounds: list[IntervalSet] | None = None
    whole: bool = False
    has_pointers: bool = False
    alignment: dict[int, tuple[int, int]] = field(default_factory=dict)


class _Survey(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.loops: list[tuple[Var, IntervalSet]] = []
        self.threads: dict[Var, str] = {}
        self.boxes: dict[Buffer, _Box] = {}
        self.buffer_of: dict[Var, Buffer] = {}
        self.declared: list[BufferRegion] = []

    def visit_for(self, node: For) -> None:
        bind_range(self.analyzer, node.loop_var, node.min, node.extent)
        if node.thread_binding is not None:
            self.threads[node.loop_var] = node.thread_binding.thread_tag
        self._define(node.loop_var, IntSet.interval(node.min, node.min + node.extent - 1), node.body)

    def visit_let_stmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        self._define(node.var, IntSet.everything(), node.body)

    def _define(self, variable: Var, values: IntervalSet, body: Stmt) -> None:
        self.loops.append((variable, values))
        self.visit(body)
        self.loops.pop()

    def visit_block(self, node: Block) -> None:
        for buffer in node.alloc_buffers:
            self.boxes[buffer] = _Box(buffer, len(self.loops))
            self.buffer_of[buffer.data] = buffer
        for dimension in node.annotations.get("buffer_dim_align", ()):
            self._align(node, [int(number) for number in dimension])
        for match in node.match_buffers:
            self._region(match.source)
        outer, self.declared = self.declared, [*self.declared, *node.reads, *node.writes]
        for child in (node.init, node.body):
            if child is not None:
                self.visit(child)
        self.declared = outer

    def visit_block_realize(self, node: BlockRealize) -> None:
        for part in (*node.iter_values, node.predicate):
            self.visit(part)
        self._where(node.predicate, node.block)

    def visit_if_then_else(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        self._where(node.condition, node.then_case)
        if node.else_case is not None:
            self._where(negated(node.condition), node.else_case)

    def visit_call(self, node: Call) -> None:
        if getattr(node.op, "name", "") != "tir.if_then_else":
            self.visit_default(node)
            return
        condition, then_value, else_value = node.args
        self.visit(condition)
        self._where(condition, then_value)
        self._where(negated(condition), else_value)

    def _where(self, condition: PrimExpr, part: Any) -> None:
        """Visit what is only executed where a condition holds."""
        outer, self.loops = self.loops, narrowed(self.loops, condition, self.analyzer)
        self.visit(part)
        self.loops = outer

    def _align(self, node: Block, numbers: list[int]) -> None:
        """(number of the written buffer, dimension, factor, offset)"""
        written, dimension, factor, offset = numbers
        box = self.boxes.get(node.writes[written].buffer)
        if box is not None:
            box.alignment[dimension] = (factor, offset)

    def visit_buffer_load(self, node: BufferLoad) -> None:
        self._access(node.buffer, [(index, index) for index in node.indices])
        self.visit_default(node)

    def visit_buffer_store(self, node: BufferStore) -> None:
        self._access(node.buffer, [(index, index) for index in node.indices])
        self.visit_default(node)

    def visit_var(self, node: Var) -> None:
        buffer = self.buffer_of.get(node)
        if buffer is None:
            return
        box = self.boxes[buffer]
        box.has_pointers = True
        regions = [region for region in self.declared if region.buffer is buffer]
        box.whole = box.whole or not regions
        for region in regions:
            self._region(region)

    def _region(self, region: BufferRegion) -> None:
        self._access(region.buffer, [(bound.min, bound.min + bound.extent - 1) for bound in region.region])

    def _access(self, buffer: Buffer, indices: Sequence[tuple[PrimExpr, PrimExpr]]) -> None:
        box = self.boxes.get(buffer)
        if box is None:
            return
        inner = dict(self.loops[box.depth :])
        # Memory that threads share holds what all of them access, wherever it is allocated.
        inner.update(
            (variable, values)
            for variable, values in self.loops[: box.depth]
            if self._is_shared(buffer, self.threads.get(variable))
        )
        touched = []
        for first, last in indices:
            low = eval_int_set(first, inner, self.analyzer)
            high = low if last is first else eval_int_set(last, inner, self.analyzer)
            touched.append(IntervalSet(low.min_value, high.max_value))
        if box.bounds is None:
            box.bounds = touched
        else:
            joined = zip(box.bounds, touched, strict=True)
            box.bounds = [union_sets(pair, self.analyzer) for pair in joined]

    def _is_shared(self, buffer: Buffer, tag: str | None) -> bool:
        rank = storage_rank(buffer.scope())
        return tag is not None and rank in (StorageRank.SHARED, StorageRank.WARP) and is_shared_by(rank, tag)


class _Compactor(BlockMutator):
    def __init__(self, survey: _Survey) -> None:
        super().__init__()
        self.analyzer = survey.analyzer
        self.buffers: dict[Buffer, tuple[Buffer, list[PrimExpr]]] = {}
        for box in survey.boxes.values():
            made = self._compacted(box)
            if made is not None:
                self.buffers[box.buffer] = made

    def _compacted(self, box: _Box) -> tuple[Buffer, list[PrimExpr]] | None:
        """The smaller buffer and the indices of its first element; None if it stays as it is."""
        buffer = box.buffer
        if box.whole or box.bounds is None or buffer.strides:
            return None
        starts: list[PrimExpr] = []
        shape: list[PrimExpr] = []
        for interval, extent in zip(box.bounds, buffer.shape, strict=True):
            start, length = self._kept(interval, extent)
            if isinstance(length, IntImm) and length.value <= 0:
                return None
            starts.append(start)
            shape.append(length)
        if box.has_pointers:
            starts = [operators.const(0, extent.dtype) for extent in buffer.shape]
            shape = [
                self._kept(IntervalSet(starts[0], box.bounds[0].max_value), buffer.shape[0])[1],
                *buffer.shape[1:],
            ]
        strides: tuple[PrimExpr, ...] = ()
        if box.alignment:
            strides = aligned_strides(shape, box.alignment, self.analyzer)
        same = all(
            self.analyzer.can_prove_equal(new, old) for new, old in zip(shape, buffer.shape, strict=True)
        )
        if same and not strides:
            return None
        return buffer.replace(shape=tuple(shape), strides=strides), starts

    def _kept(self, interval: IntervalSet, extent: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """The first index of a dimension that is used, and the number of elements from there."""
        zero = operators.const(0, extent.dtype)
        if not (interval.has_lower_bound and interval.has_upper_bound):
            return zero, extent
        simplify = self.analyzer.simplify
        start = simplify(operators.maximum(interval.min_value, zero))
        length = simplify(operators.add(operators.subtract(interval.max_value, start), 1))
        if not isinstance(length, IntImm) or isinstance(extent, IntImm):
            last = operators.minimum(interval.max_value, operators.subtract(extent, 1))
            length = simplify(operators.add(operators.subtract(last, start), 1))
        if not isinstance(length, IntImm) and isinstance(extent, IntImm):
            # The size of the box varies from place to place: a constant that is always enough, if there is one.
            bound = self.analyzer.const_int_bound(length).max_value
            length = operators.const(min(bound, extent.value), extent.dtype)
        return start, length

    def visit_buffer(self, node: Buffer) -> Buffer:
        return self.buffers[node][0] if node in self.buffers else node

    def visit_buffer_load(self, node: BufferLoad) -> Any:
        made = node.map_children(self.visit)
        if node.buffer not in self.buffers:
            return made
        buffer, starts = self.buffers[node.buffer]
        return BufferLoad(buffer, self._moved(made.indices, starts), node.span)

    def visit_buffer_store(self, node: BufferStore) -> Any:
        made = node.map_children(self.visit)
        if node.buffer not in self.buffers:
            return made
        buffer, starts = self.buffers[node.buffer]
        return BufferStore(buffer, made.value, self._moved(made.indices, starts), node.span)

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        made: BufferRegion = node.map_children(self.visit)
        if node.buffer not in self.buffers:
            return made
        buffer, starts = self.buffers[node.buffer]
        moved = self._moved([bound.min for bound in made.region], starts)
        ranges = [
            Range.from_min_extent(start, bound.extent)
            for start, bound in zip(moved, made.region, strict=True)
        ]
        return BufferRegion(buffer, tuple(ranges))

    def _moved(self, indices: Sequence[PrimExpr], starts: list[PrimExpr]) -> list[PrimExpr]:
        pairs = zip(indices, starts, strict=True)
        return [self.analyzer.simplify(operators.subtract(index, start)) for index, start in pairs]


@dataclass(frozen=True)
class CompactBufferAllocation(PrimFuncPass):
    """Shrinks allocated buffers to what is accessed."""

    name = "tir.CompactBufferAllocation"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if not has_blocks(function):
            return function
        survey = _Survey()
        survey.visit(function.body)
        compactor = _Compactor(survey)
        return function.with_body(compactor.visit(function.body)) if compactor.buffers else function
