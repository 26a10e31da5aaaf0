"""Reductions along contiguous axes: factored into vectors of partial results, which are then reduced."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.ir.expr import Reduce
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.decisions import decide
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor


def row_reduction_axes(materialized: MaterializedStage, lanes: int) -> list[int]:
    """The positions of the trailing reduction axes that form a contiguous row of at least a vector; empty if the
    reduction cannot be factored."""
    operation = materialized.compute
    first = operation.body[0]
    # Tuple reductions (argmax) would have to break ties by index, whatever the order of the parts.
    if not isinstance(first, Reduce) or len(first.source) != 1 or first.init or lanes < 2:
        return []
    axes = operation.reduce_axis
    extents = [constant_extent(axis) for axis in axes]
    positions: list[int] = []
    length = 1
    for position in range(len(axes) - 1, -1, -1):
        extent = extents[position]
        if extent is None:
            break
        steps = [read.steps(axes[position], extent) for read in materialized.reads]
        if extent > 1 and not all(step == 0 or step == length for step in steps):
            break
        positions.insert(0, position)
        length *= extent
    if not positions and axes and extents[-1] is None:
        # A row of dynamic length: contiguity is checked with the assumed length.
        if all(read.is_contiguous(axes[-1], extent_of(axes[-1])) for read in materialized.reads):
            return [len(axes) - 1]
    moving = any(read.moves_with(axes[position]) for position in positions for read in materialized.reads)
    return positions if moving and length >= max(lanes // 2, 2) else []


def reduce_in_vectors(
    schedule: Schedule, materialized: MaterializedStage, rows: Sequence[int], widths: Sequence[int]
) -> list[Tensor]:
    """Factors the reduction into vectors of these widths, one after another, and returns the tensors of partial
    results, which must be attached where the reduction is."""
    stage = materialized.stage
    axes = stage.op.reduce_axis
    chosen = [axes[position] for position in rows]
    row = stage.fuse(*chosen) if len(chosen) > 1 else chosen[0]
    made: list[Tensor] = []
    for width in widths:
        # After the first step, only the vector of partial results is left to reduce.
        _, lane = stage.split(row, factor=width)
        partial: Tensor = schedule.rfactor(stage.op.output(0), lane, factor_axis=len(stage.op.axis))
        inner = schedule[partial]
        lane = inner.op.axis[-1]
        inner.reorder(*inner.op.axis[:-1], *inner.op.reduce_axis, lane)
        inner.vectorize(lane)
        made.append(partial)
        row = stage.op.reduce_axis[0]
    for tensor in made[1:]:
        schedule[tensor].unroll(schedule[tensor].op.reduce_axis[-1])
    if made:
        stage.unroll(stage.op.reduce_axis[0])
    return made


def row_length(materialized: MaterializedStage, rows: Sequence[int]) -> int | None:
    """The length of the row of these reduction axes; None if it is dynamic."""
    extents = [constant_extent(materialized.compute.reduce_axis[position]) for position in rows]
    return None if None in extents else prod(extent for extent in extents if extent is not None)


def decided_vectors(constructed: int) -> int:
    """The vectors of partial results that are summed at the same time, to hide the latency of an addition."""
    return decide("partial_vectors", constructed, lambda: [1, 2, 4, 8])


def partial_widths(length: int | None, lanes: int, vectors: int = 4) -> list[int]:
    """The number of partial results at each step: first several vectors, then one, then a quarter of one, to keep the
    dependence chain short."""
    quarter = [max(lanes // 4, 2)] if lanes > 4 else []
    if vectors > 1 and (length is None or length >= 2 * vectors * lanes):
        return [vectors * lanes, lanes, *quarter]
    if length is None or length >= 2 * lanes:
        return [lanes, *quarter]
    return quarter if length >= lanes // 2 else []
