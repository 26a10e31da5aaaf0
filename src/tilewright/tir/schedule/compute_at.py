"""``compute_at`` and ``reverse_compute_at``: moving a block under a loop of its consumer or its producer.

In each iteration of the loop, the moved block computes what is read (or what was written) in that iteration. Its new
loops have constant extents where these can be determined; what exceeds the range of an axis becomes a condition.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith import Analyzer, IntervalSet, union_sets
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import IterVar, Var, is_const
from tilewright.ir.functor import uses_var
from tilewright.tir.schedule.analysis import (
    all_loops_above,
    analyzer_for,
    fail,
    is_allocated,
    is_below,
    loops_above,
    only_statement,
    require_movable,
    require_stage_pipeline,
    scope_of,
)
from tilewright.tir.schedule.annotate import require_still_independent
from tilewright.tir.schedule.block_bodies import regions_of
from tilewright.tir.schedule.block_scope import BlockScope, StmtSRef
from tilewright.tir.schedule.nest import blocks_in, new_nest
from tilewright.tir.schedule.regions import exact_box, touched_box, writes_whole
from tilewright.tir.schedule.state import ScheduleState
from tilewright.tir.stmt import (
    NO_OP,
    ForKind,
    Stmt,
    stmt_list,
    stmt_seq,
)


def _prepared(primitive: str, state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> BlockScope:
    """The checks of both directions."""
    scope = scope_of(block)
    if scope_of(loop) is not scope:
        fail(primitive, block, f"{loop.label} is not under the same block scope")
    if is_below(block, loop):
        fail(primitive, block, f"{loop.label} is an ancestor of block {block.block.name_hint} already")
    info = state.get_block_scope(scope)
    require_stage_pipeline(primitive, info, block)
    require_movable(primitive, info, block)
    if uses_var(block.block, [one.loop.loop_var for one in loops_above(block)]):
        fail(primitive, block, "it uses the variables of the loops around it otherwise than by its axes")
    for one in (*loops_above(loop), loop):
        if one.loop.kind == ForKind.VECTORIZED:
            fail(primitive, block, f"{one.label} is vectorized: no block can be moved into lanes")
    return info


def compute_at(
    state: ScheduleState, block: StmtSRef, loop: StmtSRef, preserve_unit_loops: bool = False
) -> None:
    """Compute, in each iteration of a loop, what the blocks in it read of this block."""
    name = "compute_at"
    info = _prepared(name, state, block, loop)
    scope = scope_of(block)
    written = list(dict.fromkeys(region.buffer for region in block.block.writes))
    for buffer in written:
        if not is_allocated(scope, buffer):
            fail(name, block, f"it is an output block: all of {buffer.name} must be written")
    consumers = info.consumers(block)
    if not consumers:
        fail(name, block, "no block reads what it writes")
    for consumer in consumers:
        if not is_below(consumer, loop):
            fail(
                name,
                block,
                f"it requires all the consumers to be inside {loop.label}, and {consumer.label} is not",
            )
    analyzer = analyzer_for([*all_loops_above(loop), loop])
    wanted: dict[Var, IntervalSet] = {}
    for buffer in written:
        boxes = [
            touched_box(state, loop, one, regions_of(one.block.reads, buffer), buffer.scope())
            for one in consumers
            if regions_of(one.block.reads, buffer)
        ]
        if boxes:
            _add_wanted(analyzer, block, buffer, boxes, wanted)
    nest = new_nest(analyzer, block.block, wanted, preserve_unit_loops)
    items = stmt_list(loop.loop.body)
    inside = [blocks_in(item) for item in items]
    position = min(
        number for number, found in enumerate(inside) if any(one.block in found for one in consumers)
    )
    for producer in info.producers(block):
        if any(producer.block in found for found in inside[position:]):
            fail(
                name,
                block,
                f"its producer, {producer.label}, comes after the place where it would be computed",
            )
    _move(name, state, block, loop, items[:position], nest, items[position:])


def _add_wanted(
    analyzer: Analyzer,
    block: StmtSRef,
    buffer: Buffer,
    boxes: Sequence[Sequence[IntervalSet]],
    wanted: dict[Var, IntervalSet],
) -> None:
    """Note what each axis must run over so that these boxes of a buffer are written."""
    for region in regions_of(block.block.writes, buffer):
        for dimension, bound in enumerate(region.region):
            axis = bound.min
            if isinstance(axis, Var) and is_const(bound.extent, 1):
                sides = [box[dimension] for box in boxes] + ([wanted[axis]] if axis in wanted else [])
                wanted[axis] = union_sets(sides, analyzer)


def reverse_compute_at(
    state: ScheduleState, block: StmtSRef, loop: StmtSRef, preserve_unit_loops: bool = False
) -> None:
    """Use, in each iteration of a loop, what the blocks in it have written for this block."""
    name = "reverse_compute_at"
    info = _prepared(name, state, block, loop)
    producers = info.producers(block)
    inside_loop = [one for one in producers if is_below(one, loop)]
    if not inside_loop:
        fail(name, block, f"none of its producers is inside {loop.label}")
    order = list(state.references.values())
    for producer in producers:
        if not is_below(producer, loop) and order.index(producer) > order.index(loop):
            fail(
                name,
                block,
                f"it requires all the producers to come first, and {producer.label} is after {loop.label}",
            )
        _require_finished(name, state, block, loop, producer)
    analyzer = analyzer_for([*all_loops_above(loop), loop])
    wanted: dict[Var, IntervalSet] = {}
    for buffer in dict.fromkeys(region.buffer for region in block.block.reads):
        writers = [one for one in inside_loop if regions_of(one.block.writes, buffer)]
        if writers:
            _add_tile(name, state, block, loop, writers[-1], buffer, analyzer, wanted)
    nest = new_nest(analyzer, block.block, wanted, preserve_unit_loops)
    items = stmt_list(loop.loop.body)
    inside = [blocks_in(item) for item in items]
    position = 1 + max(
        number for number, found in enumerate(inside) if any(one.block in found for one in inside_loop)
    )
    _move(name, state, block, loop, items[:position], nest, items[position:])


def _require_finished(
    name: str, state: ScheduleState, block: StmtSRef, loop: StmtSRef, producer: StmtSRef
) -> None:
    """Refuse a loop over a reduction of the producer: only its last iteration has the whole sum."""
    variables = [one.loop.loop_var for one in (*loops_above(loop), loop)]
    values = state.realize(producer).iter_values
    for axis, value in zip(producer.block.iter_vars, values, strict=True):
        if axis.iter_type == IterVar.CommReduce and uses_var(value, variables):
            fail(
                name,
                block,
                f"the reduction of {producer.label} is not finished in one iteration of {loop.label}",
            )


def _add_tile(
    name: str,
    state: ScheduleState,
    block: StmtSRef,
    loop: StmtSRef,
    producer: StmtSRef,
    buffer: Buffer,
    analyzer: Analyzer,
    wanted: dict[Var, IntervalSet],
) -> None:
    """Note what each axis of the block runs over so that it reads just the tile of a buffer that is ready."""
    written = regions_of(producer.block.writes, buffer)
    tile = exact_box(state, loop, producer, written[0]) if len(written) == 1 else None
    if tile is None or not writes_whole(state, producer, written[0]):
        fail(
            name, block, f"it cannot be told which part of {buffer.name} an iteration of {loop.label} writes"
        )
    axes = {axis.var: axis for axis in block.block.iter_vars}
    for region in regions_of(block.block.reads, buffer):
        for side, bound, extent in zip(tile, region.region, buffer.shape, strict=True):
            last = operators.subtract(extent, 1)
            starts = analyzer.can_prove(operators.less_equal(side.min_value, 0))
            if starts and analyzer.can_prove(operators.greater_equal(side.max_value, last)):
                continue
            axis = bound.min
            plain = isinstance(axis, Var) and is_const(bound.extent, 1) and axis in axes
            if not plain or axes[axis].iter_type != IterVar.DataPar:  # type: ignore[index]
                fail(
                    name,
                    block,
                    f"it reads {buffer.name} at {bound.min}, which is not a data-parallel axis, while an iteration "
                    f"of {loop.label} writes only a part of that dimension",
                )
            assert isinstance(axis, Var)
            known = wanted.setdefault(axis, side)
            same = analyzer.can_prove_equal(known.min_value, side.min_value)
            if not (same and analyzer.can_prove_equal(known.max_value, side.max_value)):
                fail(name, block, f"its axis {axis.name} would have to run over two different tiles")


def _move(
    primitive: str,
    state: ScheduleState,
    block: StmtSRef,
    loop: StmtSRef,
    before: Sequence[Stmt],
    nest: Stmt,
    after: Sequence[Stmt],
) -> None:
    """Take the block away from where it is and put it between statements of the loop."""
    old = only_statement(state, block)
    assert old is not None
    stmt = loop.loop
    made = stmt.replace(body=stmt_seq(*before, nest, *after))
    state.replace({old: NO_OP, stmt: made})
    require_still_independent(primitive, state, loop)
