"""Schedules as JSON: the operations that they compute, and the steps of their traces, which are taken again."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from tilewright.ir.serialize import SAVED_FORMS, SavedForm
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.trace import Result, RootAxis, StageRef, Step, TensorRef
from tilewright.te.tensor import Operation

_REFERENCES: Final[dict[str, Any]] = {
    "axis": RootAxis,
    "result": Result,
    "stage": StageRef,
    "tensor": TensorRef,
}


def _content(schedule: Schedule) -> Any:
    """The operations that the schedule was created for, and what was done since."""
    outputs = [schedule.stage_map[operation].origin_op for operation in schedule.outputs]
    return outputs, [
        (step.primitive, step.stage, [_saved(one) for one in step.arguments], step.results)
        for step in schedule.trace
    ]


def _saved(argument: Any) -> Any:
    """An argument of a step, with a word before it that says what it is."""
    if isinstance(argument, tuple):
        return ("many", *[_saved(one) for one in argument])
    for word, kind in _REFERENCES.items():
        if isinstance(argument, kind):
            return (word, *[getattr(argument, one.name) for one in fields(argument)])
    return ("value", argument)


def _argument(saved: Any) -> Any:
    word, *parts = saved
    if word == "many":
        return tuple([_argument(one) for one in parts])
    if word == "value":
        (value,) = parts
        return value
    return _REFERENCES[word](*parts)


def _restore(content: Any) -> Schedule:
    outputs, steps = content
    if not all(isinstance(one, Operation) for one in outputs):
        raise ScheduleError("a schedule is of operations")
    made = Schedule.create(list(outputs))
    # A trace of its own, to be replayed: the schedule writes down each step as it is taken.
    trace = Schedule(()).trace
    for primitive, stage, arguments, results in steps:
        if not isinstance(primitive, str) or primitive.startswith("_"):
            raise ScheduleError(f"{primitive!r} is not a step of a schedule")
        trace.steps.append(
            Step(primitive, stage, tuple([_argument(one) for one in arguments]), tuple(results))
        )
    trace.replay(made)
    return made


SAVED_FORMS["te.Schedule"] = SavedForm(Schedule, _content, _restore)
