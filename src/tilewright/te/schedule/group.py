"""``create_group``: a virtual stage for a part of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.support.errors import ScheduleError
from tilewright.support.span import user_span
from tilewright.te.schedule.dataflow import operations_in_order
from tilewright.te.schedule.stage import AttachType, Stage
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
    name = ", ".join(tensor.name for tensor in outputs)
    members = _between(schedule, outputs, inputs, include_inputs)
    if not members:
        raise ScheduleError(
            f"create_group of {name}: there is no operation between these inputs and outputs",
            span=user_span(),
        )
    stages = [schedule.stage_map[operation] for operation in members]
    around = _common_group(stages)
    units = _units(schedule, name, stages, around)
    operation = schedule.stage_map[outputs[0].op].op
    made = Stage(schedule, operation, operation, schedule.new_label("group"))
    made.is_group = True
    made.group = around
    made.num_child_stages = len(units)
    if around is not None:
        around.num_child_stages += 1 - len(units)
    for unit in units:
        unit.group = made
    schedule.groups.append(made)
    if recorded:
        schedule.trace.append("create_group", None, [tuple(outputs), tuple(inputs), include_inputs], [made])
    return made


def _common_group(stages: Sequence[Stage]) -> Stage | None:
    """The innermost group that all stages are part of."""
    around = stages[0].group
    while around is not None and not all(stage.is_in_group(around) for stage in stages):
        around = around.group
    return around


def _units(schedule: Schedule, name: str, stages: Sequence[Stage], around: Stage | None) -> list[Stage]:
    """The stages, or whole groups of them, that are direct members of the enclosing group; each must go into the
    new group as a whole, and be computed in it."""
    units: dict[Stage, None] = {}
    for stage in stages:
        unit = stage
        while unit.group is not None and unit.group is not around:
            unit = unit.group
        units[unit] = None
        place = stage.attach_stage if stage.attach_type == AttachType.SCOPE else None
        if place is not None and not any(place is one for one in stages):
            raise ScheduleError(
                f"create_group of {name}: its stage {stage.label} is computed at stage {place.label}, "
                "which is outside the group",
                span=user_span(),
            )
    for unit in units:
        missing = [one for one in schedule.stages if one.is_in_group(unit) and one not in stages]
        if missing:
            raise ScheduleError(
                f"create_group of {name}: {unit.label} has stage {missing[0].label} too, "
                "groups cannot overlap in part",
                span=user_span(),
            )
    return list(units)


def _between(
    schedule: Schedule, outputs: Sequence[Tensor], inputs: Sequence[Tensor], include_inputs: bool
) -> list[Operation]:
    """The outputs and everything on the paths from the inputs to them."""
    ends = {schedule.stage_map[tensor.op].op for tensor in inputs}
    wanted = [schedule.stage_map[tensor.op].op for tensor in outputs]
    leads = set(ends)
    for operation in operations_in_order(wanted):
        if any(tensor.op in leads for tensor in operation.input_tensors):
            leads.add(operation)
    found: dict[Operation, None] = {}
    stack = list(wanted)
    while stack:
        operation = stack.pop()
        if operation in found or (operation in ends and not include_inputs):
            continue
        found[operation] = None
        if operation not in ends:
            stack.extend(tensor.op for tensor in operation.input_tensors if tensor.op in leads)
    return list(found)
