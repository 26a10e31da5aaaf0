"""Schedules: how a graph of operations is computed.

A schedule holds a stage for every operation, producers first. Its own primitives add stages (``cache_read``,
``cache_write``, ``rfactor``, ``create_group``); the primitives of a stage say how that stage is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from tilewright.ir.expr import IterVar
from tilewright.ir.serialize import Saved
from tilewright.support import html
from tilewright.support.errors import ScheduleError
from tilewright.support.node import Object
from tilewright.support.span import user_span
from tilewright.te.scan import ScanOp
from tilewright.te.schedule import cache, factor, group
from tilewright.te.schedule import normalize as normalization
from tilewright.te.schedule.dataflow import operations_in_order
from tilewright.te.schedule.loops_text import loops_text
from tilewright.te.schedule.saved_trace import read_steps, saved_steps
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.schedule.trace import Trace
from tilewright.te.tensor import Operation, Tensor


class Schedule(Object, Saved):
    """How the operations that lead to ``outputs`` are computed."""

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs: list[Operation] = list(outputs)
        self.stages: list[Stage] = []
        self.groups: list[Stage] = []
        self.stage_map: dict[Operation, Stage] = {}
        self.trace = Trace(self)

    @classmethod
    def create(cls, outputs: Sequence[Operation]) -> Self:
        """The default schedule: every stage at the root, its axes in order."""
        made = cls(outputs)
        wanted = set(outputs)
        for operation in operations_in_order(outputs):
            made.add_stage(operation, len(made.stages)).is_output = operation in wanted
        for stage in list(made.stages):
            stage.op.prepare_schedule(made)
        return made

    def add_stage(self, operation: Operation, position: int) -> Stage:
        """A new stage for an operation, with a label that no other stage has."""
        stage = Stage(self, operation, operation, self.new_label(operation.name))
        stage.start_from(operation)
        self.stages.insert(position, stage)
        self.stage_map[operation] = stage
        return stage

    def new_label(self, name: str) -> str:
        """A label for a new stage: the name, with a number where it is taken."""
        taken = {stage.label for stage in (*self.stages, *self.groups)}
        if name not in taken:
            return name
        return next(
            f"{name}_{number}" for number in range(1, len(taken) + 2) if f"{name}_{number}" not in taken
        )

    def _repr_html_(self) -> str:
        """The loops for a notebook, and the steps that made them."""
        steps = str(self.trace.as_python())
        parts = [html.program(loops_text(self), "loops")]
        if len(self.trace):
            parts.append(html.folded(f"{len(self.trace)} steps", html.program(steps)))
        outputs = ", ".join(one.name for one in self.outputs)
        return html.fragment("Schedule", *parts, subtitle=f"of {outputs}")

    def __getitem__(self, k: Tensor | Operation) -> Stage:
        operation = k.op if isinstance(k, Tensor) else k
        if not isinstance(operation, Operation):
            raise ScheduleError(
                f"a schedule is indexed by a tensor or an operation, not {k!r}", span=user_span()
            )
        found = self.stage_map.get(operation)
        if found is None:
            raise ScheduleError(f"operation {operation.name} is not part of this schedule", span=user_span())
        return found

    def __contains__(self, k: Tensor | Operation) -> bool:
        return (k.op if isinstance(k, Tensor) else k) in self.stage_map

    def normalize(self) -> Schedule:
        """A copy ready for bound inference: inlined stages are put into their readers, loops start at zero."""
        return normalization.normalize(self)

    def create_group(
        self,
        outputs: Tensor | Sequence[Tensor],
        inputs: Tensor | Sequence[Tensor],
        include_inputs: bool = False,
    ) -> Stage:
        """A virtual stage for all stages between inputs and outputs, which can be placed as one."""
        return group.create_group(self, _tensors(outputs), _tensors(inputs), include_inputs)

    def place_scan_update(self, scan: ScanOp) -> None:
        """Tie what a scan does at each step to the scan's loop."""
        made = group.create_group(
            self, scan.update, [*scan.state_placeholder, *scan.inputs], False, recorded=False
        )
        made.attach_type = AttachType.SCAN_UPDATE
        made.attach_ivar = scan.scan_axis
        made.attach_stage = self.stage_map[scan]

    def cache_read(
        self, tensor: Tensor, scope: str, readers: Iterable[Tensor | Operation] | Tensor | Operation
    ) -> Tensor:
        """A copy of a tensor in another storage scope, read by these readers in place of the tensor."""
        found = [readers] if isinstance(readers, (Tensor, Operation)) else list(readers)
        return cache.cache_read(
            self, tensor, scope, [one.op if isinstance(one, Tensor) else one for one in found]
        )

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """A tensor in another storage scope that computes what this one did; this one becomes a copy of it."""
        single = isinstance(tensor, Tensor)
        made = cache.cache_write(self, _tensors(tensor), scope)
        return made[0] if single else made

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Factor a reduction: reduce all but ``axis`` first, into a tensor with that axis, then reduce that
        tensor."""
        made = factor.rfactor(self, tensor, axis, factor_axis)
        return made[0] if len(made) == 1 else made

    def copy(self) -> Schedule:
        """An independent copy over the same operations and axes."""
        made = Schedule(self.outputs)
        mapping: dict[Stage, Stage] = {}
        for stage in (*self.stages, *self.groups):
            clone = Stage(made, stage.op, stage.origin_op, stage.label)
            for name in _COPIED:
                value = getattr(stage, name)
                setattr(clone, name, value.copy() if isinstance(value, (list, dict)) else value)
            mapping[stage] = clone
        for clone in mapping.values():
            clone.attach_stage = mapping[clone.attach_stage] if clone.attach_stage is not None else None
            clone.group = mapping[clone.group] if clone.group is not None else None
        made.stages = [mapping[stage] for stage in self.stages]
        made.groups = [mapping[stage] for stage in self.groups]
        made.stage_map = {operation: mapping[stage] for operation, stage in self.stage_map.items()}
        made.trace = self.trace.copy_for(made)
        return made

    def saved_content(self) -> Any:
        """The operations that the schedule was created for, and what was done since."""
        return [self.stage_map[one].origin_op for one in self.outputs], saved_steps(self.trace)

    @classmethod
    def from_saved(cls, content: Any) -> Self:
        """A new schedule of the operations, on which the steps are taken again."""
        outputs, steps = content
        if not all(isinstance(one, Operation) for one in outputs):
            raise ScheduleError("a schedule is of operations")
        made = cls.create(list(outputs))
        # In a trace apart from the schedule's own, which writes down each step as it is taken.
        trace = Trace(made)
        trace.steps = read_steps(steps)
        trace.replay(made)
        return made


_COPIED = (
    "all_iter_vars",
    "leaf_iter_vars",
    "relations",
    "axis_attributes",
    "attach_type",
    "attach_ivar",
    "attach_stage",
    "scope",
    "is_output",
    "double_buffered",
    "overcomputed",
    "env_thread_axes",
    "store_predicate",
    "group",
    "num_child_stages",
    "is_group",
)


def _tensors(given: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [given] if isinstance(given, Tensor) else list(given)


def create_schedule(ops: Operation | Tensor | Sequence[Operation | Tensor]) -> Schedule:
    """A schedule for the operations that lead to these; they are its outputs."""
    given = [ops] if isinstance(ops, (Operation, Tensor)) else list(ops)
    operations: list[Operation] = []
    for one in given:
        operation = one.op if isinstance(one, Tensor) else one
        if not isinstance(operation, Operation):
            raise ScheduleError(f"a schedule is created from operations, not {one!r}", span=user_span())
        if operation not in operations:
            operations.append(operation)
    if not operations:
        raise ScheduleError("a schedule needs at least one operation", span=user_span())
    return Schedule.create(operations)
