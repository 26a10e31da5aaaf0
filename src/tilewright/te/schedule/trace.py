"""The trace of a schedule: every step taken, as data. It prints as Python and replays on another schedule of the same
program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilewright.ir.expr import IterVar
from tilewright.support.errors import ScheduleError
from tilewright.te.tensor import Operation, Tensor

if TYPE_CHECKING:
    from tilewright.te.schedule.schedule import Schedule
    from tilewright.te.schedule.stage import Stage


@dataclass(frozen=True, slots=True)
class RootAxis:
    """The axis of this number among the root axes of a stage's operation."""

    stage: str
    index: int
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Result:
    """A reference to the result of an earlier step."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class StageRef:
    """A stage, by its label."""

    label: str

    def __str__(self) -> str:
        return f"s[{identifier(self.label)}]"


@dataclass(frozen=True, slots=True)
class TensorRef:
    """An output of a stage's operation."""

    label: str
    index: int

    def __str__(self) -> str:
        return (
            identifier(self.label)
            if self.index == 0
            else f"s[{identifier(self.label)}].op.output({self.index})"
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a primitive of a stage, or of the schedule where ``stage`` is None."""

    primitive: str
    stage: str | None
    arguments: tuple[Any, ...]
    results: tuple[str, ...]

    def __str__(self) -> str:
        target = f"s[{identifier(self.stage)}]" if self.stage is not None else "s"
        given = f"{', '.join(self.results)} = " if self.results else ""
        return f"{given}{target}.{self.primitive}({self._arguments()})"

    def _arguments(self) -> str:
        if self.primitive == "split":
            axis, factor, nparts = self.arguments
            return f"{axis}, factor={factor}" if nparts is None else f"{axis}, nparts={nparts}"
        return ", ".join(_argument_text(argument) for argument in self.arguments)


def _argument_text(argument: Any) -> str:
    if isinstance(argument, tuple):
        return f"[{', '.join(_argument_text(one) for one in argument)}]"
    if isinstance(argument, IterVar):
        extent = "" if argument.dom is None else f"(0, {argument.dom.extent}), "
        return f'te.thread_axis({extent}"{argument.thread_tag}")'
    return repr(argument) if isinstance(argument, str) else str(argument)


def _result_name(result: Any) -> str:
    if isinstance(result, IterVar):
        return result.var.name
    return str(result.name if isinstance(result, Tensor) else result.label)


def identifier(name: str) -> str:
    """A name that Python takes."""
    cleaned = re.sub(r"\W", "_", name)
    return f"_{cleaned}" if cleaned[:1].isdigit() else cleaned


class Trace:
    """The steps of one schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.steps: list[Step] = []
        self._names: dict[Any, str] = {}
        self._taken: set[str] = set()

    def append(
        self, primitive: str, stage: Stage | None, arguments: Sequence[Any], results: Sequence[Any] = ()
    ) -> None:
        """Write down a step that was taken."""
        self.finish(self.begin(primitive, stage, arguments), results)

    def begin(self, primitive: str, stage: Stage | None, arguments: Sequence[Any]) -> Step:
        """A step about to be taken. Its arguments are named by what the schedule is before it, which the step
        may change."""
        encoded = tuple(self._encode(argument, stage) for argument in arguments)
        return Step(primitive, None if stage is None else stage.label, encoded, ())

    def finish(self, step: Step, results: Sequence[Any]) -> None:
        """Write down a step that was begun and has given these results."""
        self.steps.append(replace(step, results=tuple(self._name(result) for result in results)))

    def _name(self, result: Any) -> str:
        wanted = identifier(_result_name(result))
        name = wanted
        number = 1
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        self._names[result] = name
        return name

    def _encode(self, argument: Any, stage: Stage | None) -> Any:
        from_step = self._names.get(argument) if isinstance(argument, IterVar) else None
        if from_step is not None:
            return Result(from_step)
        if isinstance(argument, IterVar):
            return self._root_axis(argument, stage)
        if isinstance(argument, (list, tuple)):
            return tuple(self._encode(one, stage) for one in argument)
        if isinstance(argument, (Tensor, Operation)):
            operation = argument.op if isinstance(argument, Tensor) else argument
            index = argument.value_index if isinstance(argument, Tensor) else 0
            return TensorRef(self.schedule.stage_map[operation].label, index)
        return StageRef(argument.label) if hasattr(argument, "leaf_iter_vars") else argument

    def _root_axis(self, axis: IterVar, stage: Stage | None) -> Any:
        """Where an axis that no step gave comes from; a thread axis stands for itself."""
        candidates = ([stage] if stage is not None else []) + self.schedule.stages
        for found in candidates:
            for index, root in enumerate(found.op.root_iter_vars):
                if root is axis:
                    count = len(found.op.axis)
                    place = f"axis[{index}]" if index < count else f"reduce_axis[{index - count}]"
                    return RootAxis(found.label, index, f"s[{identifier(found.label)}].op.{place}")
        return axis

    def copy_for(self, schedule: Schedule) -> Trace:
        """The same steps, for a copy of the schedule."""
        made = Trace(schedule)
        made.steps = list(self.steps)
        made._names = dict(self._names)
        made._taken = set(self._taken)
        return made

    def replay(self, schedule: Schedule) -> None:
        """Take the same steps on another schedule of the same program."""
        given: dict[str, Any] = {}
        for step in self.steps:
            _Replay(schedule, given).take(step)

    def as_python(self) -> str:
        """The steps as Python statements on a schedule ``s``."""
        return "\n".join(str(step) for step in self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return self.as_python()


class _Replay:
    """Takes steps on a schedule; ``given`` holds what they gave."""

    def __init__(self, schedule: Schedule, given: dict[str, Any]) -> None:
        self.schedule = schedule
        self.given = given

    def take(self, step: Step) -> None:
        target: Any = self.schedule if step.stage is None else self.stage(step.stage)
        results = getattr(target, step.primitive)(*[self.decode(argument) for argument in step.arguments])
        if step.results:
            values = results if isinstance(results, (tuple, list)) else (results,)
            self.given.update(zip(step.results, values, strict=True))

    def stage(self, label: str) -> Stage:
        for stage in (*self.schedule.stages, *self.schedule.groups):
            if stage.label == label:
                return stage
        raise ScheduleError(f"the trace names a stage {label}, which this schedule does not have")

    def decode(self, argument: Any) -> Any:
        if isinstance(argument, Result):
            return self.given[argument.name]
        if isinstance(argument, RootAxis):
            return self.stage(argument.stage).op.root_iter_vars[argument.index]
        if isinstance(argument, StageRef):
            return self.stage(argument.label)
        if isinstance(argument, TensorRef):
            return self.stage(argument.label).origin_op.output(argument.index)
        if isinstance(argument, tuple):
            return [self.decode(one) for one in argument]
        return argument
