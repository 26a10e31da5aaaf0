"""Chooses the schedule of one kernel: a root and the stages that are computed inside it."""

from __future__ import annotations

from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.gpu.injective import schedule_injective
from tilewright.schedule.gpu.machine import GpuMachine
from tilewright.schedule.gpu.row_schedule import schedule_rows
from tilewright.schedule.gpu.rows import row_group
from tilewright.te.schedule.schedule import Schedule


def schedule_kernel(
    schedule: Schedule, root: MaterializedStage, cone: list[MaterializedStage], machine: GpuMachine
) -> None:
    """Schedules a root with its cone."""
    if not cone and not root.is_reduction:
        schedule_injective(root, machine)
        return
    group = row_group(root, cone)
    assert group is not None
    if group.length > 1:
        schedule_rows(schedule, group, machine)
        return
    place = schedule_injective(root, machine)
    for member in group.cone:
        member.materialized.stage.compute_at(root.stage, place)
        member.materialized.stage.set_scope("local")
