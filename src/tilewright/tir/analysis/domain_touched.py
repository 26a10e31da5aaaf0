"""The elements of a buffer that a statement touches, as a range for each dimension."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.int_set import IntervalSet, union_sets
from tilewright.arith.int_set_eval import eval_int_set
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.container import Array
from tilewright.ir.expr import BufferLoad, PrimExpr, Range, Var
from tilewright.support.recursion import recursion_room
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.stmt import AttrStmt, BufferStore, For, Stmt
from tilewright.tir.transform.lib.statement_rewriter import thread_axis


class _Touched(StatementVisitor):
    """Collects the index sets of one buffer, with the loops around each access relaxed over their ranges."""

    def __init__(self, buffer: Buffer, loads: bool, stores: bool) -> None:
        super().__init__()
        self.buffer = buffer
        self.loads = loads
        self.stores = stores
        self.domains: dict[Var, IntervalSet] = {}
        self.found: list[list[IntervalSet]] = []

    def visit_for(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self._within(node.loop_var, Range.from_min_extent(node.min, node.extent), node.body)

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        axis = thread_axis(node)
        if axis is None:
            self.visit(node.body)
        else:
            self._within(
                axis.var, Range.from_min_extent(operators.const(0, axis.var.dtype), node.value), node.body
            )

    def _within(self, variable: Var, domain: Range, body: Stmt) -> None:
        self.domains[variable] = IntervalSet.from_range(domain)
        self.visit(body)
        del self.domains[variable]

    def visit_buffer_load(self, node: BufferLoad) -> None:
        if self.loads and node.buffer is self.buffer:
            self._touch(node.indices)
        for index in node.indices:
            self.visit(index)

    def visit_buffer_store(self, node: BufferStore) -> None:
        if self.stores and node.buffer is self.buffer:
            self._touch(node.indices)
        for index in node.indices:
            self.visit(index)
        self.visit(node.value)

    def _touch(self, indices: Sequence[PrimExpr]) -> None:
        self.found.append([eval_int_set(index, self.domains) for index in indices])


def domain_touched(stmt: Stmt, buffer: Buffer, consider_loads: bool, consider_stores: bool) -> Array[Range]:
    """A range for each dimension that covers every access, those by loads, by stores or by both; none if the statement
    does not access the buffer. A side that has no bound is the buffer's."""
    touched = _Touched(buffer, consider_loads, consider_stores)
    with recursion_room():
        touched.visit(stmt)
    analyzer = Analyzer()
    ranges: list[Range] = []
    for dimension, sets in enumerate(zip(*touched.found, strict=True)):
        whole = union_sets(sets)
        if whole.is_bounded:
            length = operators.add(operators.subtract(whole.max_value, whole.min_value), 1)
            ranges.append(
                Range.from_min_extent(analyzer.simplify(whole.min_value), analyzer.simplify(length))
            )
        else:
            extent = buffer.shape[dimension]
            ranges.append(Range.from_min_extent(operators.const(0, extent.dtype), extent))
    return Array(ranges)
