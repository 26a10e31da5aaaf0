"""The buffer regions that blocks access while the loops inside some place run, and whether one covers another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tilewright.arith import Analyzer, IntervalSet, estimate_region_lower_bound, eval_int_set, union_sets
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import IterVar, PrimExpr, Range, Var
from tilewright.ir.functor import post_order, substitute_expr, uses_var
from tilewright.tir.schedule.analysis import (
    all_loops_above,
    analyzer_for,
    fail,
    is_below,
    loop_ranges,
    loops_above,
    loops_between,
    scope_of,
)
from tilewright.tir.schedule.block_scope import BlockScope, DepKind, StmtSRef
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, Stmt, While
from tilewright.tir.storage_rank import StorageRank, is_shared_by, storage_rank
from tilewright.tir.transform.lib.predicates import conjuncts

if TYPE_CHECKING:
    from tilewright.tir.schedule.state import ScheduleState

Box = list[IntervalSet]


def bound_region(realize: BlockRealize, region: BufferRegion) -> list[Range]:
    """A region of a block in terms of the loops around the block."""
    values = {
        axis.var: value for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
    }
    return [
        Range.from_min_extent(substitute_expr(one.min, values), substitute_expr(one.extent, values))
        for one in region.region
    ]


def touched_box(
    state: ScheduleState,
    place: StmtSRef,
    block: StmtSRef,
    regions: Sequence[BufferRegion],
    scope: str = "local",
) -> Box:
    """A box around everything that these regions of a block access in one iteration of ``place``, a loop or block; for
    memory that threads share, by all of them."""
    above = all_loops_above(block)
    analyzer = analyzer_for(above)
    loops = loops_between(place, block)
    loops += [one for one in above if one not in loops and is_shared(one, scope)]
    domains = {variable: IntervalSet.from_range(values) for variable, values in loop_ranges(loops).items()}
    realize = state.realize(block)
    sides: list[list[IntervalSet]] = []
    for region in regions:
        for dimension, bound in enumerate(bound_region(realize, region)):
            last = operators.subtract(operators.add(bound.min, bound.extent), 1)
            low, high = eval_int_set(bound.min, domains, analyzer), eval_int_set(last, domains, analyzer)
            if len(sides) <= dimension:
                sides.append([])
            sides[dimension].append(union_sets([low, high], analyzer))
    return [union_sets(side, analyzer) for side in sides]


def is_shared(loop: StmtSRef, scope: str) -> bool:
    """True for a loop over threads that share memory of this scope; all of a device's threads share global memory, but
    what is allocated in a kernel is each thread's own."""
    binding = loop.loop.thread_binding
    rank = storage_rank(scope)
    shareable = rank in (StorageRank.SHARED, StorageRank.WARP)
    return binding is not None and shareable and is_shared_by(rank, binding.thread_tag)


def certain_box(
    state: ScheduleState, place: StmtSRef, block: StmtSRef, region: BufferRegion, as_declared: bool = False
) -> tuple[list[IntervalSet], list[Range | None]] | None:
    """A box every element of which the block writes in one iteration of ``place``, except for what is outside of
    the ranges given with it; None if there is no such region. ``as_declared`` takes it that one run of the block writes
    all of its region, whatever its body looks like, and that the threads that share the buffer write together."""
    if not as_declared and not _writes_all(state, block, region):
        return None
    realize = state.realize(block)
    below = loops_between(place, block)
    if as_declared:
        scope = region.buffer.scope()
        below += [one for one in all_loops_above(block) if one not in below and is_shared(one, scope)]
    box = estimate_region_lower_bound(bound_region(realize, region), loop_ranges(below))
    if box is None:
        return None
    limits: list[Range | None] = [None] * len(region.region)
    if not conjuncts(realize.predicate):
        return box, limits
    if not predicate_is_domain(state, block):
        return None
    domains = {axis.var: axis.dom for axis in block.block.iter_vars}
    for dimension, bound in enumerate(region.region):
        if uses_var(bound.min, list(domains)):
            if not isinstance(bound.min, Var):
                return None
            limits[dimension] = domains[bound.min]
    return box, limits


def _stores_always(block: Block) -> bool:
    """True if every run of a block writes the whole of its regions: no condition or loop is inside."""
    first = block.body if block.init is None else block.init
    return not any(isinstance(one, (IfThenElse, While, For, Block)) for one in post_order(first))


def is_straight(block: Block) -> bool:
    """True if every run of a block runs all that is directly in it: no condition is around the blocks inside."""
    waiting: list[Stmt] = [block.body]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (IfThenElse, While)):
            return False
        if not isinstance(one, BlockRealize):
            waiting += [child for child in one.children() if isinstance(child, Stmt)]
    return True


def _writes_all(state: ScheduleState, block: StmtSRef, region: BufferRegion) -> bool:
    """True if every run of a block writes the whole of a region: by itself, or by the one block inside that does."""
    if _stores_always(block.block):
        return True
    if block.block.init is not None or not is_straight(block.block):
        return False
    written = [
        (one, part)
        for one in state.child_blocks(block)
        for part in one.block.writes
        if part.buffer is region.buffer
    ]
    box = exact_box(state, block, *written[0]) if len(written) == 1 else None
    if box is None:
        return False
    analyzer = analyzer_for(all_loops_above(block))
    return all(
        analyzer.can_prove_equal(side.min_value, bound.min)
        and analyzer.can_prove_equal(operators.add(side.max_value, 1), operators.add(bound.min, bound.extent))
        for side, bound in zip(box, region.region, strict=True)
    )


def exact_box(state: ScheduleState, place: StmtSRef, block: StmtSRef, region: BufferRegion) -> Box | None:
    """The box that a block writes in one iteration of ``place``, all of it and nothing else, but for what is outside
    of the buffer; None if that cannot be shown."""
    found = certain_box(state, place, block, region)
    if found is None:
        return None
    touched = touched_box(state, place, block, [region])
    analyzer = analyzer_for(around(place))
    for certain, possible, limit, extent in zip(
        found[0], touched, found[1], region.buffer.shape, strict=True
    ):
        exact = possible.is_bounded and analyzer.can_prove_equal(certain.min_value, possible.min_value)
        if not (exact and analyzer.can_prove_equal(certain.max_value, possible.max_value)):
            return None
        if limit is not None and not (
            analyzer.can_prove_equal(limit.min, 0) and analyzer.can_prove_equal(limit.extent, extent)
        ):
            return None
    return found[0]


def writes_whole(state: ScheduleState, block: StmtSRef, region: BufferRegion) -> bool:
    """True if a block certainly writes every element of a buffer while its scope runs once."""
    found = certain_box(state, scope_of(block), block, region)
    zero = [operators.const(0, extent.dtype) for extent in region.buffer.shape]
    whole = [
        IntervalSet(start, operators.subtract(extent, 1))
        for start, extent in zip(zero, region.buffer.shape, strict=True)
    ]
    return found is not None and contains(Analyzer(), region.buffer, whole, *found)


def predicate_is_domain(state: ScheduleState, block: StmtSRef) -> bool:
    """True if the predicate of a block fails only where an axis would leave its range."""
    realize = state.realize(block)
    analyzer = analyzer_for(all_loops_above(block))
    with ExitStack() as stack:
        for condition in domain_conditions(block.block.iter_vars, realize.iter_values):
            stack.enter_context(analyzer.constraint_scope(condition))
        return all(analyzer.can_prove(condition) for condition in conjuncts(realize.predicate))


def domain_conditions(axes: Sequence[IterVar], values: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The condition that these values are in the ranges of their axes."""
    made: list[PrimExpr] = []
    for axis, value in zip(axes, values, strict=True):
        assert axis.dom is not None
        made.append(operators.greater_equal(value, axis.dom.min))
        made.append(operators.less(value, operators.add(axis.dom.min, axis.dom.extent)))
    return made


def covers(
    state: ScheduleState,
    place: StmtSRef,
    writer: StmtSRef,
    reader: StmtSRef,
    buffer: Buffer,
    *,
    writes: bool = False,
) -> bool:
    """True if all that ``reader`` reads (or writes) of a buffer in one iteration of ``place`` is certainly written by
    ``writer`` in that iteration."""
    source = reader.block.writes if writes else reader.block.reads
    wanted = touched_box(state, place, reader, [one for one in source if one.buffer is buffer])
    analyzer = analyzer_for(around(place))
    for region in writer.block.writes:
        if region.buffer is not buffer:
            continue
        found = certain_box(state, place, writer, region)
        if found is not None and contains(analyzer, buffer, wanted, *found):
            return True
    return False


def around(place: StmtSRef) -> list[StmtSRef]:
    """The loops around a place, itself among them if it is one."""
    return all_loops_above(place) + ([] if place.is_block else [place])


def contains(analyzer: Analyzer, buffer: Buffer, wanted: Box, given: Box, limits: list[Range | None]) -> bool:
    """True if a box with limits contains another within the bounds of the buffer."""
    for need, have, limit, extent in zip(wanted, given, limits, buffer.shape, strict=True):
        lowest = [operators.const(0, extent.dtype), *([need.min_value] if need.has_lower_bound else [])]
        highest = [operators.subtract(extent, 1), *([need.max_value] if need.has_upper_bound else [])]
        starts, ends = [have.min_value], [have.max_value]
        if limit is not None:
            starts.append(limit.min)
            ends.append(operators.subtract(operators.add(limit.min, limit.extent), 1))
        for start in starts:
            if not any(analyzer.can_prove(operators.less_equal(start, low)) for low in lowest):
                return False
        for end in ends:
            if not any(analyzer.can_prove(operators.greater_equal(end, high)) for high in highest):
                return False
    return True


def require_no_flow_between_iterations(primitive: str, state: ScheduleState, loop: StmtSRef) -> None:
    """Refuse a loop unless every block in it certainly finds what it reads in the same iteration."""
    inside = state.child_blocks(loop)
    loops = [*loops_above(loop), loop]
    for one in BlockScope(inside).dependencies:
        if one.kind == DepKind.WAR:
            fail(primitive, loop, f"{one.dst.label} writes a buffer that {one.src.label} reads before")
        writes = one.kind == DepKind.WAW
        touched = one.dst.block.writes if writes else one.dst.block.reads
        written = {region.buffer for region in one.src.block.writes}
        for buffer in dict.fromkeys(region.buffer for region in touched if region.buffer in written):
            both = covers(state, loop, one.src, one.dst, buffer, writes=writes)
            if writes:
                both = both and covers(state, loop, one.dst, one.src, buffer, writes=True)
            if not both:
                fail(
                    primitive,
                    loop,
                    f"it cannot be shown that {one.dst.label} uses of {buffer.name} only what {one.src.label} "
                    "writes in the same iteration",
                )
        if one.kind == DepKind.RAW:
            _require_finished(primitive, state, loop, loops, one.src, one.dst)


def _require_finished(
    primitive: str, state: ScheduleState, loop: StmtSRef, loops: list[StmtSRef], src: StmtSRef, dst: StmtSRef
) -> None:
    """Reject a reduction that continues over iterations while another block reads it."""
    realize = state.realize(src)
    variables = [one.loop.loop_var for one in loops if is_below(src, one) and is_below(dst, one)]
    for axis, value in zip(src.block.iter_vars, realize.iter_values, strict=True):
        if axis.iter_type == IterVar.CommReduce and uses_var(value, variables):
            fail(primitive, loop, f"{dst.label} reads the reduction of {src.label} before it is finished")
