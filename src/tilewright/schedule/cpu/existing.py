"""Scheduling one stage of an existing schedule."""

from __future__ import annotations

from tilewright.schedule.cpu.graph import materialized_stages
from tilewright.schedule.cpu.injective import schedule_injective_root
from tilewright.schedule.cpu.machine import current_cpu
from tilewright.support.errors import ScheduleError
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor


def schedule_injective_from_existing(sch: Schedule, out: Tensor) -> Schedule:
    """Schedule one injective stage of an existing schedule: vectors innermost, the outer loops in parallel."""
    stage = sch[out]
    found = next(
        (materialized for materialized in materialized_stages(sch) if materialized.stage is stage), None
    )
    if (
        found is None
        or not found.is_schedulable
        or not isinstance(stage.op, ComputeOp)
        or stage.op.reduce_axis
    ):
        raise ScheduleError(
            f"schedule_injective_from_existing: stage {stage.label} is not a computation without a reduction whose "
            "loops are still as they were made"
        )
    schedule_injective_root(found, current_cpu())
    return sch
