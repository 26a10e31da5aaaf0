"""``rfactor``: a reduction in two steps.

The first block reduces over all loops but one and stores a partial result for each iteration of that one, which is a
data axis of it. The second block, which replaces the original one, reduces the partial results.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import (
    Add,
    BinaryOpExpr,
    BufferLoad,
    IntImm,
    IterVar,
    Max,
    Min,
    Mul,
    PrimExpr,
    Range,
    Var,
    is_const,
)
from tilewright.ir.functor import uses_var
from tilewright.tir.functor import substitute
from tilewright.tir.schedule.analysis import (
    all_loops_above,
    analyzer_for,
    fail,
    is_below,
    loops_above,
    loops_by_use,
    own_statement,
    require_runs_once,
    require_stage_pipeline,
    scope_of,
    why_not_reduction,
)
from tilewright.tir.schedule.block_bodies import new_buffer, with_regions
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.flags import flags_of
from tilewright.tir.schedule.nest import copied_loop
from tilewright.tir.schedule.reduction import split_predicate
from tilewright.tir.schedule.state import ScheduleState, function_buffers
from tilewright.tir.stmt import Block, BlockRealize, BufferStore, ForKind, IfThenElse, Stmt, stmt_seq
from tilewright.tir.transform.lib.known_reduction import accumulated_value, same_indices
from tilewright.tir.transform.lib.predicates import conjunction

_IDENTITY = {Add: 0, Mul: 1}
"""The identity element; for minimum and maximum the initial value can be used twice."""


@dataclass(frozen=True, slots=True)
class _Update:
    """``buffer[indices] = operation(buffer[indices], value)`` where ``condition`` holds."""

    operation: type[BinaryOpExpr]
    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    value: PrimExpr
    condition: PrimExpr | None
    start: PrimExpr


def rfactor(state: ScheduleState, loop: StmtSRef, factor_axis: int) -> StmtSRef:
    """Make a reduction loop a data axis of a first step of its reduction; the block of that step."""
    name = "rfactor"
    blocks = state.child_blocks(loop)
    if len(blocks) != 1:
        fail(name, loop, f"there are {len(blocks)} blocks inside it, not one")
    block = blocks[0]
    info = state.get_block_scope(scope_of(block))
    reason = why_not_reduction(info, block)
    if reason is not None:
        fail(name, loop, f"{block.label} is not a reduction: {reason}")
    require_stage_pipeline(name, info, block)
    if not flags_of(state, scope_of(block)).stage_pipeline:
        fail(name, block, "a block of its scope reads more of a buffer than the blocks before it write")
    data, reduced = loops_by_use(state, block)
    if loop not in reduced:
        if loop in data or not is_const(loop.loop.extent, 1):
            fail(name, loop, f"{block.label} does not reduce over it")
        # The variable of a loop of one iteration is not in the values of the axes any more.
        reduced = [one for one in loops_above(block) if one in reduced or one is loop]
    top = own_statement(state, block)
    for one in reduced:
        if one in data:
            fail(name, loop, f"{one.label} is used by data axes and reduction axes alike")
        if not is_below(one, top):
            fail(name, loop, f"{one.label}, over which {block.label} reduces, holds other blocks, too")
        if one.loop.kind != ForKind.SERIAL:
            fail(
                name,
                loop,
                f"the iterations of {one.label}, over which {block.label} reduces, are not in order",
            )
    if not is_const(loop.loop.min, 0) or not isinstance(loop.loop.extent, IntImm):
        fail(name, loop, "it does not run from zero over a constant length")
    chain = [one for one in loops_above(block) if is_below(one, top)]
    for outer, inner in zip(chain, [*chain[1:], block], strict=True):
        expected = inner.loop if not inner.is_block else state.realize(inner)
        if outer.loop.body is not expected:
            fail(name, loop, f"there is a statement between {outer.label} and {inner.label}")
    require_runs_once(name, state, block, chain)
    update = _update_of(name, loop, block.block)
    count = len(update.buffer.shape)
    if not -count - 1 <= factor_axis <= count:
        fail(
            name,
            loop,
            f"the new buffer has {count + 1} dimensions; {factor_axis} is the number of none of them",
        )
    position = factor_axis if factor_axis >= 0 else factor_axis + count + 1
    about_data, about_reduction = split_predicate(name, state, block, reduced)
    shape = list(update.buffer.shape)
    shape.insert(position, loop.loop.extent)
    factored = new_buffer(update.buffer, f"{update.buffer.name}_rf", shape, update.buffer.data.storage_scope)
    buffers = {**function_buffers(state.function_of(block)), factored.data: factored}
    others = [one for one in reduced if one is not loop]
    as_predicate = about_reduction if _hold_at_first(block, others, about_reduction) else []
    first, values = _first_step(
        state, block, loop, reduced, update, factored, position, [] if as_predicate else about_reduction
    )
    first = with_regions(first, buffers)
    nest: Stmt = BlockRealize(values, conjunction([*about_data, *as_predicate]), first)
    for one in reversed(chain):
        nest = one.loop.replace(body=nest)
    kept = [
        one
        for one in chain
        if one in data
        or one is loop
        or any(uses_var(condition, one.loop.loop_var) for condition in about_data)
    ]
    second, second_block = _second_step(state, block, loop, kept, update, factored, position, about_data)
    second_block = with_regions(second_block, buffers)
    second = second.replace(block=second_block)
    after = _under_copies(kept, second)
    old = top.loop if not top.is_block else state.realize(top)
    state.replace_in_scope(
        scope_of(block), {old: stmt_seq(nest, after)}, {block.block: second_block}, added=[factored]
    )
    return state.references[first]


def _update_of(name: str, loop: StmtSRef, block: Block) -> _Update:
    """How a block reduces; refuses what is not one of the known reductions."""
    body: Stmt = block.body
    condition: PrimExpr | None = None
    if isinstance(body, IfThenElse) and body.else_case is None:
        condition = body.condition
        body = body.then_case
    init = block.init
    plain = not block.match_buffers and not block.alloc_buffers
    if not (plain and isinstance(body, BufferStore) and isinstance(init, BufferStore)):
        fail(name, loop, f"block {block.name_hint} is not one store with one initialisation")
    combined = body.value
    value = accumulated_value(body)
    known = isinstance(combined, (Add, Mul, Min, Max)) and value is not None
    if not known or init.buffer is not body.buffer or not same_indices(init.indices, body.indices):
        fail(name, loop, f"block {block.name_hint} is not a sum, product, minimum or maximum")
    assert isinstance(combined, BinaryOpExpr) and value is not None
    return _Update(type(combined), body.buffer, body.indices, value, condition, init.value)


def _with(indices: tuple[PrimExpr, ...], position: int, extra: PrimExpr) -> list[PrimExpr]:
    return [*indices[:position], extra, *indices[position:]]


def _first_step(
    state: ScheduleState,
    block: StmtSRef,
    loop: StmtSRef,
    reduced: list[StmtSRef],
    update: _Update,
    factored: Buffer,
    position: int,
    conditions: list[PrimExpr],
) -> tuple[Block, list[PrimExpr]]:
    """Reduces over all loops but one: the block and the values of its axes. The loops of a reduction axis that uses
    that one are separate axes. Conditions about them go into the body, so that every result is initialised."""
    old = block.block
    pairs = list(zip(old.iter_vars, state.realize(block).iter_values, strict=True))
    apart = _apart(loop, reduced, [value for axis, value in pairs if axis in _reductions(old)], conditions)
    mapping: dict[Var, PrimExpr] = {}
    loops: dict[Var, PrimExpr] = {}
    axes: list[IterVar] = []
    values: list[PrimExpr] = []

    def split_off(one: StmtSRef, kind: int) -> None:
        fresh = Var(f"v_{one.loop.loop_var.name}", one.loop.loop_var.dtype)
        loops[one.loop.loop_var] = fresh
        axes.append(IterVar(Range.from_min_extent(one.loop.min, one.loop.extent), fresh, kind))
        values.append(one.loop.loop_var)

    split_off(loop, IterVar.DataPar)
    for axis, value in pairs:
        if axis.iter_type == IterVar.CommReduce and uses_var(value, [one.loop.loop_var for one in apart]):
            for one in reduced:
                if uses_var(value, one.loop.loop_var) and one.loop.loop_var not in loops:
                    split_off(one, IterVar.CommReduce)
            mapping[axis.var] = substitute(value, loops)
        else:
            fresh = Var(axis.var.name, axis.var.dtype)
            mapping[axis.var] = fresh
            axes.append(IterVar(axis.dom, fresh, axis.iter_type))
            values.append(value)
    for one in apart:
        if one.loop.loop_var not in loops:
            split_off(one, IterVar.CommReduce)
    at = _with(update.indices, position, loops[loop.loop.loop_var])
    at = [substitute(index, mapping) for index in at]
    value = update.operation(BufferLoad(factored, at), substitute(update.value, mapping))
    body: Stmt = BufferStore(factored, value, at)
    guards = [substitute(condition, loops) for condition in conditions]
    if update.condition is not None:
        guards.append(substitute(update.condition, mapping))
    if guards:
        body = IfThenElse(conjunction(guards), body)
    identity = _IDENTITY.get(update.operation)
    start = (
        operators.const(identity, factored.dtype)
        if identity is not None
        else substitute(update.start, mapping)
    )
    return Block(axes, [], [], f"{old.name_hint}_rf", body, BufferStore(factored, start, at)), values


def _hold_at_first(block: StmtSRef, loops: list[StmtSRef], conditions: list[PrimExpr]) -> bool:
    """True if conditions hold in the first iteration of some loops, where a reduction over them is initialised: they
    can be the predicate of its block."""
    analyzer = analyzer_for(all_loops_above(block))
    first = {one.loop.loop_var: one.loop.min for one in loops}
    return all(analyzer.can_prove(substitute(condition, first)) for condition in conditions)


def _reductions(block: Block) -> list[IterVar]:
    return [axis for axis in block.iter_vars if axis.iter_type == IterVar.CommReduce]


def _apart(
    loop: StmtSRef, reduced: list[StmtSRef], values: list[PrimExpr], conditions: list[PrimExpr]
) -> list[StmtSRef]:
    """The loops that have to be axes of their own in the first step: the one to factor, those that a condition uses,
    and those that share the value of a reduction axis with another of them."""
    found = [
        one
        for one in reduced
        if one is loop or any(uses_var(condition, one.loop.loop_var) for condition in conditions)
    ]
    while True:
        shared = [value for value in values if uses_var(value, [one.loop.loop_var for one in found])]
        more = [
            one
            for one in reduced
            if one not in found and any(uses_var(value, one.loop.loop_var) for value in shared)
        ]
        if not more:
            return found
        found += more


def _second_step(
    state: ScheduleState,
    block: StmtSRef,
    loop: StmtSRef,
    kept: list[StmtSRef],
    update: _Update,
    factored: Buffer,
    position: int,
    conditions: list[PrimExpr],
) -> tuple[BlockRealize, Block]:
    """Reduces the results of the first step, with the initial value of the original."""
    old = block.block
    last = Var(f"v_{loop.loop.loop_var.name}", loop.loop.loop_var.dtype)
    pairs = list(zip(old.iter_vars, state.realize(block).iter_values, strict=True))
    axes = [axis for axis, _ in pairs if axis.iter_type != IterVar.CommReduce]
    values = [value for axis, value in pairs if axis.iter_type != IterVar.CommReduce]
    axes.insert(0, IterVar(Range.from_min_extent(loop.loop.min, loop.loop.extent), last, IterVar.CommReduce))
    values.insert(0, loop.loop.loop_var)
    partial = BufferLoad(factored, _with(update.indices, position, last))
    value = update.operation(BufferLoad(update.buffer, update.indices), partial)
    made = old.replace(iter_vars=tuple(axes), body=BufferStore(update.buffer, value, update.indices))
    return BlockRealize(values, conjunction(conditions), made), made


def _under_copies(kept: list[StmtSRef], realize: BlockRealize) -> Stmt:
    """A block under copies of loops, with fresh variables."""
    variables: dict[Var, PrimExpr] = {
        one.loop.loop_var: Var(one.loop.loop_var.name, one.loop.loop_var.dtype) for one in kept
    }
    made: Stmt = realize.replace(
        iter_values=tuple([substitute(value, variables) for value in realize.iter_values]),
        predicate=substitute(realize.predicate, variables),
    )
    for one in reversed(kept):
        made = copied_loop(one.loop, variables, made)
    return made
