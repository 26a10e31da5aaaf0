"""Splitting, fusing and reordering loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, Range, Var, is_const
from tilewright.ir.functor import uses_var
from tilewright.support.recursion import recursion_room
from tilewright.tir.schedule import regions
from tilewright.tir.schedule.analysis import (
    all_loops_above,
    analyzer_for,
    bindings,
    fail,
    is_below,
    loops_above,
    loops_by_use,
    require_runs_once,
)
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.state import ScheduleState, TrackingSubstitute
from tilewright.tir.stmt import Block, BlockRealize, BufferStore, Evaluate, For, ForKind, Stmt
from tilewright.tir.transform.lib.predicates import conjunction, conjuncts


class _Rebind(TrackingSubstitute):
    """Gives loop variables new values, adds conditions to the blocks below and simplifies their bindings.

    ``guards`` must hold wherever the new values are used; they become part of the blocks' predicates."""

    def __init__(
        self,
        mapping: Mapping[Var, PrimExpr],
        guards: Sequence[PrimExpr],
        analyzer: Analyzer,
        blocks: dict[Block, Block],
    ) -> None:
        super().__init__(mapping, blocks)
        self.guards = guards
        self.analyzer = analyzer

    def visit_for(self, node: For) -> Any:
        made_range = Range.from_min_extent(self.visit(node.min), self.visit(node.extent))
        self.analyzer.bind(node.loop_var, made_range, allow_override=True)
        return node.map_children(self.visit)

    def visit_block_realize(self, node: BlockRealize) -> Any:
        values = [self.analyzer.simplify(self.visit(value)) for value in node.iter_values]
        conditions = [self.visit(condition) for condition in conjuncts(node.predicate)]
        conditions = [self.analyzer.simplify(one) for one in (*conditions, *self.guards)]
        return BlockRealize(values, conjunction(conditions), self.visit(node.block), node.span)


def rebind(
    body: Stmt,
    mapping: Mapping[Var, PrimExpr],
    guards: Sequence[PrimExpr],
    analyzer: Analyzer,
    blocks: dict[Block, Block],
) -> Stmt:
    """The body of a loop under other loops: see ``_Rebind``."""
    with recursion_room():
        return _Rebind(mapping, guards, analyzer, blocks).visit(body)  # type: ignore[no-any-return]


def _require_plain(primitive: str, loop: StmtSRef) -> None:
    """Refuse a loop that is more than a serial loop from zero."""
    stmt = loop.loop
    if stmt.kind != ForKind.SERIAL:
        kind = stmt.kind.name.lower().replace("_", " ")
        fail(
            primitive,
            loop,
            f"the loop is {kind} already: cut, join and order loops before saying how they run",
        )
    if stmt.annotations:
        fail(primitive, loop, f"the loop has annotations ({', '.join(stmt.annotations)})")
    if not is_const(stmt.min, 0):
        fail(primitive, loop, f"the loop starts at {stmt.min}, not at zero")


def _has_bare_statements(body: Stmt) -> bool:
    """True if something below a loop is done outside all blocks."""
    stack: list[Any] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, (BufferStore, Evaluate)) and not (
            isinstance(node, Evaluate) and isinstance(node.value, IntImm)
        ):
            return True
        if not isinstance(node, BlockRealize):
            stack.extend(child for child in node.children() if isinstance(child, Stmt))
    return False


def split(state: ScheduleState, loop: StmtSRef, factors: Sequence[PrimExpr | int | None]) -> list[StmtSRef]:
    """Make several loops of one, outermost first; a factor that is None is as large as it must be."""
    _require_plain("split", loop)
    stmt = loop.loop
    if not factors:
        fail("split", loop, "no factors are given")
    if sum(factor is None for factor in factors) > 1:
        fail("split", loop, "more than one factor is None: only one can be found from the others")
    dtype = stmt.loop_var.dtype
    analyzer = analyzer_for(all_loops_above(loop))
    extents: list[PrimExpr] = []
    for factor in factors:
        if factor is None:
            continue
        if isinstance(factor, bool) or not isinstance(factor, (int, PrimExpr)):
            fail("split", loop, f"the factor {factor!r} is not an integer")
        value = operators.cast(dtype, factor)
        if not isinstance(value, IntImm):
            fail("split", loop, f"the factor {factor} is not a constant")
        if value.value <= 0:
            fail("split", loop, f"the factor {value.value} is not positive")
        extents.append(value)
    product: PrimExpr = operators.const(1, dtype)
    for extent in extents:
        product = operators.multiply(product, extent)
    if None in factors:
        position = list(factors).index(None)
        rest = operators.floordiv(operators.add(stmt.extent, operators.subtract(product, 1)), product)
        extents.insert(position, analyzer.simplify(rest))
    elif not analyzer.can_prove(operators.greater_equal(product, stmt.extent)):
        fail("split", loop, f"the product of the factors, {product}, is less than the extent, {stmt.extent}")
    variables = [Var(f"{stmt.loop_var.name}_{number}", dtype) for number in range(len(extents))]
    value = operators.const(0, dtype)
    for variable, extent in zip(variables, extents, strict=True):
        analyzer.bind(variable, Range.from_min_extent(operators.const(0, dtype), extent))
        value = operators.add(operators.multiply(value, extent), variable)
    guard = operators.less(value, stmt.extent)
    guards = [] if analyzer.can_prove(guard) else [guard]
    if guards and _has_bare_statements(stmt.body):
        fail(
            "split",
            loop,
            "the factors do not divide the extent, and there are statements outside blocks below it",
        )
    blocks: dict[Block, Block] = {}
    body = rebind(stmt.body, {stmt.loop_var: value}, guards, analyzer, blocks)
    for variable, extent in zip(reversed(variables), reversed(extents), strict=True):
        body = For(variable, 0, extent, ForKind.SERIAL, body)
    state.replace({stmt: body}, blocks)
    return _loops_of(state, variables)


def _loops_of(state: ScheduleState, variables: Sequence[Var]) -> list[StmtSRef]:
    found = {stmt.loop_var: one for stmt, one in state.references.items() if isinstance(stmt, For)}
    return [found[variable] for variable in variables]


def fuse(state: ScheduleState, loops: Sequence[StmtSRef]) -> StmtSRef:
    """Make one loop of nested ones, which are given outermost first."""
    for loop in loops:
        _require_plain("fuse", loop)
    for outer, inner in pairwise(loops):
        if outer.loop.body is not inner.stmt:
            fail("fuse", inner, f"it is not the only statement directly inside {outer.label}", [outer, inner])
        if any(uses_var(inner.loop.extent, one.loop.loop_var) for one in loops):
            fail("fuse", inner, "its extent depends on a loop that it is to be fused with")
    first, last = loops[0].loop, loops[-1].loop
    dtype = first.loop_var.dtype
    extent: PrimExpr = operators.const(1, dtype)
    for loop in loops:
        extent = operators.multiply(extent, operators.cast(dtype, loop.loop.extent))
    analyzer = analyzer_for(all_loops_above(loops[0]))
    extent = analyzer.simplify(extent)
    fused = Var("_".join(loop.loop.loop_var.name for loop in loops) + "_fused", dtype)
    analyzer.bind(fused, Range.from_min_extent(operators.const(0, dtype), extent))
    mapping: dict[Var, PrimExpr] = {}
    inside: PrimExpr = operators.const(1, dtype)
    for number in range(len(loops) - 1, -1, -1):
        stmt = loops[number].loop
        own_extent = operators.cast(dtype, stmt.extent)
        value = operators.floordiv(fused, inside)
        if number:
            value = operators.floormod(value, own_extent)
        mapping[stmt.loop_var] = operators.cast(stmt.loop_var.dtype, analyzer.simplify(value))
        inside = analyzer.simplify(operators.multiply(inside, own_extent))
    blocks: dict[Block, Block] = {}
    body = rebind(last.body, mapping, [], analyzer, blocks)
    state.replace({first: For(fused, 0, extent, ForKind.SERIAL, body)}, blocks)
    return _loops_of(state, [fused])[0]


def reorder(state: ScheduleState, loops: Sequence[StmtSRef]) -> None:
    """Put loops of one nest into the given order; loops between them that are not named stay where they are."""
    for number, loop in enumerate(loops):
        if any(loop is other for other in loops[:number]):
            fail("reorder", loop, "the loop is given twice")
    bottom = max(loops, key=lambda loop: len(loops_above(loop)))
    chain = [*loops_above(bottom), bottom]
    for loop in loops:
        if not any(loop is one for one in chain):
            fail("reorder", loop, f"it is not in one nest with {bottom.label}")
    top = min(chain.index(loop) for loop in loops)
    chain = chain[top:]
    for outer, inner in pairwise(chain):
        if outer.loop.body is not inner.stmt:
            fail(
                "reorder",
                inner,
                f"it is not the only statement directly inside {outer.label}",
                [outer, inner],
            )
    _require_order_free(state, chain)
    wanted = iter(loops)
    order = [next(wanted) if any(one is loop for loop in loops) else one for one in chain]
    for position, loop in enumerate(order):
        for inner in order[position:]:
            if uses_var(loop.loop.extent, inner.loop.loop_var) or uses_var(
                loop.loop.min, inner.loop.loop_var
            ):
                fail(
                    "reorder",
                    loop,
                    f"its range depends on {inner.label}, which would then be inside it",
                )
    body = bottom.loop.body
    for loop in reversed(order):
        body = loop.loop.replace(body=body)
    state.replace({chain[0].loop: body})


def _require_order_free(state: ScheduleState, chain: list[StmtSRef]) -> None:
    """Refuse loops whose iterations must run in their order."""
    for block in state.child_blocks(chain[-1]):
        for axis in block.block.iter_vars:
            if axis.iter_type not in (IterVar.DataPar, IterVar.CommReduce):
                fail("reorder", block, f"its axis {axis.var.name} is neither data-parallel nor a reduction")
        data, reduced = loops_by_use(state, block)
        for loop in reduced:
            # The initialisation runs where the reduction axes are at their start: that must stay the first iteration.
            if block.block.init is not None and loop in data and loop in chain:
                fail("reorder", loop, f"it is used by data axes and reduction axes of {block.label} alike")
        if reduced:
            require_runs_once("reorder", state, block, chain)
        else:
            found = bindings(state, block, guarded=False) or bindings(state, block)
            if found is None:
                fail("reorder", block, "the values of its axes are not an affine map of the loops")
            if any(total.args and not is_const(total.args[-1].scale, 1) for total in found):
                fail("reorder", block, "the values of an axis leave out some of its domain")
        if not block.block.iter_vars and any(
            uses_var(block.block.body, loop.loop.loop_var) for loop in chain if is_below(block, loop)
        ):
            fail("reorder", block, "it has no axes, but uses the variables of the loops")
    if _has_bare_statements(chain[-1].loop.body):
        fail("reorder", chain[-1], "there are statements outside blocks below it")
    regions.require_no_flow_between_iterations("reorder", state, chain[-1])
