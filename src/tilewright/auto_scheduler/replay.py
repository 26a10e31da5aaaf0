"""Taking the steps of a state on a schedule, and writing them down as Python while doing so.

The text and the schedule come from the same calls, so that they cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.auto_scheduler.state_nodes import clean_name
from tilewright.auto_scheduler.steps.base import Step
from tilewright.ir.expr import IterVar
from tilewright.support.errors import ScheduleError
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation

if TYPE_CHECKING:
    Added = Sequence[tuple[Step, Sequence[Step]]]


class PythonText:
    """The lines of a replay as Python statements on a schedule ``s``; tensors are variables named as they are."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.lines: list[str] = []
        self.taken: set[str] = set()
        self.stages: dict[Stage, str] = {}
        self.axes: dict[IterVar, str] = {}
        for stage in stages:
            self.name_stage(stage)

    def name_stage(self, stage: Stage) -> str:
        """Give a stage the name of its tensor, and its axes names."""
        name = self.stages[stage] = self.new_name(clean_name(stage.op.name))
        self.name_axes(stage)
        return name

    def name_axes(self, stage: Stage) -> None:
        """Name the axes that a stage starts from."""
        if not isinstance(stage.op, ComputeOp) or not stage.leaf_iter_vars:
            return
        name = self.stages[stage]
        for axis in stage.leaf_iter_vars:
            self.axes[axis] = self.new_name(clean_name(axis.var.name, name))
        names = ", ".join(self.axes[axis] for axis in stage.leaf_iter_vars)
        comma = "," if len(stage.leaf_iter_vars) == 1 else ""
        self.lines.append(f"{names}{comma} = tuple(s[{name}].op.axis) + tuple(s[{name}].op.reduce_axis)")

    def new_name(self, wanted: str) -> str:
        """A name that is not taken."""
        name, number = wanted, 1
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name

    def value(self, given: Any) -> str:
        """The text of an argument."""
        if isinstance(given, Stage):
            return f"s[{self.stages[given]}]"
        if isinstance(given, IterVar):
            found = self.axes.get(given)
            return found if found is not None else f'te.thread_axis("{given.thread_tag}")'
        return f'"{given}"' if isinstance(given, str) else str(given)

    def call(self, stage: Stage, primitive: str, arguments: Iterable[Any], named: dict[str, Any]) -> str:
        """The text of a call."""
        given = [self.value(one) for one in arguments]
        given += [f"{name}={self.value(value)}" for name, value in named.items()]
        return f"{self.value(stage)}.{primitive}({', '.join(given)})"

    def name_results(self, arguments: Sequence[Any], result: Any) -> str:
        """Names for the axes that a call gave, and the assignment to them."""
        if isinstance(result, tuple):
            parent = self.axes[arguments[0]]
            for axis, ending in zip(result, ("o", "i"), strict=True):
                self.axes[axis] = self.new_name(f"{parent}_{ending}")
            return ", ".join(self.axes[axis] for axis in result) + " = "
        if isinstance(result, IterVar) and result not in self.axes:
            parts = "_".join(self.axes[axis] for axis in arguments) or "singleton"
            self.axes[result] = self.new_name(f"{parts}_fused" if arguments else parts)
            return f"{self.axes[result]} = "
        return ""


class Replay:
    """A schedule on which steps are taken. ``stages`` are numbered as those of a state are."""

    def __init__(
        self,
        ops: Sequence[Operation],
        outputs: Sequence[Operation],
        steps: Sequence[Step],
        text: bool = False,
    ) -> None:
        self.schedule = Schedule.create(outputs)
        self.stages: list[Stage] = [self.schedule.stage_map[operation] for operation in ops]
        self.steps = steps
        self.text = PythonText(self.stages) if text else None

    def run(self) -> None:
        """Take all steps; an error says which of them is wrong."""
        for number, step in enumerate(self.steps):
            try:
                step.apply_to_schedule(self)
            except ScheduleError as error:
                raise ScheduleError(f"step {number} ({step.as_text()}): {error.message}") from error

    def run_added(self, added: Added) -> None:
        """Take only the steps that add stages, and before each what it depends on."""
        for step, loop_steps in added:
            for one in loop_steps:
                replace(one, stage_id=step.stage_id).apply_to_schedule(self)
            step.apply_to_schedule(self)

    def axis(self, stage_id: int, iter_id: int) -> IterVar:
        """The axis that stands for an iterator now."""
        return self.stages[stage_id].leaf_iter_vars[iter_id]

    def call(self, stage: Stage, primitive: str, *arguments: Any, **named: Any) -> Any:
        """Call a primitive of a stage."""
        text = self.text and self.text.call(stage, primitive, arguments, named)
        result = getattr(stage, primitive)(*arguments, **named)
        if self.text is not None:
            self.text.lines.append(self.text.name_results(arguments, result) + str(text))
        return result

    def cache_read(self, source: Stage, scope: str, readers: Sequence[Stage]) -> None:
        """Copy the result of a stage for its readers."""
        copy = self.schedule.cache_read(source.op.output(0), scope, [reader.op for reader in readers])
        stage = self.schedule.stage_map[copy.op]
        self.stages.insert(self.stages.index(source) + 1, stage)
        if self.text is not None:
            names = ", ".join(self.text.stages[reader] for reader in readers)
            place = len(self.text.lines)
            name = self.text.name_stage(stage)
            call = f's.cache_read({self.text.stages[source]}, "{scope}", [{names}])'
            self.text.lines.insert(place, f"{name} = {call}")

    def cache_write(self, target: Stage, scope: str) -> None:
        """Compute a stage in other memory."""
        made = self.schedule.cache_write(list(target.op.outputs), scope)
        self._split(
            target, self.schedule.stage_map[made[0].op], f'cache_write([{self._outputs(target)}], "{scope}")'
        )

    def rfactor(self, target: Stage, axis: IterVar, factor_axis: int) -> None:
        """Reduce a stage in two parts."""
        where = "" if self.text is None else f"{self.text.stages[target]}, {self.text.value(axis)}"
        made = self.schedule.rfactor(target.op.output(0), axis, factor_axis)
        first = made[0] if isinstance(made, list) else made
        self._split(target, self.schedule.stage_map[first.op], f"rfactor({where}, {factor_axis})")

    def _outputs(self, stage: Stage) -> str:
        """The tensors of a stage as Python: its variable stands for the first."""
        if self.text is None or stage.op.num_outputs == 1:
            return "" if self.text is None else self.text.stages[stage]
        name = self.text.stages[stage]
        return ", ".join(f"s[{name}].op.output({number})" for number in range(stage.op.num_outputs))

    def _split(self, target: Stage, made: Stage, call: str) -> None:
        """A stage became two."""
        self.stages.insert(self.stages.index(target), made)
        if self.text is None:
            return
        place = len(self.text.lines)
        fresh = self.text.name_stage(made)
        # Several outputs are a list in both cases; one is a list for a cache, which takes a list.
        ending = ", *_" if target.op.num_outputs > 1 else "," if call.startswith("cache_write") else ""
        self.text.lines.insert(place, f"{fresh}{ending} = s.{call}")
        self.text.name_axes(target)
