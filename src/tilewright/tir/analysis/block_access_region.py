"""The buffer regions that a block reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.int_set import IntervalSet, union_sets
from tilewright.arith.int_set_eval import eval_int_set
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, Load, PrimExpr, Range, Var
from tilewright.ir.functor import post_order
from tilewright.support.recursion import recursion_room
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import Block, BlockRealize, BufferStore, For

Box = tuple[IntervalSet, ...]


class _Accesses(StatementVisitor):
    """Collects the boxes that a block accesses, with the variables of the loops inside it relaxed over their ranges."""

    def __init__(self, block: Block, buffer_var_map: Mapping[Var, Buffer]) -> None:
        super().__init__()
        self.buffers = buffer_var_map
        self.matched = {match.buffer: match.source for match in block.match_buffers}
        self.domains: dict[Var, IntervalSet] = {}
        self.reads: dict[Buffer, Box] = {}
        self.writes: dict[Buffer, Box] = {}
        self.opaque: dict[Buffer, Box] = {}

    def visit_for(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self.domains[node.loop_var] = IntervalSet.from_range(Range.from_min_extent(node.min, node.extent))
        self.visit(node.body)
        del self.domains[node.loop_var]

    def visit_buffer_load(self, node: BufferLoad) -> None:
        self.access(self.reads, node.buffer, _single(node.indices))
        for index in node.indices:
            self.visit(index)

    def visit_buffer_store(self, node: BufferStore) -> None:
        self.access(self.writes, node.buffer, _single(node.indices))
        for index in node.indices:
            self.visit(index)
        self.visit(node.value)

    def visit_var(self, node: Var) -> None:
        buffer = self.buffers.get(node)
        if buffer is not None:
            self.add(self.opaque, buffer, list(_full(buffer).region))
        for view, source in self.matched.items():
            if view.data is node:
                self.add(self.opaque, source.buffer, list(source.region))

    def visit_block_realize(self, node: BlockRealize) -> None:
        # An inner block says itself what it accesses; its axes have the values given here.
        for value in (*node.iter_values, node.predicate):
            self.visit(value)
        axes = {axis.var: value for axis, value in zip(node.block.iter_vars, node.iter_values, strict=True)}
        for found, regions in ((self.reads, node.block.reads), (self.writes, node.block.writes)):
            for region in regions:
                self.access(found, region.buffer, [substitute(each, axes) for each in region.region])

    def access(self, found: dict[Buffer, Box], buffer: Buffer, region: list[Range]) -> None:
        """An access to a box; through another view, to its place in what the view is of."""
        source = self.matched.get(buffer)
        if source is None:
            self.add(found, buffer, region)
            return
        first = len(source.region) - len(region)
        moved = [
            Range.from_min_extent(operators.add(outer.min, inner.min), inner.extent)
            for outer, inner in zip(source.region[first:], region, strict=True)
        ]
        self.add(found, source.buffer, [*source.region[:first], *moved])

    def add(self, found: dict[Buffer, Box], buffer: Buffer, region: list[Range]) -> None:
        """Join a box, relaxed over the loops around, to what is known of its buffer."""
        if buffer.data not in self.buffers:
            return
        box = tuple([self.relaxed(each) for each in region])
        known = found.get(buffer)
        if known is not None:
            box = tuple([union_sets([one, other]) for one, other in zip(known, box, strict=True)])
        found[buffer] = box

    def relaxed(self, given: Range) -> IntervalSet:
        """The set of all values of a range while the loops run; what memory says may be anything."""
        if any(isinstance(part, (BufferLoad, Load)) for part in post_order(given.min)):
            return IntervalSet.everything()
        last = operators.subtract(operators.add(given.min, given.extent), 1)
        return union_sets([eval_int_set(given.min, self.domains), eval_int_set(last, self.domains)])


def _regions(found: dict[Buffer, Box]) -> list[BufferRegion]:
    """The boxes as ranges; a side that is not bounded is the buffer's."""
    analyzer = Analyzer()
    made: list[BufferRegion] = []
    for buffer, box in found.items():
        ranges: list[Range] = []
        for interval, extent in zip(box, buffer.shape, strict=True):
            if interval.is_bounded:
                length = operators.add(operators.subtract(interval.max_value, interval.min_value), 1)
                minimum = analyzer.simplify(interval.min_value)
                ranges.append(Range.from_min_extent(minimum, analyzer.simplify(length)))
            else:
                ranges.append(Range.from_min_extent(operators.const(0, extent.dtype), extent))
        made.append(BufferRegion(buffer, tuple(ranges)))
    return made


def _single(indices: Sequence[PrimExpr]) -> list[Range]:
    """The box of one element."""
    return [Range.from_min_extent(index, operators.const(1, index.dtype)) for index in indices]


def _full(buffer: Buffer) -> BufferRegion:
    """All of a buffer."""
    zero_based = [Range.from_min_extent(operators.const(0, extent.dtype), extent) for extent in buffer.shape]
    return BufferRegion(buffer, tuple(zero_based))


def get_block_access_region(
    block: Block, buffer_var_map: Mapping[Var, Buffer]
) -> tuple[list[BufferRegion], list[BufferRegion], list[BufferRegion]]:
    """The regions that the block reads, writes, and that opaque code in it may access, among the given buffers. A
    reduction reads what it updates.
    """
    accesses = _Accesses(block, buffer_var_map)
    with recursion_room():
        if block.init is not None:
            accesses.visit(block.init)
        accesses.visit(block.body)
    return _regions(accesses.reads), _regions(accesses.writes), _regions(accesses.opaque)


def get_block_read_write_region(
    block: Block, buffer_var_map: Mapping[Var, Buffer]
) -> tuple[list[BufferRegion], list[BufferRegion]]:
    """The regions that the block reads and writes; buffers that opaque code may access count as both, in full."""
    reads, writes, opaque = get_block_access_region(block, buffer_var_map)
    hidden = {region.buffer for region in opaque}
    return (
        [region for region in reads if region.buffer not in hidden] + opaque,
        [region for region in writes if region.buffer not in hidden] + opaque,
    )
