"""The legality checks of the scheduling primitives.

A block is *complete* if its axes are all data-parallel, it is the only writer of its buffers in its scope, and it reads
none of them: its instances may run in any order, and repeatedly. It is a *reduction* if it has an initialisation, its
axes are data-parallel or reductions, it is the only writer of its buffers, and no written element depends on a
reduction axis. A scope is a *stage pipeline* if no block writes what an earlier one reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from tilewright.arith import Analyzer, detect_iter_map
from tilewright.arith.iter_map import IterSumExpr
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, Range, Var
from tilewright.ir.functor import uses_var
from tilewright.support.errors import ScheduleError
from tilewright.support.span import Span, user_span
from tilewright.tir.schedule.block_scope import BlockScope, DepKind, StmtSRef
from tilewright.tir.stmt import For, Stmt

if TYPE_CHECKING:
    from tilewright.tir.schedule.state import ScheduleState


class RefusedStep(ScheduleError):
    """A step that is illegal at some loops and blocks, which a message with the whole program marks. ``brief`` is for
    messages without the program, where that is another text."""

    def __init__(
        self, message: str, statements: Sequence[StmtSRef], *, brief: str = "", span: Span | None = None
    ) -> None:
        super().__init__(message, span=span)
        self.statements = [one.stmt for one in statements if one.stmt is not None]
        self.brief = brief or message


def fail(primitive: str, reference: StmtSRef, reason: str, shown: Sequence[StmtSRef] = ()) -> NoReturn:
    """Refuse a step; ``shown`` are the statements to mark, if not the one that the step is for."""
    raise RefusedStep(f"{primitive} on {reference.label}: {reason}", shown or [reference], span=user_span())


# Places


def scope_of(reference: StmtSRef) -> StmtSRef:
    """The block around a loop or block; a root block is its own scope."""
    found = reference.parent
    while found is not None and not found.is_block:
        found = found.parent
    return reference if found is None else found


def loops_above(reference: StmtSRef) -> list[StmtSRef]:
    """The loops around a loop or block within its scope, outermost first."""
    found: list[StmtSRef] = []
    current = reference.parent
    while current is not None and not current.is_block:
        found.append(current)
        current = current.parent
    return found[::-1]


def all_loops_above(reference: StmtSRef) -> list[StmtSRef]:
    """The loops around a loop or block in its whole function, outermost first."""
    found: list[StmtSRef] = []
    current = reference.parent
    while current is not None:
        if not current.is_block:
            found.append(current)
        current = current.parent
    return found[::-1]


def is_below(reference: StmtSRef, ancestor: StmtSRef) -> bool:
    """True if the one is the other, or is inside it."""
    current: StmtSRef | None = reference
    while current is not None and current is not ancestor:
        current = current.parent
    return current is not None


def loops_between(ancestor: StmtSRef, block: StmtSRef) -> list[StmtSRef]:
    """The loops strictly below ``ancestor`` and around ``block``, outermost first."""
    above = loops_above(block)
    return [loop for loop in above if loop is not ancestor and is_below(loop, ancestor)]


def own_statement(state: ScheduleState, block: StmtSRef) -> StmtSRef:
    """The outermost loop that holds this block and nothing else; the block itself if there is no such loop."""
    current = block
    while current.parent is not None and not current.parent.is_block:
        if len(state.children(current.parent)) != 1:
            break
        current = current.parent
    return current


def only_statement(state: ScheduleState, block: StmtSRef) -> Stmt | None:
    """The outermost statement that holds this block and nothing else; None if that is all of the scope."""
    found = own_statement(state, block)
    scope = scope_of(block)
    if found.parent is scope and len(state.children(scope)) == 1:
        return None
    return state.realize(found) if found.is_block else found.loop


def loop_range(loop: For) -> Range:
    """The range of a loop."""
    return Range.from_min_extent(loop.min, loop.extent)


def loop_ranges(loops: Sequence[StmtSRef]) -> dict[Var, Range]:
    """The ranges of loop variables."""
    return {one.loop.loop_var: loop_range(one.loop) for one in loops}


def analyzer_for(loops: Sequence[StmtSRef]) -> Analyzer:
    """An analyzer that knows what these loops run over."""
    made = Analyzer()
    for variable, values in loop_ranges(loops).items():
        made.bind(variable, values)
    return made


def analyzer_at(place: StmtSRef) -> Analyzer:
    """An analyzer that knows what the loops and the axes of blocks run over that a loop or block is inside of, its own
    included."""
    made = Analyzer()
    current: StmtSRef | None = place
    while current is not None:
        if current.is_block:
            for axis in current.block.iter_vars:
                assert axis.dom is not None
                made.bind(axis.var, axis.dom)
        else:
            made.bind(current.loop.loop_var, loop_range(current.loop))
        current = current.parent
    return made


# Bindings


def bindings(
    state: ScheduleState, block: StmtSRef, *, bijective: bool = False, guarded: bool = True
) -> list[IterSumExpr] | None:
    """The values of a block's axes as an iterator map of the loops that they use; None if they are no such map. Without
    ``guarded`` they are those of all iterations, whatever the predicate says."""
    realize = state.realize(block)
    used = [
        loop
        for loop in loops_above(block)
        if any(uses_var(value, loop.loop.loop_var) for value in (*realize.iter_values, realize.predicate))
    ]
    if not realize.iter_values:
        return []
    predicate = realize.predicate if guarded else True
    found = detect_iter_map(realize.iter_values, loop_ranges(used), predicate, bijective)
    return found or None


def runs_whole_domain(state: ScheduleState, block: StmtSRef) -> bool:
    """True if the loops around a block certainly run it for every value of its axes."""
    found = bindings(state, block)
    if found is None:
        return False
    analyzer = Analyzer()
    for axis, total in zip(block.block.iter_vars, found, strict=True):
        assert axis.dom is not None
        extent: PrimExpr = operators.const(1, axis.dom.extent.dtype)
        if total.args:
            if not analyzer.can_prove_equal(total.args[0].scale, 1):
                return False
            extent = total.args[0].extent
        if not analyzer.can_prove_equal(total.base, axis.dom.min):
            return False
        if not analyzer.can_prove_equal(extent, axis.dom.extent):
            return False
    return True


def axes_using(state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> list[IterVar]:
    """The axes of a block whose values depend on a loop."""
    realize = state.realize(block)
    pairs = zip(block.block.iter_vars, realize.iter_values, strict=True)
    return [axis for axis, value in pairs if uses_var(value, loop.loop.loop_var)]


def loops_by_use(state: ScheduleState, block: StmtSRef) -> tuple[list[StmtSRef], list[StmtSRef]]:
    """The loops around a block that its data axes use, and those that its reduction axes use."""
    values = list(zip(block.block.iter_vars, state.realize(block).iter_values, strict=True))
    reduced = [value for axis, value in values if axis.iter_type == IterVar.CommReduce]
    data = [value for axis, value in values if axis.iter_type != IterVar.CommReduce]
    above = loops_above(block)
    return (
        [loop for loop in above if any(uses_var(value, loop.loop.loop_var) for value in data)],
        [loop for loop in above if any(uses_var(value, loop.loop.loop_var) for value in reduced)],
    )


def require_runs_once(
    primitive: str, state: ScheduleState, block: StmtSRef, loops: Sequence[StmtSRef]
) -> None:
    """Refuse a reduction that may add a value more than once over these loops.

    While all loops are in their order that does no harm: the initialisation runs as often."""
    data, reduced = loops_by_use(state, block)
    for loop in loops:
        once = isinstance(loop.loop.extent, IntImm) and loop.loop.extent.value == 1
        if not once and loop not in data and loop not in reduced:
            fail(primitive, block, f"it is repeated over {loop.label}, which none of its axes uses")
    if bindings(state, block, bijective=True) is None:
        fail(primitive, block, "the values of its axes are not a one-to-one affine map of the loops")


# Kinds of blocks


def _alone(scope: BlockScope, block: StmtSRef) -> bool:
    written = {region.buffer.data for region in block.block.writes}
    return not any(
        region.buffer.data in written
        for other in scope.child_blocks
        if other is not block
        for region in other.block.writes
    )


def why_not_complete(scope: BlockScope, block: StmtSRef, *, reads_own: bool = False) -> str | None:
    """Why a block is not complete; None if it is. ``reads_own`` allows it to read the buffer that it writes."""
    stmt = block.block
    if any(axis.iter_type != IterVar.DataPar for axis in stmt.iter_vars):
        return "not all of its axes are data-parallel"
    if stmt.init is not None:
        return "it has an initialisation"
    if not _alone(scope, block):
        return "another block writes its buffer, too"
    written = {region.buffer.data for region in stmt.writes}
    if not reads_own and any(region.buffer.data in written for region in stmt.reads):
        return "it reads the buffer that it writes"
    return None


def why_not_reduction(scope: BlockScope, block: StmtSRef) -> str | None:
    """Why a block is not a reduction; None if it is."""
    stmt = block.block
    if stmt.init is None:
        return "it has no initialisation"
    if any(axis.iter_type not in (IterVar.DataPar, IterVar.CommReduce) for axis in stmt.iter_vars):
        return "it has axes that are neither data-parallel nor reductions"
    if not _alone(scope, block):
        return "another block writes its buffer, too"
    reduced = [axis.var for axis in stmt.iter_vars if axis.iter_type == IterVar.CommReduce]
    if any(uses_var(bound, reduced) for region in stmt.writes for bound in region.region):
        return "where it writes depends on a reduction axis"
    return None


def require_movable(primitive: str, scope: BlockScope, block: StmtSRef, *, reads_own: bool = False) -> None:
    """Refuse a block that is neither complete nor a reduction."""
    reason = why_not_complete(scope, block, reads_own=reads_own)
    if reason is not None and block.block.init is not None:
        reason = why_not_reduction(scope, block)
    if reason is not None:
        fail(primitive, block, f"it is neither a complete block nor a reduction: {reason}")


def require_stage_pipeline(primitive: str, scope: BlockScope, block: StmtSRef) -> None:
    """Refuse a scope in which a block writes what an earlier one reads."""
    for one in scope.dependencies:
        if one.kind == DepKind.WAR and one.src is not one.dst:
            fail(
                primitive,
                block,
                f"{one.dst.label} writes a buffer that {one.src.label} reads before: the order of blocks matters",
            )


# Buffers


def is_allocated(scope: StmtSRef, buffer: Buffer) -> bool:
    """True if the buffer is allocated by the block of this scope, so that nothing outside sees it."""
    return any(one is buffer for one in scope.block.alloc_buffers)


def written_buffer(primitive: str, block: StmtSRef) -> Buffer:
    """The one buffer that a block writes."""
    written = list(dict.fromkeys(region.buffer for region in block.block.writes))
    if len(written) != 1:
        fail(primitive, block, f"it writes {len(written)} buffers, not one")
    return written[0]
