"""Chooses the schedule of one kernel: a root and the stages that are computed inside it."""

from __future__ import annotations

from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.gpu.contraction import Contraction, contraction_of
from tilewright.schedule.gpu.injective import schedule_injective
from tilewright.schedule.gpu.machine import GpuMachine
from tilewright.schedule.gpu.product import is_product, schedule_product
from tilewright.schedule.gpu.row_schedule import schedule_rows
from tilewright.schedule.gpu.rows import row_group
from tilewright.schedule.gpu.transpose import find_transpose, schedule_transpose
from tilewright.schedule.gpu.window import anchor_of, is_window, schedule_window
from tilewright.te.schedule.schedule import Schedule


def product_of(root: MaterializedStage, cone: list[MaterializedStage]) -> Contraction | None:
    """The sum of products that a kernel computes in tiles, if its only reduction is one."""
    anchor = anchor_of(root, cone)
    found = None if anchor is None else contraction_of(anchor)
    return found if anchor is not None and found is not None and is_product(found, anchor) else None


def is_thread_reduction(root: MaterializedStage, cone: list[MaterializedStage]) -> bool:
    """True if the only reduction of a kernel is one whose threads compute whole results."""
    anchor = anchor_of(root, cone)
    if anchor is None or not root.compute.axes:
        return False
    return product_of(root, cone) is not None or is_window(anchor)


def schedule_kernel(
    schedule: Schedule, root: MaterializedStage, cone: list[MaterializedStage], machine: GpuMachine
) -> None:
    """Schedules a root with its cone."""
    if not cone and not root.is_reduction:
        transpose = find_transpose(root)
        if transpose is None:
            schedule_injective(root, machine)
        else:
            schedule_transpose(schedule, root, transpose, machine)
        return
    product = product_of(root, cone)
    if product is not None:
        anchor = anchor_of(root, cone)
        assert anchor is not None
        schedule_product(schedule, root, anchor, product, machine)
        return
    if is_thread_reduction(root, cone):
        anchor = anchor_of(root, cone)
        assert anchor is not None
        schedule_window(schedule, root, anchor, machine)
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
