"""Reductions with few results: split over the grid, and finished by a second kernel."""

from __future__ import annotations

from math import prod
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.gpu.contraction import Contraction
from tilewright.schedule.gpu.machine import GpuMachine
from tilewright.schedule.gpu.product import choose_tile
from tilewright.schedule.gpu.row_plan import RowPlan, plan_rows
from tilewright.schedule.gpu.rows import RowGroup, row_group
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage

TILES_A_PART: Final = 8
"""Tiles of steps that a part of a product should have: fewer are not worth the sum of the parts."""

TEAM: Final = 256
"""Threads that have a part of a row."""

STEPS_A_THREAD: Final = 4
"""Vectors that each thread should have before a row is split: a second kernel costs as much as a few microseconds."""


def split_few_rows(
    schedule: Schedule, root: MaterializedStage, cone: list[MaterializedStage], machine: GpuMachine
) -> Stage | None:
    """The stage of the first step of a reduction that was split because it has few results, if it was."""
    group = row_group(root, cone)
    if group is None or not group.is_constant:
        return None
    long = [member for member in group.members if member.length > 1]
    if len(long) != 1 or not long[0].materialized.is_reduction:
        return None
    plan = plan_rows(group, machine)
    parts = _parts(group, plan, machine)
    if parts < 2:
        return None
    return _split(schedule, long[0].materialized.stage, parts, plan.vector)


def split_small_product(
    schedule: Schedule, anchor: MaterializedStage, found: Contraction, machine: GpuMachine
) -> Stage | None:
    """The stage of the first step of a product whose grid would not fill the device, if its sums were split."""
    rows, columns, batches = found.counts(anchor.compute.axes)
    tile = choose_tile(rows, columns, batches, machine)
    blocks = -(-rows // tile.rows) * -(-columns // tile.columns) * batches
    steps = prod(extent_of(axis) for axis in anchor.compute.reduce_axis)
    most = min(2 * machine.multiprocessors // blocks, steps // (tile.steps * TILES_A_PART))
    parts = max((part for part in range(1, most + 1) if steps % part == 0), default=1)
    if parts < 2:
        return None
    stage = anchor.stage
    operation = stage.op
    assert isinstance(operation, ComputeOp)
    axes = list(operation.reduce_axis)
    along = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    outer, _ = stage.split(along, factor=steps // parts)
    return schedule[schedule.rfactor(operation.output(0), outer, 0)]


def _parts(group: RowGroup, plan: RowPlan, machine: GpuMachine) -> int:
    """Into how many parts to split each row."""
    blocks = -(-group.row_count // plan.rows)
    if blocks >= machine.multiprocessors:
        return 1
    team = min(plan.team, TEAM)
    wanted = 2 * machine.blocks_at_once(team * plan.rows) // 3 // blocks
    return min(wanted, group.length // (team * plan.vector * STEPS_A_THREAD))


def _split(schedule: Schedule, stage: Stage, parts: int, vector: int) -> Stage:
    operation = stage.op
    assert isinstance(operation, ComputeOp)
    axis = _axis_to_split(stage, list(operation.reduce_axis), parts)
    chunk = (
        -(-extent_of(axis) // parts)
        if constant_extent(axis) is not None
        else -(-_fused_extent(stage) // parts)
    )
    chunk = -(-chunk // vector) * vector
    outer, _ = stage.split(axis, factor=chunk)
    tensors = operation.outputs
    made = schedule.rfactor(tensors[0], outer, 0)
    return schedule[made[0] if isinstance(made, list) else made]


def _axis_to_split(stage: Stage, axes: list[IterVar], parts: int) -> IterVar:
    """The outermost reduction axis that is long enough; all of them as one if none is."""
    for axis in axes:
        if extent_of(axis) >= parts:
            return axis
        if extent_of(axis) > 1:
            break
    return stage.fuse(*axes) if len(axes) > 1 else axes[0]


def _fused_extent(stage: Stage) -> int:
    total = 1
    assert isinstance(stage.op, ComputeOp)
    for axis in stage.op.reduce_axis:
        total *= extent_of(axis)
    return total
