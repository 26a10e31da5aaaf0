"""Distributes memory of scope "warp" over the registers of a warp's threads.

A warp buffer of ``n`` elements becomes ``n / width`` registers in each of ``width`` threads. Threads write their own
elements: the index of each store must be ``m * threadIdx.x + rest``. So element ``i`` is in lane ``i % (m * width) /
m``, and a thread reads another thread's element by a shuffle.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, IterVar, Load, PrimExpr, Ramp, Range, Var
from tilewright.ir.functor import post_order, substitute_expr, uses_var
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import LoweringError
from tilewright.target.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, For, Stmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Spread(ScopedMutator):
    """Rewrites the body of one warp allocation."""

    def __init__(
        self, buffer: Var, lane: Var, width: int, warp_size: int, per_lane: int, analyzer: Analyzer
    ) -> None:
        super().__init__()
        self.buffer, self.lane, self.width, self.warp_size, self.per_lane = (
            buffer,
            lane,
            width,
            warp_size,
            per_lane,
        )
        self.analyzer = analyzer
        element = buffer.element_type
        assert element is not None
        self.local = Var(buffer.name, PointerType(PrimType(element), "local"))

    def visit_for(self, node: For) -> Stmt:
        self.analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent))
        return node.map_children(self.visit)

    def visit_store(self, node: Store) -> Stmt:
        made: Store = node.map_children(self.visit)
        if node.buffer_var is not self.buffer:
            return made
        place, _ = self._split(made.index)
        return Store(self.local, made.value, place, made.predicate, node.span)

    def visit_load(self, node: Load) -> PrimExpr:
        made: Load = node.map_children(self.visit)
        if node.buffer_var is not self.buffer:
            return made
        place, lane = self._split(made.index)
        value = Load(node.dtype, self.local, place, made.predicate, node.span)
        if self.analyzer.can_prove(operators.equal(lane, self.lane)):
            return value
        if uses_var(place, self.lane):
            raise LoweringError(
                f"warp memory {self.buffer.name} is read at {made.index}: which element a lane gives must not depend "
                "on the thread that reads"
            )
        mask = operators.call("tvm_warp_activemask", "uint32", [])
        return operators.call("tvm_warp_shuffle", node.dtype, [mask, value, lane, self.width, self.warp_size])

    def visit_var(self, node: Var) -> PrimExpr:
        return self.local if node is self.buffer else node

    def _split(self, index: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """The register, and the lane, in which an element lies."""
        if isinstance(index, Ramp):
            place, lane = self._split(index.base)
            within = self.analyzer.simplify(operators.floormod(index.base, self.per_lane))
            fits = isinstance(index.stride, IntImm) and index.stride.value == 1
            if not fits or not self.analyzer.can_prove(within + index.lanes <= self.per_lane):
                raise LoweringError(
                    f"a vector access to warp memory {self.buffer.name} crosses lanes: {index}"
                )
            return Ramp(place, index.stride, index.lanes), lane
        row = operators.const(self.per_lane * self.width, index.dtype)
        within, above = operators.floormod(index, row), operators.floordiv(index, row)
        place = operators.add(
            operators.multiply(above, self.per_lane), operators.floormod(within, self.per_lane)
        )
        return self.analyzer.simplify(place), self.analyzer.simplify(
            operators.floordiv(within, self.per_lane)
        )


class _Lower(StmtMutator):
    def __init__(self, warp_size: int) -> None:
        super().__init__()
        self.warp_size = warp_size
        self.lane: tuple[Var, PrimExpr] | None = None
        self.analyzer = Analyzer()

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "thread_extent" and isinstance(node.node, IterVar):
            zero = operators.const(0, node.value.dtype)
            self.analyzer.bind(node.node.var, Range.from_min_extent(zero, node.value))
            if node.node.thread_tag == "threadIdx.x":
                self.lane = node.node.var, node.value
        return node.map_children(self.visit)

    def visit_allocate(self, node: Allocate) -> Stmt:
        made: Allocate = node.map_children(self.visit)
        if node.buffer_var.storage_scope != "warp":
            return made
        if self.lane is None:
            raise LoweringError(f"warp memory {node.buffer_var.name} is used outside threadIdx.x")
        lane, extent = self.lane
        width = extent.value if isinstance(extent, IntImm) else 0
        if width < 1 or self.warp_size % width:
            raise LoweringError(
                f"warp memory needs a threadIdx.x that divides the warp of {self.warp_size}, not {extent}"
            )
        per_lane = self._per_lane(made.body, node.buffer_var, lane)
        size = made.constant_size()
        if size is None or size % (per_lane * width):
            raise LoweringError(
                f"{made.extents} elements of {node.buffer_var.name} do not spread over {width} lanes"
            )
        spread = _Spread(node.buffer_var, lane, width, self.warp_size, per_lane, self.analyzer)
        body = spread.visit(made.body)
        return Allocate(
            spread.local, node.dtype, [size // width], made.condition, body, made.annotations, node.span
        )

    def _per_lane(self, body: Stmt, buffer: Var, lane: Var) -> int:
        """The factor of the thread index in every store: how many neighbours one thread holds."""
        factors: set[int] = set()
        for stmt in post_order(body):
            if isinstance(stmt, Store) and stmt.buffer_var is buffer:
                index = stmt.index.base if isinstance(stmt.index, Ramp) else stmt.index
                next_lane = substitute_expr(index, {lane: operators.add(lane, 1)})
                step = self.analyzer.simplify(operators.subtract(next_lane, index))
                factors.add(step.value if isinstance(step, IntImm) else 0)
        if len(factors) != 1 or min(factors) < 1:
            raise LoweringError(
                f"threads do not write their own elements of warp memory {buffer.name}: steps {factors}"
            )
        return factors.pop()


@dataclass(frozen=True)
class LowerWarpMemory(PrimFuncPass):
    """Turn warp memory into registers and shuffles."""

    name = "tir.LowerWarpMemory"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        target = function.attrs.get("target")
        warp_size = int(target.attrs.get("thread_warp_size", 32)) if isinstance(target, Target) else 32
        return function.with_body(_Lower(warp_size).visit(function.body))
