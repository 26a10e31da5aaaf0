"""Injective stages: contiguous axes are fused and vectorized, the others run in parallel.

If the elements of a vector are far apart in the source, as in a transpose, each of them loads a whole cache line. The
axis along which those lines run is then moved innermost, so that a line is used up before it is evicted.

An axis that a condition depends on, as in padding, is not fused with others: a vector that lies across the border would
be computed element by element. The iterations at the border have separate code.
"""

from __future__ import annotations

from math import prod
from typing import Final

from tilewright.ir.expr import Call, IterVar, PrimExpr, Select, Var
from tilewright.ir.functor import post_order
from tilewright.schedule.cpu.access import constant_extent, extent_of, steady_length, values_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.cpu.loops import mark_remainder, run_parallel, vector_factor
from tilewright.schedule.cpu.machine import lanes_of
from tilewright.schedule.decisions import decide
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.stage import Stage

SHORTEST_VECTOR: Final = 128
"""Bits of elements next to one another that are better computed in a vector of their own than fused with an axis that a
condition depends on."""

MOST_IN_BLOCK: Final = 64
"""Channels of a block that is computed in pieces."""


def conditions_of(materialized: MaterializedStage) -> list[PrimExpr]:
    """The conditions by which a stage selects between values."""
    parts = {id(part): part for value in values_of(materialized.compute) for part in post_order(value)}
    found: list[PrimExpr] = []
    for part in parts.values():
        if isinstance(part, Select):
            found.append(part.condition)
        elif isinstance(part, Call) and getattr(part.op, "name", "") == "tir.if_then_else":
            found.append(part.args[0])
    return found


def _variables_of(conditions: list[PrimExpr]) -> set[Var]:
    return {part for value in conditions for part in post_order(value) if isinstance(part, Var)}


def collapsible(materialized: MaterializedStage, axes: list[IterVar], lanes: int) -> int:
    """The number of trailing axes that can be fused: every load addresses them like a flat array, and no condition
    depends on one of several that are longer than the shortest vector."""
    count = 1
    whole = min(lanes, SHORTEST_VECTOR // max(materialized.operation.output(0).dtype.bits, 8))
    reads = materialized.reads
    conditional = _variables_of(conditions_of(materialized))
    while count < len(axes):
        outer, inner = axes[-count - 1], axes[-count]
        extent = constant_extent(inner)
        if constant_extent(outer) is None or extent is None:
            break
        together = prod(extent_of(axis) for axis in axes[-count:])
        if together >= whole and any(axis.var in conditional for axis in axes[-count - 1 :]):
            break
        steps = [(read.steps(outer, extent_of(outer)), read.steps(inner, extent)) for read in reads]
        apart = extent_of(outer) > 1
        if apart and not all(
            one is not None and other is not None and one == other * extent for one, other in steps
        ):
            break
        count += 1
    return count


def vectorize_inner(
    materialized: MaterializedStage, axes: list[IterVar], cpu: CPUDescription, wanted: int | None = None
) -> list[tuple[IterVar, int | None]]:
    """Vectorizes the innermost of these axes, and returns the remaining outer loops with their extents. ``wanted`` is
    the preferred vector length, used if it divides the axis."""
    stage = materialized.stage
    if not axes:
        return []
    lanes = lanes_of(cpu, materialized.operation.output(0).dtype)
    together = collapsible(materialized, axes, lanes)
    outer: list[tuple[IterVar, int | None]] = [(axis, constant_extent(axis)) for axis in axes[:-together]]
    last = axes[-together:]
    extents = [constant_extent(axis) for axis in last]
    extent = prod(one for one in extents if one is not None) if None not in extents else None
    inner = stage.fuse(*last) if together > 1 else last[0]
    pieces = _pieces(materialized, last) if wanted is None else 1
    if pieces > 1:
        # A vector that a condition holds for in part would be computed element by element.
        piece, inner = stage.split(inner, nparts=pieces)
        stage.unroll(piece)
        stage.vectorize(inner)
        return outer
    factor = vector_factor(extent, lanes)
    if wanted is not None and extent is not None and extent % wanted == 0:
        factor = wanted
    elif extent is not None and extent > lanes:
        factor = decide("vector", factor, lambda: _vector_factors(extent, lanes))
    if extent is not None and extent <= factor:
        if extent > 1:
            stage.vectorize(inner)
        else:
            outer.append((inner, 1))
        return outer
    count = None if extent is None else -(-extent // factor)
    rest, inner = stage.split(inner, factor=factor)
    stage.vectorize(inner)
    return [*outer, (rest, count)]


def _pieces(materialized: MaterializedStage, axes: list[IterVar]) -> int:
    """How many pieces a block of channels has, of at least a vector each, in which conditions stay the same, as for the
    operands of a concatenation, and reads are evenly spaced, as they are not across smaller blocks."""
    conditions = conditions_of(materialized)
    extent = constant_extent(axes[-1])
    if len(axes) > 1 or extent is None or extent > MOST_IN_BLOCK:
        return 1
    length = steady_length(conditions, materialized.compute.axes, axes[-1]) if conditions else extent
    while length % 2 == 0 and any(read.steps(axes[-1], length) is None for read in materialized.reads):
        length //= 2
    is_vector = length * materialized.operation.output(0).dtype.bits >= SHORTEST_VECTOR
    return extent // length if is_vector else 1


def _vector_factors(extent: int, lanes: int) -> list[int]:
    """Vector lengths to try: whole vectors that divide the axis, or any if none does."""
    lengths = [count * lanes for count in (1, 2, 4, 8, 16) if count * lanes <= extent]
    return [length for length in lengths if extent % length == 0] or lengths


def crossing_axis(materialized: MaterializedStage, cpu: CPUDescription) -> tuple[IterVar, int] | None:
    """The axis along the cache lines that a vector is gathered from, and how many of its elements are adjacent in
    memory, about a line; None if vectors are contiguous, or if the source stays in L1."""
    axes = list(materialized.compute.axes)
    size = materialized.operation.output(0).dtype.bits // 8
    if not axes or materialized.elements() * size <= cpu.l1d_bytes:
        return None
    vector, lanes = axes[-1], lanes_of(cpu, materialized.operation.output(0).dtype)
    apart = [read for read in materialized.reads if (read.steps(vector, lanes) or 0) > 1]
    for axis in reversed(axes[: -collapsible(materialized, axes, lanes)]) if apart else ():
        extent = constant_extent(axis) or 0
        # Blocks of channels need not be whole vectors.
        lines = [lanes, *(size for size in range(2 * lanes, lanes // 2, -1) if extent % size == 0)]
        for line in lines if extent >= lanes else ():
            if all(read.steps(axis, line) == 1 for read in apart):
                return axis, line
    return None


def schedule_injective_root(materialized: MaterializedStage, cpu: CPUDescription) -> None:
    """Schedules an injective stage as a loop nest of its own."""
    if materialized.elements() == 0:
        return
    crossing, lanes = crossing_axis(materialized, cpu), lanes_of(cpu, materialized.operation.output(0).dtype)
    if crossing is not None and not decide("through_lines", True, lambda: [False]):
        crossing = None
    loops = vectorize_inner(
        materialized, list(materialized.compute.axes), cpu, None if crossing is None else lanes
    )
    if crossing is not None:
        loops = _through_lines(materialized, loops, *crossing)
    if loops:
        axes = [axis for axis, _ in loops]
        run_parallel(materialized.stage, cpu, axes, [count for _, count in loops], materialized.work())
        if constant_extent(materialized.compute.axes[-1]) is None:
            mark_remainder(materialized.stage, axes[-1], vector_factor(None, lanes))
        else:
            _separate_border(materialized, axes)


def schedule_injective_inside(
    materialized: MaterializedStage, parent: Stage, place: IterVar, cpu: CPUDescription
) -> None:
    """Schedules an injective stage inside a loop of another stage, which computes the slice that it reads."""
    materialized.stage.compute_at(parent, place)
    loops = vectorize_inner(materialized, list(materialized.compute.axes), cpu)
    if loops:
        _separate_border(materialized, [axis for axis, _ in loops])


def _separate_border(materialized: MaterializedStage, loops: list[IterVar]) -> None:
    """Gives the iterations at the border of an image separate code, so that the others check nothing."""
    stage = materialized.stage
    conditions = conditions_of(materialized)
    if len(conditions) != 1:
        return  # a concatenation, whose pieces would all have copies of the code
    innermost, axes = loops[-1], materialized.compute.axes
    # A fused loop is over axes that a condition may depend on; one about sizes only is the same in all iterations.
    parts = [innermost] if any(innermost is axis for axis in axes) else axes
    conditional = _variables_of(conditions)
    if any(part.var in conditional for part in parts) and innermost in stage.leaf_iter_vars:
        stage.pragma(innermost, "loop_partition_hint")


def _through_lines(
    materialized: MaterializedStage, loops: list[tuple[IterVar, int | None]], crossing: IterVar, line: int
) -> list[tuple[IterVar, int | None]]:
    """Moves the part of an axis that covers one cache line innermost, and returns the outer loops."""
    stage = materialized.stage
    rest, inside = stage.split(crossing, factor=line)
    extent = extent_of(crossing)
    outside = [(rest, -(-extent // line)) if axis is crossing else (axis, count) for axis, count in loops]
    stage.reorder(*[axis for axis, _ in outside], inside)
    return outside
