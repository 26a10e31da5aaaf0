"""The choices of a constructed schedule, as data that a tuner can read and change.

Where a scheduler chooses by its model of the machine, it calls ``decide`` with what the model says and what else is
possible. Without a tuner, the model's choice is taken. Within ``with Decisions(given) as decisions:``, the values in
``given`` are, and ``decisions.asked`` lists what was asked: every constructed schedule is a template, its knobs are its
own choices, and its default is the constructed schedule.

    tile = decide("tile", best, lambda: ranked[:32])

Values are numbers, strings, and tuples of them, so that they can be kept as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tilewright.support.errors import ScheduleError

Value = TypeVar("Value")


@dataclass(frozen=True)
class Decision:
    """One choice: what the scheduler's model says, what is possible (that included), and what was taken."""

    name: str
    constructed: Any
    candidates: tuple[Any, ...]
    chosen: Any


class Decisions:
    """Answers for the choices of one schedule, by name. Choices that are not named are the scheduler's."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self.given: Final = {name: as_value(value) for name, value in (given or {}).items()}
        self.asked: dict[str, Decision] = {}
        self._token: Token[Decisions | None] | None = None

    def __enter__(self) -> Decisions:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)

    @property
    def unused(self) -> list[str]:
        """The names of given values that no choice asked for."""
        return [name for name in self.given if name not in self.asked]

    def decide(self, name: str, constructed: Any, candidates: Iterable[Any]) -> Any:
        """The answer to one choice."""
        name = self._distinct(name)
        possible = tuple(dict.fromkeys([as_value(constructed), *map(as_value, candidates)]))
        chosen = self.given.get(name, possible[0])
        if chosen not in possible:
            raise ScheduleError(
                f"the choice {name!r} cannot be {chosen!r} here: it is one of {_shown(possible)}"
            )
        self.asked[name] = Decision(name, possible[0], possible, chosen)
        return chosen

    def _distinct(self, name: str) -> str:
        """A name for a choice that several stages of one graph make: the second is ``tile.1``."""
        if name not in self.asked:
            return name
        number = 1
        while f"{name}.{number}" in self.asked:
            number += 1
        return f"{name}.{number}"


_CURRENT: ContextVar[Decisions | None] = ContextVar("tilewright_schedule_decisions", default=None)


def decide(name: str, constructed: Value, candidates: Callable[[], Iterable[Value]]) -> Value:
    """What a scheduler should take: ``constructed``, unless the current ``Decisions`` say otherwise. ``candidates``
    is called only where somebody listens."""
    current = _CURRENT.get()
    if current is None:
        return constructed
    chosen: Value = current.decide(name, constructed, candidates())
    return chosen


def as_value(value: Any) -> Any:
    """A value as decisions keep it: lists, which JSON has, are tuples."""
    return tuple([as_value(part) for part in value]) if isinstance(value, (list, tuple)) else value


def _shown(possible: tuple[Any, ...]) -> str:
    most = 8
    shown = ", ".join(repr(value) for value in possible[:most])
    return shown if len(possible) <= most else f"{shown}, and {len(possible) - most} more"
