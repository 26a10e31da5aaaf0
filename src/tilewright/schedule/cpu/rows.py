"""Several stages over the same rows (softmax, a normalisation): each row goes through all of them while it is in
the first cache."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.contraction import vector_position
from tilewright.schedule.cpu.graph import Kept
from tilewright.schedule.cpu.injective import vectorize_inner
from tilewright.schedule.cpu.loops import vector_factor
from tilewright.schedule.cpu.machine import PARALLEL_WORK, lanes_of
from tilewright.schedule.cpu.row_reduction import (
    partial_widths,
    reduce_in_vectors,
    row_length,
    row_reduction_axes,
)
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage


def rows_are_enough(root: Kept, cone: Sequence[Kept], rows: Sequence[IterVar], cpu: CPUDescription) -> bool:
    """True if there are rows for all cores, or so little work that one core may as well do it."""
    work = root.work() + sum(kept.work() for kept in cone)
    return work < PARALLEL_WORK or prod(extent_of(axis) for axis in rows) >= cpu.cores


def schedule_rows(
    schedule: Schedule, root: Kept, cone: Sequence[Kept], rows: Sequence[IterVar], cpu: CPUDescription
) -> None:
    """Compute the cone row by row inside of the root's loops."""
    work = root.work() + sum(kept.work() for kept in cone)
    stage = root.stage
    positions = [number for number, axis in enumerate(root.compute.axes) if any(axis is row for row in rows)]
    axes = list(stage.op.axis)
    chosen = [axes[number] for number in positions]
    rest = [axis for number, axis in enumerate(axes) if number not in positions]
    stage.reorder(*chosen, *rest)
    row = stage.fuse(*chosen) if len(chosen) > 1 else chosen[0]
    if work >= PARALLEL_WORK and cpu.cores > 1:
        stage.parallel(row)
    if root.is_reduction:
        _reduction_in_row(schedule, root, None, row, cpu)
    else:
        vectorize_inner(root, rest, cpu)
    for kept in cone:
        if kept.is_reduction:
            _reduction_in_row(schedule, kept, stage, row, cpu)
        else:
            kept.stage.compute_at(stage, row)
            _vectorize_last(kept, cpu)


def _vectorize_last(kept: Kept, cpu: CPUDescription) -> None:
    """Vectors along the innermost axis that has more than one value."""
    position = vector_position(kept)
    if position is None:
        return
    axis = kept.compute.axes[position]
    lanes = lanes_of(cpu, kept.operation.output(0).dtype)
    extent = constant_extent(axis)
    factor = vector_factor(extent, lanes)
    stage = kept.stage
    part = axis if extent is not None and extent <= factor else stage.split(axis, factor=factor)[1]
    stage.vectorize(part)


def _reduction_in_row(
    schedule: Schedule, kept: Kept, parent: Stage | None, row: IterVar, cpu: CPUDescription
) -> None:
    """A reduction inside of the row loop of ``parent``, or of its own where that is None."""
    lanes = lanes_of(cpu, kept.operation.output(0).dtype)
    along = row_reduction_axes(kept, lanes)
    stage = kept.stage
    if along and parent is not None and not _columns_fit(kept, lanes):
        widths = partial_widths(row_length(kept, along), lanes)
        for partial in reduce_in_vectors(schedule, kept, along, widths):
            schedule[partial].compute_at(parent, row)
        stage.compute_at(parent, row)
        return
    if parent is not None:
        stage.compute_at(parent, row)
    position = vector_position(kept)
    if position is None:
        return
    axis = kept.compute.axes[position]
    if not any(axis is leaf for leaf in stage.leaf_iter_vars):
        return
    extent = constant_extent(axis)
    factor = vector_factor(extent, lanes)
    others = [leaf for leaf in stage.leaf_iter_vars if leaf is not axis]
    data = [leaf for leaf in others if leaf.iter_type != IterVar.CommReduce]
    reduced = [leaf for leaf in others if leaf.iter_type == IterVar.CommReduce]
    if extent is not None and extent <= factor:
        stage.reorder(*data, *reduced, axis)
        stage.vectorize(axis)
    else:
        outer, inner = stage.split(axis, factor=factor)
        stage.reorder(*data, outer, *reduced, inner)
        stage.vectorize(inner)


def _columns_fit(kept: Kept, lanes: int) -> bool:
    """True if the innermost data axis is long and contiguous in every read."""
    position = vector_position(kept)
    if position is None:
        return False
    axis = kept.compute.axes[position]
    if extent_of(axis) < max(lanes // 2, 2):
        return False
    return all(read.is_contiguous(axis, min(lanes, extent_of(axis))) for read in kept.reads)
