"""Blocks under new loops."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith import Analyzer, IntervalSet
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, Range, Var, is_const
from tilewright.tir.functor import substitute
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.state import ScheduleState
from tilewright.tir.stmt import Block, BlockRealize, For, ForKind, Stmt, stmt_list, stmt_seq
from tilewright.tir.transform.lib.predicates import conjunction

Wanted = Mapping[Var, IntervalSet]
"""For axes that need not run over all of their range: what they need to."""

_LARGE = 2**31 - 1


def new_nest(analyzer: Analyzer, block: Block, wanted: Wanted, preserve_unit_loops: bool) -> Stmt:
    """The block under new loops, one for each axis, that run over what is wanted."""
    values: list[PrimExpr] = []
    loops: list[tuple[Var, PrimExpr]] = []
    guards: list[PrimExpr] = []
    for axis in block.iter_vars:
        domain = axis.dom
        assert domain is not None
        start, extent, clipped = _axis_range(analyzer, domain, wanted.get(axis.var))
        if is_const(extent, 1) and not preserve_unit_loops:
            value = start
        else:
            variable = Var(f"ax{len(loops)}", axis.var.dtype)
            loops.append((variable, extent))
            analyzer.bind(variable, Range.from_min_extent(operators.const(0, variable.dtype), extent))
            value = operators.add(start, variable)
        values.append(value)
        if clipped:
            end = operators.add(domain.min, domain.extent)
            limits = (operators.greater_equal(value, domain.min), operators.less(value, end))
            guards += [analyzer.simplify(one) for one in limits if not analyzer.can_prove(one)]
    made: Stmt = BlockRealize(values, conjunction(guards), block)
    for variable, extent in reversed(loops):
        made = For(variable, 0, extent, ForKind.SERIAL, made)
    return made


def _axis_range(
    analyzer: Analyzer, domain: Range, wanted: IntervalSet | None
) -> tuple[PrimExpr, PrimExpr, bool]:
    """Where an axis starts and how far it runs; True if that may reach beyond its domain."""
    if wanted is None or not wanted.is_bounded:
        return domain.min, domain.extent, False
    start = analyzer.simplify(wanted.min_value)
    extent = analyzer.simplify(operators.add(operators.subtract(wanted.max_value, start), 1))
    if not isinstance(extent, IntImm):
        # The length varies from iteration to iteration: a constant that is always enough.
        bound = analyzer.const_int_bound(extent).max_value
        if not 0 < bound < _LARGE:
            return domain.min, domain.extent, False
        extent = operators.const(bound, domain.extent.dtype)
    if analyzer.can_prove(operators.less_equal(extent, 0)) or analyzer.can_prove(
        operators.greater_equal(extent, domain.extent)
    ):
        return domain.min, domain.extent, False
    return start, extent, True


def blocks_in(stmt: Stmt) -> set[Block]:
    """The blocks below a statement with no other block between."""
    found: set[Block] = set()
    stack: list[Stmt] = [stmt]
    while stack:
        one = stack.pop()
        if isinstance(one, BlockRealize):
            found.add(one.block)
        else:
            stack.extend(child for child in one.children() if isinstance(child, Stmt))
    return found


def insert(state: ScheduleState, place: StmtSRef, position: int, made: Stmt) -> None:
    """Put a statement among those of a loop or block."""
    stmt = place.stmt
    assert stmt is not None
    items = stmt_list(stmt.body)
    new = stmt.replace(body=stmt_seq(*items[:position], made, *items[position:]))
    blocks = {stmt: new} if isinstance(stmt, Block) and isinstance(new, Block) else {}
    state.replace({stmt: new}, blocks)


def copied_loop(loop: For, variables: Mapping[Var, PrimExpr], body: Stmt) -> For:
    """A loop like another around another body, with variables replaced; the loop's own among them."""
    variable = variables[loop.loop_var]
    assert isinstance(variable, Var)
    return For(
        variable,
        substitute(loop.min, variables),
        substitute(loop.extent, variables),
        loop.kind,
        body,
        loop.thread_binding,
        loop.annotations,
    )
