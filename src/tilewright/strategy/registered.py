"""Strategies and schedules that users register for operators by target key. They take precedence over the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.op import Op
from tilewright.strategy.pattern import OpPattern
from tilewright.target.target import Target

Applies = Callable[[Any, Sequence[Any]], bool]
"""(attrs, inputs) to whether a schedule is meant for such a call."""

INJECTIVE, REDUCE, DEFAULT = "injective", "reduce", "default"
"""The kinds of operators that a schedule can be registered for as a whole."""

_KINDS = {
    OpPattern.ELEMWISE: INJECTIVE,
    OpPattern.BROADCAST: INJECTIVE,
    OpPattern.INJECTIVE: INJECTIVE,
    OpPattern.COMM_REDUCE: REDUCE,
}


@dataclass(frozen=True)
class RegisteredSchedule:
    """A schedule (attrs, outs, target) for the calls of an operator, or of a kind of operators, that it applies to."""

    key: str
    schedule: Callable[..., Any]
    applies: Applies
    name: str


_STRATEGIES: dict[tuple[str, str], Callable[..., Any]] = {}
_SCHEDULES: dict[str, list[RegisteredSchedule]] = {}


def kind_of(op: Op) -> str:
    """The kind of an operator, as a schedule that belongs to a kind sees it."""
    pattern = op.get_attr("TOpPattern")
    return DEFAULT if pattern is None else _KINDS.get(OpPattern(pattern), DEFAULT)


def register_strategy_for(operator: str, key: str, strategy: Callable[..., Any]) -> None:
    """Use a strategy, (attrs, inputs, out_type, target) to an ``OpStrategy``, under targets with the key."""
    _STRATEGIES[operator, key] = strategy


def register_schedule_for(
    operator: str,
    key: str,
    schedule: Callable[..., Any],
    applies: Applies = lambda attrs, inputs: True,
    name: str = "",
) -> None:
    """Use a schedule, (attrs, outs, target) to a schedule, under targets with the key: for an operator, or for the
    operators of a kind (``"injective"``, ``"reduce"``) that have none of their own."""
    entries = _SCHEDULES.setdefault(operator, [])
    _SCHEDULES[operator] = [one for one in entries if (one.key, one.name) != (key, name)]
    _SCHEDULES[operator].append(RegisteredSchedule(key, schedule, applies, name))


def strategy_for(operator: str, target: Target) -> Callable[..., Any] | None:
    """The strategy that was registered for an operator under a key of the target."""
    return next((found for key in target.keys if (found := _STRATEGIES.get((operator, key)))), None)


def schedule_for(
    operator: str, target: Target, attrs: Any = None, inputs: Sequence[Any] = ()
) -> RegisteredSchedule | None:
    """The schedule that was registered for an operator, or a kind, under a key of the target, and applies."""
    entries = _SCHEDULES.get(operator, ())
    return next(
        (one for key in target.keys for one in entries if one.key == key and one.applies(attrs, inputs)), None
    )


def forget(operator: str, key: str) -> None:
    """Remove what was registered for an operator, or a kind, under a key."""
    _STRATEGIES.pop((operator, key), None)
    _SCHEDULES[operator] = [one for one in _SCHEDULES.get(operator, []) if one.key != key]


def has_registered(op: Op, target: Target) -> bool:
    """True if something was registered for the operator or its kind under a key of the target."""
    if strategy_for(op.name, target) is not None:
        return True
    return any(one.key in target.keys for name in (op.name, kind_of(op)) for one in _SCHEDULES.get(name, ()))
