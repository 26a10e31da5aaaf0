"""The steps of a trace as plain values, which ``save_json`` can write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final

from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.trace import Result, RootAxis, StageRef, Step, TensorRef

_REFERENCES: Final[dict[str, Any]] = {
    "axis": RootAxis,
    "result": Result,
    "stage": StageRef,
    "tensor": TensorRef,
}


def saved_steps(steps: Iterable[Step]) -> list[Any]:
    """A tuple for each step."""
    return [
        (step.primitive, step.stage, [_saved(one) for one in step.arguments], step.results) for step in steps
    ]


def read_steps(saved: Iterable[Any]) -> list[Step]:
    """The steps that ``saved_steps`` wrote."""
    return [
        Step(_public(primitive), stage, tuple([_argument(one) for one in arguments]), tuple(results))
        for primitive, stage, arguments, results in saved
    ]


def _public(primitive: Any) -> str:
    """The name of a method that a text may call."""
    if not isinstance(primitive, str) or primitive.startswith("_"):
        raise ScheduleError(f"{primitive!r} is not a step of a schedule")
    return primitive


def _saved(argument: Any) -> Any:
    """An argument of a step, after a word that says what it is."""
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
