"""What all steps have in common: their record form and its checks.

A step is one decision about the loops of a program. It applies to a state (the search's view, cheap) and to a
schedule (which gives the program). The fields of a step, in the order of the class, are the items of its record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from tilewright.support.errors import ScheduleError
from tilewright.support.node import Object

if TYPE_CHECKING:
    from tilewright.auto_scheduler.compute_dag import ComputeDAG
    from tilewright.auto_scheduler.replay import Replay
    from tilewright.auto_scheduler.state_nodes import StateObject

STEPS: Final[dict[str, type[Step]]] = {}
"""The classes of steps by the prefix of their records."""

S = TypeVar("S", bound="Step")


@dataclass(frozen=True, slots=True)
class Step(Object):
    """Base of steps. Every step is applied to the stage ``stage_id``, as stages are numbered just before it."""

    prefix: ClassVar[str]
    stage_id: int

    def apply_to_state(self, state: StateObject, dag: ComputeDAG) -> StateObject:
        """The state after this step (which it does not yet list)."""
        raise NotImplementedError

    def apply_to_schedule(self, replay: Replay) -> None:
        """Take the step on the schedule of a replay."""
        raise NotImplementedError

    def to_record(self) -> list[Any]:
        """The step as records have it: its prefix and its fields."""
        values = [getattr(self, each.name) for each in dataclasses.fields(self)]
        return [self.prefix, *(_plain(value) for value in values)]

    def as_text(self) -> str:
        """The step in one short line, for messages."""
        return " ".join(str(item) for item in self.to_record())


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return 0 if value is None else int(value) if isinstance(value, int) else value


def recorded_as(prefix: str) -> Callable[[type[S]], type[S]]:
    """Makes records that begin with ``prefix`` those of a class of steps."""

    def register(cls: type[S]) -> type[S]:
        cls.prefix = prefix
        STEPS[prefix] = cls
        return cls

    return register


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> int:
    if not _is_number(value) or value < 0:
        raise ValueError("a number that is not negative")
    return int(value)


def _numbers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(_is_number(one) and one >= 0 for one in value):
        raise ValueError("a list of numbers that are not negative")
    return tuple(value)


def _lengths(value: Any) -> tuple[int | None, ...]:
    if not isinstance(value, list) or not all(one is None or (_is_number(one) and one > 0) for one in value):
        raise ValueError("a list of positive numbers")
    return tuple(value)


def _flag(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError("0 or 1")
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": _number,
    "int | None": lambda value: _number(value) or None,
    "bool": _flag,
    "str": _text,
    "tuple[int, ...]": _numbers,
    "tuple[int | None, ...]": _lengths,
}


def step_from_record(record: Any) -> Step:
    """The step of a record; the errors say what is wrong with it."""
    if not isinstance(record, list) or not record or not isinstance(record[0], str):
        raise ScheduleError(
            f"{record!r} is not the record of a step, which is a list that begins with a prefix"
        )
    found = STEPS.get(record[0])
    if found is None:
        raise ScheduleError(
            f"{record[0]!r} is not the prefix of a step; those are {', '.join(sorted(STEPS))}"
        )
    fields = dataclasses.fields(found)
    if len(record) != len(fields) + 1:
        raise ScheduleError(
            f"the record {record} has {len(record) - 1} items after its prefix, {found.__name__} has {len(fields)}"
        )
    values: dict[str, Any] = {}
    for each, item in zip(fields, record[1:], strict=True):
        try:
            values[each.name] = _READERS[str(each.type)](item)
        except ValueError as error:
            raise ScheduleError(
                f"the record {record}: {each.name} is {item!r}, it must be {error.args[0]}"
            ) from error
    return found(**values)


def steps_from_records(records: Any) -> tuple[Step, ...]:
    """The steps of a list of records."""
    if not isinstance(records, list):
        raise ScheduleError(f"{records!r} is not a list of steps")
    made: list[Step] = []
    for number, record in enumerate(records):
        try:
            made.append(step_from_record(record))
        except ScheduleError as error:
            raise ScheduleError(f"step {number}: {error.message}") from error
    return tuple(made)


def steps_to_records(steps: Sequence[Step]) -> list[Any]:
    """The records of steps."""
    return [step.to_record() for step in steps]
