"""Turns the attribute ``prefetch_scope`` into prefetches.

The attribute names a buffer and a distance: before its body, the region that the body will read that many iterations of
the enclosing loop later is prefetched.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith import Analyzer, IntervalSet, IntSet, eval_int_set, union_sets
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import BufferLoad, PrimExpr, Range, Var
from tilewright.ir.functor import Visitor, substitute_expr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import statements_in
from tilewright.tir.stmt import AttrStmt, For, ForKind, Prefetch, Stmt, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Reads(Visitor):
    """The box of a buffer that a statement reads, whatever the loops inside it do."""

    def __init__(self, buffer: Buffer, loops: dict[Var, IntervalSet]) -> None:
        super().__init__()
        self.buffer = buffer
        self.loops = dict(loops)
        self.analyzer = Analyzer()
        self.box: list[IntervalSet] | None = None

    def visit_for(self, node: For) -> None:
        self.loops[node.loop_var] = _values(node)
        self.visit_default(node)

    def visit_buffer_load(self, node: BufferLoad) -> None:
        self.visit_default(node)
        if node.buffer is not self.buffer:
            return
        touched = [eval_int_set(index, self.loops, self.analyzer) for index in node.indices]
        if self.box is None:
            self.box = touched
        else:
            self.box = [union_sets(pair, self.analyzer) for pair in zip(self.box, touched, strict=True)]


def _values(loop: For) -> IntervalSet:
    return IntSet.interval(loop.min, operators.add(loop.min, operators.subtract(loop.extent, 1)))


class _Injector(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.loops: list[For] = []

    def visit_for(self, node: For) -> Stmt:
        self.loops.append(node)
        made: Stmt = node.map_children(self.visit)
        self.loops.pop()
        return made

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        made: AttrStmt = node.map_children(self.visit)
        if node.attr_key != "prefetch_scope":
            return made
        buffer = node.node
        if not isinstance(buffer, Buffer):
            raise LoweringError(f"prefetch_scope needs a buffer, not {type(buffer).__name__}")
        if not self.loops:
            raise LoweringError(f"the prefetch of {buffer.name} is outside every loop")
        # A vectorized loop around reads all of its elements at once.
        vectors = {loop.loop_var: _values(loop) for loop in self.loops if loop.kind == ForKind.VECTORIZED}
        reads = _Reads(buffer, vectors)
        reads.visit(node.body)
        if reads.box is None:
            return made.body
        variable = self.loops[-1].loop_var
        later: dict[Var, PrimExpr] = {
            variable: operators.add(variable, operators.cast(variable.dtype, node.value))
        }
        ranges = []
        for interval, extent in zip(reads.box, buffer.shape, strict=True):
            if not (interval.has_lower_bound and interval.has_upper_bound):
                ranges.append(Range.from_min_extent(0, extent))
                continue
            start = interval.min_value
            length = operators.add(operators.subtract(interval.max_value, start), 1)
            ranges.append(
                Range.from_min_extent(
                    substitute_expr(start, later), reads.analyzer.simplify(substitute_expr(length, later))
                )
            )
        return stmt_seq(Prefetch(buffer, ranges), made.body)


def inject_prefetch(stmt: Stmt) -> Stmt:
    """The statement with its prefetches in place; see the module's text."""
    wanted = any(
        isinstance(found, AttrStmt) and found.attr_key == "prefetch_scope" for found in statements_in(stmt)
    )
    return _Injector().visit(stmt) if wanted else stmt


@dataclass(frozen=True)
class InjectPrefetch(PrimFuncPass):
    """Puts prefetches where the schedule requests them."""

    name = "tir.InjectPrefetch"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(inject_prefetch(function.body))
