"""``create_group``: a virtual stage for a part of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.support.errors import ScheduleError
from tilewright.support.span import user_span
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation, Tensor

if TYPE_CHECKING:
    from tilewright.te.schedule.schedule import Schedule


def create_group(
    schedule: Schedule,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    include_inputs: bool,
    recorded: bool = True,
) -> Stage:
    """See ``Schedule.create_group``."""
    for tensor in (*outputs, *inputs):
        if not isinstance(tensor, Tensor) or tensor not in schedule:
            raise ScheduleError(
                f"create_group: {tensor!r} is not a tensor of this schedule", span=user_span()
            )
    members = _between(schedule, outputs, inputs, include_inputs)
    if not members:
        raise ScheduleError(
            "create_group: there is no operation between these inputs and outputs", span=user_span()
        )
    stages = [schedule.stage_map[operation] for operation in members]
    outer = {id(stage.group) for stage in stages}
    if len(outer) > 1:
        raise ScheduleError("create_group: the operations are in different groups already", span=user_span())
    operation = schedule.stage_map[outputs[0].op].op
    made = Stage(schedule, operation, operation, schedule.new_label("group"))
    made.is_group = True
    made.group = stages[0].group
    made.num_child_stages = len(stages)
    for stage in stages:
        stage.group = made
    schedule.groups.append(made)
    if recorded:
        schedule.trace.append("create_group", None, [tuple(outputs), tuple(inputs), include_inputs], [made])
    return made


def _between(
    schedule: Schedule, outputs: Sequence[Tensor], inputs: Sequence[Tensor], include_inputs: bool
) -> list[Operation]:
    """The operations on the ways from the inputs to the outputs."""
    ends = {schedule.stage_map[tensor.op].op for tensor in inputs}
    found: dict[Operation, None] = {}
    stack = [schedule.stage_map[tensor.op].op for tensor in outputs]
    while stack:
        operation = stack.pop()
        if operation in found or (operation in ends and not include_inputs):
            continue
        found[operation] = None
        if operation not in ends:
            stack.extend(tensor.op for tensor in operation.input_tensors)
    return [operation for operation in found if operation.root_iter_vars]
