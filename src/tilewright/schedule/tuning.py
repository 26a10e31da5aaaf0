"""Schedules that were found by search, for the functions of a model.

Within ``with scope:``, where ``scope`` is a ``TuningScope``, lowering asks the scope for the schedule of every fused
function. It may construct one with other decisions, make one of its own, or leave the function as it is. Scopes nest;
the innermost that has an answer gives it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

from tilewright.target.target import Target
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor


@dataclass(frozen=True)
class ScheduleRequest:
    """A fused function that needs a schedule."""

    operator: str
    """The operator that schedules it."""
    implementation: str
    """The name of the operator's implementation: that of a row of the strategy table, or the operator's."""
    attrs: Any
    """The operator's attributes."""
    inputs: Sequence[Tensor]
    """The operator's arguments."""
    arguments: Sequence[Tensor]
    """The function's arguments: its inputs, then its outputs."""
    outputs: Sequence[Tensor]
    """The function's outputs."""
    target: Target
    construct: Callable[[], Schedule]
    """The schedule without search. Each call makes a new one."""


class TuningScope(ABC):
    """Where schedules found by search come from."""

    @abstractmethod
    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """The schedule of a function; None where this scope has none."""

    def __enter__(self) -> Self:
        _SCOPES.set((*_SCOPES.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _SCOPES.set(_SCOPES.get()[:-1])


_SCOPES: ContextVar[tuple[TuningScope, ...]] = ContextVar("tilewright_tuning_scopes", default=())


def is_tuned() -> bool:
    """True within a scope: what a function's code will be does not follow from the function and the target only."""
    return bool(_SCOPES.get())


def tuned_schedule(request: ScheduleRequest) -> Schedule:
    """The schedule of a function: the innermost scope's, else the constructed one."""
    for scope in reversed(_SCOPES.get()):
        found = scope.schedule(request)
        if found is not None:
            return found
    return request.construct()
