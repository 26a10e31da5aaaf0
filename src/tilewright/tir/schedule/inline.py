"""Inlining blocks into their consumers, or into their producers."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith import Analyzer
from tilewright.ir.expr import PrimExpr
from tilewright.ir.functor import substitute_expr, uses_var
from tilewright.support.recursion import recursion_room
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.schedule.analysis import (
    fail,
    is_allocated,
    only_statement,
    require_stage_pipeline,
    runs_whole_domain,
    scope_of,
    why_not_complete,
    written_buffer,
)
from tilewright.tir.schedule.block_bodies import (
    LoadReplacer,
    distinct_variables,
    is_hidden,
    loads_of,
    single_store,
    with_regions,
)
from tilewright.tir.schedule.block_scope import BlockScope, StmtSRef
from tilewright.tir.schedule.state import ScheduleState, function_buffers
from tilewright.tir.stmt import NO_OP, BufferStore, Stmt


def _store_of(primitive: str, info: BlockScope, block: StmtSRef) -> BufferStore:
    """The one store that a complete block is; refuses other blocks."""
    reason = why_not_complete(info, block)
    if reason is not None:
        fail(primitive, block, f"it is not a complete block: {reason}")
    require_stage_pipeline(primitive, info, block)
    store = single_store(block.block)
    if store is None:
        fail(primitive, block, "its body is not one store of one value")
    return store


def _removable(primitive: str, state: ScheduleState, block: StmtSRef) -> Stmt:
    """The statement to take away with a block."""
    whole = only_statement(state, block)
    if whole is None:
        fail(primitive, block, "it is the only block of its scope")
    return whole


def compute_inline(state: ScheduleState, block: StmtSRef) -> None:
    """Compute an elementwise block where it is read, and take it away."""
    name = "compute_inline"
    scope = scope_of(block)
    info = state.get_block_scope(scope)
    buffer = written_buffer(name, block)
    if not is_allocated(scope, buffer):
        fail(name, block, f"{buffer.name} is an output: it must be written")
    store = _store_of(name, info, block)
    variables = distinct_variables(store.indices)
    if variables is None:
        fail(name, block, f"the indices of {buffer.name} are not distinct axes")
    others = [axis.var for axis in block.block.iter_vars if axis.var not in variables]
    if uses_var(store.value, others):
        fail(name, block, f"its value depends on axes that are not indices of {buffer.name}")
    whole = _removable(name, state, block)
    if is_hidden(scope.block.body, buffer):
        fail(name, block, f"{buffer.name} is used through a view or by its pointer")
    loops = [one.loop.loop_var for one in state.references.values() if not one.is_block]
    if uses_var(store.value, loops):
        fail(name, block, "its value uses the variable of a loop")

    def value_at(indices: Sequence[PrimExpr]) -> PrimExpr:
        return substitute_expr(store.value, dict(zip(variables, indices, strict=True)))

    # The predicate of a block and the values of its axes may read the buffer, too.
    users = [one for one in map(state.realize, info.child_blocks) if loads_of(one, buffer)]
    if sum(len(loads_of(one, buffer)) for one in users) != len(loads_of(scope.block.body, buffer)):
        fail(name, block, f"{buffer.name} is read outside of blocks, by a condition or the range of a loop")
    rewriter = LoadReplacer(buffer, value_at, function_buffers(state.function_of(block)))
    changes: dict[Stmt, Stmt] = {whole: NO_OP}
    with recursion_room():
        for user in users:
            changes[user] = rewriter.visit(user)
    state.replace_in_scope(scope, changes, rewriter.blocks, removed=[buffer])


def reverse_compute_inline(state: ScheduleState, block: StmtSRef) -> None:
    """Compute an elementwise block where what it reads is written, and take it away."""
    name = "reverse_compute_inline"
    scope = scope_of(block)
    info = state.get_block_scope(scope)
    store = _store_of(name, info, block)
    producers = info.producers(block)
    if len(producers) != 1:
        fail(name, block, f"it has {len(producers)} producers, not one")
    producer = producers[0]
    reason = why_not_complete(info, producer)
    if reason is not None:
        fail(name, block, f"its producer, {producer.label}, is not a complete block: {reason}")
    written = single_store(producer.block)
    if written is None:
        fail(name, block, f"the body of its producer, {producer.label}, is not one store of one value")
    buffer = written.buffer
    if not is_allocated(scope, buffer):
        fail(name, block, f"{buffer.name} is an output: it must be written")
    if info.consumers(producer) != [block] or is_hidden(scope.block.body, buffer):
        fail(name, block, f"it is not the only one that reads {buffer.name}")
    mapping = dict(
        zip(_read_axes(name, state, block, store, buffer.shape, written), written.indices, strict=True)
    )
    whole = _removable(name, state, block)
    value = substitute_expr(_with_loads_replaced(store, written), mapping)
    made_store = BufferStore(store.buffer, value, [substitute_expr(one, mapping) for one in store.indices])
    made = with_regions(producer.block.replace(body=made_store), function_buffers(state.function_of(block)))
    blocks = {producer.block: made}
    state.replace_in_scope(scope, {whole: NO_OP, producer.block: made}, blocks, removed=[buffer])


def _read_axes(
    name: str,
    state: ScheduleState,
    block: StmtSRef,
    store: BufferStore,
    shape: Sequence[PrimExpr],
    written: BufferStore,
) -> list[PrimExpr]:
    """The axes of the block that are the indices of all its reads; each must run over the whole buffer."""
    loads = loads_of(store, written.buffer)
    variables = distinct_variables(loads[0].indices) if loads else None
    same = variables is not None and all(
        expr_deep_equal(one, other)
        for load in loads
        for one, other in zip(load.indices, loads[0].indices, strict=True)
    )
    axes = {axis.var: axis for axis in block.block.iter_vars}
    if variables is None or not same or set(variables) != set(axes):
        fail(name, block, f"it does not read {written.buffer.name} only at its axes, each once")
    analyzer = Analyzer()
    for variable, extent in zip(variables, shape, strict=True):
        domain = axes[variable].dom
        assert domain is not None
        whole = analyzer.can_prove_equal(domain.min, 0) and analyzer.can_prove_equal(domain.extent, extent)
        if not whole or not runs_whole_domain(state, block):
            fail(name, block, f"it does not certainly read all of {written.buffer.name}")
    return list(variables)


def _with_loads_replaced(store: BufferStore, written: BufferStore) -> PrimExpr:
    """The value of a store with its reads of a buffer replaced by what is written there."""

    def value_at(_: Sequence[PrimExpr]) -> PrimExpr:
        return written.value

    with recursion_room():
        return LoadReplacer(written.buffer, value_at, {}).visit(store.value)  # type: ignore[no-any-return]
