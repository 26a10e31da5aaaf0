"""Several stages over the same rows (softmax, normalisation), fused row by row so that each row stays in L1."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.contraction import vector_position
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.cpu.injective import vectorize_inner
from tilewright.schedule.cpu.loops import vector_factor
from tilewright.schedule.cpu.machine import lanes_of
from tilewright.schedule.cpu.row_reduction import (
    decided_vectors,
    partial_widths,
    reduce_in_vectors,
    row_length,
    row_reduction_axes,
)
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage


def has_enough_rows(
    root: MaterializedStage, cone: Sequence[MaterializedStage], rows: Sequence[IterVar], cpu: CPUDescription
) -> bool:
    """True if there are rows for all cores, or too little work to be worth more than one."""
    work = root.work() + sum(materialized.work() for materialized in cone)
    return work < cpu.parallel_work or prod(extent_of(axis) for axis in rows) >= cpu.cores


def schedule_fused_rows(
    schedule: Schedule,
    root: MaterializedStage,
    cone: Sequence[MaterializedStage],
    rows: Sequence[IterVar],
    cpu: CPUDescription,
) -> None:
    """Computes the cone row by row inside the loops of the root."""
    work = root.work() + sum(materialized.work() for materialized in cone)
    stage = root.stage
    positions = [number for number, axis in enumerate(root.compute.axes) if any(axis is row for row in rows)]
    axes = list(stage.op.axis)
    chosen = [axes[number] for number in positions]
    rest = [axis for number, axis in enumerate(axes) if number not in positions]
    stage.reorder(*chosen, *rest)
    row = stage.fuse(*chosen) if len(chosen) > 1 else chosen[0]
    if work >= cpu.parallel_work and cpu.cores > 1:
        stage.parallel(row)
    if root.is_reduction:
        _reduction_in_row(schedule, root, None, row, cpu)
    else:
        vectorize_inner(root, rest, cpu)
    for materialized in cone:
        if materialized.is_reduction:
            _reduction_in_row(schedule, materialized, stage, row, cpu)
        else:
            materialized.stage.compute_at(stage, row)
            _vectorize_last(materialized, cpu)


def _vectorize_last(materialized: MaterializedStage, cpu: CPUDescription) -> None:
    """Vectorizes the innermost axis with an extent above one."""
    position = vector_position(materialized)
    if position is None:
        return
    axis = materialized.compute.axes[position]
    lanes = lanes_of(cpu, materialized.operation.output(0).dtype)
    extent = constant_extent(axis)
    factor = vector_factor(extent, lanes)
    stage = materialized.stage
    part = axis if extent is not None and extent <= factor else stage.split(axis, factor=factor)[1]
    stage.vectorize(part)


def _reduction_in_row(
    schedule: Schedule,
    materialized: MaterializedStage,
    parent: Stage | None,
    row: IterVar,
    cpu: CPUDescription,
) -> None:
    """Schedules a reduction inside the row loop of ``parent``, or inside its own if that is None."""
    lanes = lanes_of(cpu, materialized.operation.output(0).dtype)
    along = row_reduction_axes(materialized, lanes)
    stage = materialized.stage
    if along and parent is not None and not _columns_fit(materialized, lanes):
        widths = partial_widths(row_length(materialized, along), lanes, decided_vectors(4))
        for partial in reduce_in_vectors(schedule, materialized, along, widths):
            schedule[partial].compute_at(parent, row)
        stage.compute_at(parent, row)
        return
    if parent is not None:
        stage.compute_at(parent, row)
    position = vector_position(materialized)
    if position is None:
        return
    axis = materialized.compute.axes[position]
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


def _columns_fit(materialized: MaterializedStage, lanes: int) -> bool:
    """True if the innermost data axis is long and contiguous in every read."""
    position = vector_position(materialized)
    if position is None:
        return False
    axis = materialized.compute.axes[position]
    if extent_of(axis) < max(lanes // 2, 2):
        return False
    return all(read.is_contiguous(axis, min(lanes, extent_of(axis))) for read in materialized.reads)
