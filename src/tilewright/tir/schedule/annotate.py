"""How the iterations of a loop run: in parallel, as vector lanes, unrolled, or as threads of a device.

Iterations may run at the same time if no block in the loop carries a value from one to another: axes that depend on the
loop are data-parallel, and what a block writes is either used only inside one iteration or is not written by any other.
"""

from __future__ import annotations

from typing import Any

from tilewright.arith import Analyzer, detect_iter_map
from tilewright.ir.buffer import Buffer, BufferRegion
from tilewright.ir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Var, is_const
from tilewright.ir.functor import post_order, uses_var
from tilewright.tir.analysis.buffer_access_lca import detect_buffer_access_lca
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.schedule.analysis import (
    axes_using,
    fail,
    is_below,
    loop_ranges,
    loops_above,
    loops_by_use,
    scope_of,
    why_not_reduction,
)
from tilewright.tir.schedule.block_scope import StmtSRef
from tilewright.tir.schedule.regions import require_no_flow_between_iterations
from tilewright.tir.schedule.state import ScheduleState
from tilewright.tir.stmt import Block, BufferStore, For, ForKind
from tilewright.tir.storage_rank import StorageRank, is_shared_by, storage_rank
from tilewright.tir.transform.lib.known_reduction import known_reduction

THREAD_AXES = tuple(f"{kind}.{letter}" for kind in ("blockIdx", "threadIdx") for letter in "xyz")
VIRTUAL_THREADS = ("vthread", "vthread.x", "vthread.y", "vthread.z")


def parallel(state: ScheduleState, loop: StmtSRef) -> None:
    """Run iterations in parallel, on the threads of the CPU."""
    _require_independent("parallel", state, loop)
    _set_kind(state, loop, ForKind.PARALLEL)


def vectorize(state: ScheduleState, loop: StmtSRef) -> None:
    """Make iterations lanes of vectors."""
    if not isinstance(loop.loop.extent, IntImm):
        fail("vectorize", loop, f"its extent, {loop.loop.extent}, is not a constant: split it first")
    _require_independent("vectorize", state, loop)
    _set_kind(state, loop, ForKind.VECTORIZED)


def unroll(state: ScheduleState, loop: StmtSRef) -> None:
    """Write iterations out, in their order."""
    _set_kind(state, loop, ForKind.UNROLLED)


def bind(state: ScheduleState, loop: StmtSRef, thread_axis: str) -> None:
    """Give each iteration to a thread of a device."""
    if thread_axis not in THREAD_AXES + VIRTUAL_THREADS:
        names = ", ".join(THREAD_AXES + VIRTUAL_THREADS)
        fail("bind", loop, f"{thread_axis!r} is not a thread axis; the axes are {names}")
    for other in _nest(state, loop):
        bound = other.loop.thread_binding
        if bound is not None and bound.thread_tag == thread_axis and other is not loop:
            outer, inner = (loop, other) if is_below(other, loop) else (other, loop)
            _require_cooperation(state, loop, outer, inner)
    _require_independent("bind", state, loop, thread_axis)
    dtype = loop.loop.loop_var.dtype
    axis = IterVar(None, Var(thread_axis, dtype), IterVar.ThreadIndex, thread_axis)
    _set_kind(state, loop, ForKind.THREAD_BINDING, axis)


def annotate(state: ScheduleState, place: StmtSRef, key: str, value: Any) -> None:
    """Attach a value to a block or a loop."""
    stmt = _annotated(place)
    if key in stmt.annotations:
        fail("annotate", place, f"it has an annotation {key!r} already: take that back with unannotate first")
    _set_annotations(state, stmt, {**stmt.annotations, key: value})


def unannotate(state: ScheduleState, place: StmtSRef, key: str) -> None:
    """Take a value away."""
    stmt = _annotated(place)
    if key not in stmt.annotations:
        known = ", ".join(stmt.annotations) or "none"
        fail("unannotate", place, f"it has no annotation {key!r}; it has: {known}")
    _set_annotations(state, stmt, {name: one for name, one in stmt.annotations.items() if name != key})


def _annotated(place: StmtSRef) -> Block | For:
    return place.block if place.is_block else place.loop


def _set_annotations(state: ScheduleState, stmt: Block | For, annotations: dict[str, Any]) -> None:
    made = stmt.replace(annotations=annotations)
    state.replace({stmt: made}, {stmt: made} if isinstance(stmt, Block) and isinstance(made, Block) else {})


def _require_cooperation(state: ScheduleState, loop: StmtSRef, outer: StmtSRef, inner: StmtSRef) -> None:
    """Refuse two loops of one nest that are bound to one thread axis, unless the threads fill shared memory together.

    A thread then does its own part of what each of them would do: the same for all, and seen by all."""
    reason = None
    if not Analyzer().can_prove_equal(outer.loop.extent, inner.loop.extent):
        reason = "their extents differ"
    for block in state.child_blocks(inner):
        if any(storage_rank(one.buffer.scope()) != StorageRank.SHARED for one in block.block.writes):
            reason = f"{block.label} does not write shared memory"
        elif not _runs_again(block.block) or axes_using(state, block, outer):
            reason = f"{block.label} does not do the same in every thread"
    if reason is not None:
        other = outer if loop is inner else inner
        fail("bind", loop, f"{other.label} of the same nest is bound to it already, and {reason}")


def _runs_again(block: Block) -> bool:
    """True if a block that runs again writes the same again."""
    written = {one.buffer.data for one in block.writes}
    return block.init is None and not any(one.buffer.data in written for one in block.reads)


def _nest(state: ScheduleState, loop: StmtSRef) -> list[StmtSRef]:
    """The loops around and inside a loop."""
    inside = [one for one in state.references.values() if not one.is_block and is_below(one, loop)]
    return [*loops_above(loop), *inside]


def _set_kind(
    state: ScheduleState, loop: StmtSRef, kind: ForKind, thread_binding: IterVar | None = None
) -> None:
    stmt = loop.loop
    state.replace({stmt: stmt.replace(kind=kind, thread_binding=thread_binding)})


def require_still_independent(primitive: str, state: ScheduleState, place: StmtSRef) -> None:
    """Refuse what a step has made of a loop, or of one around it, that runs its iterations at the same time."""
    for loop in (*loops_above(place), place):
        if loop.loop.kind in (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING):
            binding = loop.loop.thread_binding
            _require_independent(primitive, state, loop, "" if binding is None else binding.thread_tag)


def _require_independent(primitive: str, state: ScheduleState, loop: StmtSRef, thread_axis: str = "") -> None:
    """Refuse a loop whose iterations depend on one another; they may be the threads of an axis."""
    if isinstance(loop.loop.extent, IntImm) and loop.loop.extent.value == 1:
        return
    blocks = state.child_blocks(loop)
    combined: list[StmtSRef] = []
    for block in blocks:
        for axis in axes_using(state, block, loop):
            if axis.iter_type == IterVar.CommReduce:
                reason = _why_not_combined(state, block, loop, thread_axis)
                if reason is not None:
                    fail(
                        primitive,
                        loop,
                        f"reduction axis {axis.var.name} of {block.label} depends on it{reason}",
                    )
                combined.append(block)
                continue
            if axis.iter_type != IterVar.DataPar:
                fail(
                    primitive,
                    loop,
                    f"axis {axis.var.name} of {block.label} depends on it and is not data-parallel",
                )
    require_no_flow_between_iterations(primitive, state, loop)
    private = _private_buffers(state, loop)
    for block in [one for one in blocks if one not in combined]:
        if all(region.buffer in private for region in block.block.writes):
            shared = [
                region.buffer
                for region in block.block.writes
                if thread_axis and is_shared_by(storage_rank(region.buffer.scope()), thread_axis)
            ]
            if not shared or _runs_again(block.block):
                continue
        reason = _why_not_apart(state, block, loop)
        if reason is not None:
            fail(primitive, loop, f"iterations may write the same place: {reason} in {block.label}")


def _why_not_combined(state: ScheduleState, block: StmtSRef, loop: StmtSRef, thread_axis: str) -> str | None:
    """Why the threads of an axis cannot reduce over a loop together; None if they can. The reason continues a
    sentence."""
    if not thread_axis:
        return ""
    advice = "; use rfactor to make it a data axis first"
    if not thread_axis.startswith("threadIdx"):
        return f", and only threads of one block of threads (threadIdx) can combine values{advice}"
    if (
        why_not_reduction(state.get_block_scope(scope_of(block)), block)
        or known_reduction(block.block) is None
    ):
        return f", and it is not a sum, product, minimum or maximum that starts with the identity{advice}"
    if loop in loops_by_use(state, block)[0]:
        return ", and so does a data axis"
    return None


def _private_buffers(state: ScheduleState, loop: StmtSRef) -> set[Buffer]:
    """The buffers of the scope that are accessed only inside the loop: each iteration has its own."""
    function = state.function_of(loop)
    allocated = set(scope_of(loop).block.alloc_buffers)
    found: set[Buffer] = set()
    for buffer, place in detect_buffer_access_lca(function).items():
        if (
            buffer in allocated
            and isinstance(place, (Block, For))
            and is_below(state.references[place], loop)
        ):
            found.add(buffer)
    return found


def _why_not_apart(state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> str | None:
    """Why two iterations may write one element; None if they certainly do not."""
    stmt, realize = block.block, state.realize(block)
    if not axes_using(state, block, loop):
        return "no axis depends on the loop"
    inner = [one for one in loops_above(block) if is_below(one, loop)]
    used = [
        one
        for one in loops_above(block)
        if one in inner or any(uses_var(value, one.loop.loop_var) for value in realize.iter_values)
    ]
    if not detect_iter_map(realize.iter_values, loop_ranges(used), realize.predicate, True):
        return "the values of the axes are not a one-to-one affine map of the loops"
    axes = {axis.var: axis.dom for axis in stmt.iter_vars if axis.iter_type == IterVar.DataPar and axis.dom}
    for place, dimensions, at in _written_places(stmt):
        needed = {axis: domain for axis, domain in axes.items() if any(uses_var(one, axis) for one in at)}
        if any(axis.var not in needed for axis in axes_using(state, block, loop)):
            return f"where {place.name} is written does not depend on all axes that depend on the loop"
        if not detect_iter_map(at, needed, True, True):
            return f"the indices of {place.name} are not a one-to-one affine map of the axes"
        if dimensions is None:
            reads = [
                list(one.indices)
                for one in post_order(stmt)
                if isinstance(one, BufferLoad) and one.buffer is place
            ]
        else:
            reads = [_narrow(one, dimensions) for one in stmt.reads if one.buffer is place]
        for read in reads:
            if len(read) != len(at) or not all(expr_deep_equal(a, b) for a, b in zip(read, at, strict=True)):
                return f"{place.name} is read at another place than it is written at"
    return None


def _written_places(stmt: Block) -> list[tuple[Buffer, list[int] | None, list[PrimExpr]]]:
    """The elements that a block writes, and the indices in terms of its axes: those of its stores, or, where there are
    loops or blocks inside, those dimensions, which are given too, of its regions that are one element wide."""
    parts = post_order(stmt.body)
    stores = [one for one in parts if isinstance(one, BufferStore)]
    if stores and not any(isinstance(one, (For, Block)) for one in parts):
        return [(store.buffer, None, list(store.indices)) for store in stores]
    found: list[tuple[Buffer, list[int] | None, list[PrimExpr]]] = []
    for region in stmt.writes:
        narrow = [number for number, bound in enumerate(region.region) if is_const(bound.extent, 1)]
        found.append((region.buffer, narrow, _narrow(region, narrow)))
    return found


def _narrow(region: BufferRegion, dimensions: list[int]) -> list[PrimExpr]:
    """The indices of a region in those of some dimensions in which it is one element wide."""
    return [region.region[one].min for one in dimensions if is_const(region.region[one].extent, 1)]
