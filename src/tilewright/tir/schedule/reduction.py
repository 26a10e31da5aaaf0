"""``decompose_reduction``: the initialisation of a reduction as a separate block before one of its loops."""

from __future__ import annotations

from tilewright.ir.expr import IterVar, PrimExpr, Var
from tilewright.ir.functor import uses_var
from tilewright.tir.functor import substitute
from tilewright.tir.schedule.analysis import (
    fail,
    is_below,
    loops_above,
    loops_by_use,
    require_runs_once,
    scope_of,
    why_not_reduction,
)
from tilewright.tir.schedule.block_bodies import with_regions
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.nest import copied_loop
from tilewright.tir.schedule.state import ScheduleState, function_buffers
from tilewright.tir.stmt import Block, BlockRealize, Stmt, stmt_seq
from tilewright.tir.transform.lib.predicates import conjunction, conjuncts


def split_predicate(
    primitive: str, state: ScheduleState, block: StmtSRef, reduced: list[StmtSRef]
) -> tuple[list[PrimExpr], list[PrimExpr]]:
    """The conditions of a block that do not involve its reduction loops, and those that involve only them."""
    inner = [loop.loop.loop_var for loop in reduced]
    outer = [loop.loop.loop_var for loop in loops_above(block) if loop not in reduced]
    about_data: list[PrimExpr] = []
    about_reduction: list[PrimExpr] = []
    for condition in conjuncts(state.realize(block).predicate):
        if not uses_var(condition, inner):
            about_data.append(condition)
        elif uses_var(condition, outer):
            fail(
                primitive, block, f"its condition {condition} is about data axes and reduction axes together"
            )
        else:
            about_reduction.append(condition)
    return about_data, about_reduction


def decompose_reduction(state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> StmtSRef:
    """Initialise a reduction in a separate block directly before a loop; returns the new block."""
    name = "decompose_reduction"
    reason = why_not_reduction(state.get_block_scope(scope_of(block)), block)
    if reason is not None:
        fail(name, block, f"it is not a reduction: {reason}")
    above = loops_above(block)
    if loop not in above:
        fail(name, block, f"{loop.label} is not around it")
    data, reduced = loops_by_use(state, block)
    for one in reduced:
        if not is_below(one, loop):
            fail(name, block, f"{one.label}, over which it reduces, is outside {loop.label}")
        if one in data:
            fail(name, block, f"{one.label} is used by data axes and reduction axes alike")
    conditions, _ = split_predicate(name, state, block, reduced)
    inside = [one for one in above if is_below(one, loop)]
    require_runs_once(name, state, block, inside)
    copied = [
        one
        for one in inside
        if one in data or any(uses_var(condition, one.loop.loop_var) for condition in conditions)
    ]
    nest, made = _initialisation(state, block, copied, conditions)
    old = block.block
    read = {region.buffer for region in old.reads}
    reads = (*[region for region in old.writes if region.buffer not in read], *old.reads)
    updated = old.replace(init=None, name_hint=f"{old.name_hint}_update", reads=reads)
    state.replace({old: updated}, {old: updated})
    state.replace({loop.loop: stmt_seq(nest, loop.loop)})
    return state.references[made]


def _initialisation(
    state: ScheduleState, block: StmtSRef, copied: list[StmtSRef], conditions: list[PrimExpr]
) -> tuple[Stmt, Block]:
    """The initialisation of a block under copies of some of its loops, and as a block."""
    old = block.block
    variables: dict[Var, PrimExpr] = {
        one.loop.loop_var: Var(f"{one.loop.loop_var.name}_init", one.loop.loop_var.dtype) for one in copied
    }
    axes: list[IterVar] = []
    values: list[PrimExpr] = []
    renamed: dict[Var, PrimExpr] = {}
    for axis, value in zip(old.iter_vars, state.realize(block).iter_values, strict=True):
        if axis.iter_type != IterVar.CommReduce:
            fresh = Var(f"{axis.var.name}_init", axis.var.dtype)
            renamed[axis.var] = fresh
            axes.append(IterVar(axis.dom, fresh, axis.iter_type))
            values.append(substitute(value, variables))
    assert old.init is not None
    body = substitute(old.init, renamed)
    made = Block(axes, [], [], f"{old.name_hint}_init", body)
    made = with_regions(made, function_buffers(state.function_of(block)))
    predicate = conjunction([substitute(one, variables) for one in conditions])
    nest: Stmt = BlockRealize(values, predicate, made)
    for one in reversed(copied):
        nest = copied_loop(one.loop, variables, nest)
    return nest, made
