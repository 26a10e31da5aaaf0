"""The first steps of scheduling a tagged computation: finding the stage that stores its result, and inlining."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.schedule.cpu.access import extent_of
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor


def schedule_of(outs: Tensor | Sequence[Tensor], tag: str) -> tuple[Schedule, Stage]:
    """A new schedule, and its stage with this tag."""
    tensors = [outs] if isinstance(outs, Tensor) else list(outs)
    schedule = create_schedule([tensor.op for tensor in tensors])
    return schedule, next(stage for stage in schedule.stages if getattr(stage.op, "tag", "") == tag)


def storing_stage(schedule: Schedule, tagged: Stage, own: Iterable[Stage]) -> Stage:
    """The stage that stores the result: the only output where it has the tagged stage's shape, else the tagged one.

    What is neither an output nor one of ``own``, the stages of the computation, is inlined; so is the tagged stage
    if another stage stores its result.
    """
    outputs = [stage for stage in schedule.stages if stage.is_output]
    result = outputs[0] if len(outputs) == 1 and _extents(outputs[0]) == _extents(tagged) else tagged
    materialized = {id(stage) for stage in (tagged, *own)}
    for stage in schedule.stages:
        if id(stage) not in materialized and isinstance(stage.op, ComputeOp) and not stage.is_output:
            stage.compute_inline()
    if result is not tagged:
        tagged.compute_inline()
    return result


def _extents(stage: Stage) -> list[int]:
    return [extent_of(axis) for axis in stage.op.axis]
