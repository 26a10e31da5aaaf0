"""Automatic inlining: stages that compute each element from elements, without a reduction, can be inlined into their
consumers."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.expr import ProducerLoad, Var
from tilewright.ir.functor import post_order
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import AttachType, Stage


def may_be_inlined(stage: Stage) -> bool:
    """A computation without a reduction that is not an output and has not been scheduled yet."""
    operation = stage.op
    untouched = not stage.relations and stage.attach_type == AttachType.GROUP_ROOT and not stage.scope
    return (
        isinstance(operation, ComputeOp) and not operation.reduce_axis and not stage.is_output and untouched
    )


def may_be_inlined_into(stage: Stage, readers: Sequence[Stage]) -> bool:
    """True if a stage may be inlined into its readers, all of which are computations."""
    return may_be_inlined(stage) and bool(readers) and all(isinstance(one.op, ComputeOp) for one in readers)


def _is_elementwise(operation: ComputeOp) -> bool:
    """True if every read is at the very index that is computed."""
    axes: list[Var] = [axis.var for axis in operation.axes]
    for value in operation.body:
        for part in post_order(value):
            if isinstance(part, ProducerLoad):
                same = len(part.indices) == len(axes)
                if not same or any(index is not axis for index, axis in zip(part.indices, axes, strict=True)):
                    return False
    return True


def auto_inline_elementwise(schedule: Schedule) -> None:
    """Inline every stage that computes each element from the elements at the same index."""
    for stage in schedule.stages:
        if may_be_inlined(stage) and isinstance(stage.op, ComputeOp) and _is_elementwise(stage.op):
            stage.compute_inline()


def auto_inline_injective(schedule: Schedule) -> None:
    """Inline every stage without a reduction, whatever indices it reads."""
    for stage in schedule.stages:
        if may_be_inlined(stage):
            stage.compute_inline()


def auto_inline_broadcast(schedule: Schedule) -> None:
    """Inline every stage whose indices are axes or constants: elementwise, or broadcast along some axes."""
    for stage in schedule.stages:
        operation = stage.op
        if not may_be_inlined(stage) or not isinstance(operation, ComputeOp):
            continue
        axes = {axis.var for axis in operation.axes}
        loads = [
            part for value in operation.body for part in post_order(value) if isinstance(part, ProducerLoad)
        ]
        if all(index in axes or not index.children() for load in loads for index in load.indices):
            stage.compute_inline()
