"""Schedules that were found by search, for the functions of a model.

Within ``with scope:``, where ``scope`` is a ``TuningScope``, lowering asks the scope for the schedule of every fused
function. It may construct one with other decisions, make one of its own, or leave the function as it is. Scopes nest;
the innermost that has an answer gives it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tilewright.target.target import Target
from tilewright.te.rewritten_layout import RewrittenLayout
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


@dataclass(frozen=True)
class ImplementationRequest:
    """One of several implementations of a call."""

    operator: str
    implementation: str
    attrs: Any
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    """What the implementation computes."""
    target: Target


@dataclass(frozen=True)
class GraphDecision:
    """A choice that a graph pass makes for a call: the algorithm of a convolution, the packing of a weight."""

    operator: str
    attrs: Any
    types: Sequence[Any]
    """The types of the call's arguments."""
    target: Target
    name: str
    constructed: Any
    candidates: tuple[Any, ...]


class TuningScope(ABC):
    """Where schedules found by search come from."""

    lays_out_weights: ClassVar[bool] = False
    """Whether ``weight_layout`` may answer."""

    @abstractmethod
    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """The schedule of a function; None where this scope has none."""

    def measured_seconds(self, request: ImplementationRequest) -> float | None:
        """What an implementation was measured to take; None if it was not."""
        return None

    def graph_choice(self, decision: GraphDecision) -> Any:
        """What a graph pass should choose; None to leave it to the pass, or to the scope around this one."""
        return None

    def weight_layout(self, request: ScheduleRequest) -> RewrittenLayout | None:
        """The layout in which the function's schedule reads the operator's weight, where that is another than its own.
        It is asked only for weights that are constants; the function is then changed to take the rewritten one, and its
        schedule asked for."""
        return None

    def __enter__(self) -> Self:
        _SCOPES.set((*_SCOPES.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _SCOPES.set(_SCOPES.get()[:-1])


_SCOPES: ContextVar[tuple[TuningScope, ...]] = ContextVar("tilewright_tuning_scopes", default=())


@contextmanager
def untuned() -> Iterator[None]:
    """Leave all scopes for a while."""
    token = _SCOPES.set(())
    try:
        yield
    finally:
        _SCOPES.reset(token)


def is_tuned() -> bool:
    """True within a scope: what a function's code will be does not follow from the function and the target only."""
    return bool(_SCOPES.get())


def measured_seconds(request: ImplementationRequest) -> float | None:
    """What the innermost scope that measured an implementation says it takes."""
    for scope in reversed(_SCOPES.get()):
        found = scope.measured_seconds(request)
        if found is not None:
            return found
    return None


def lays_out_weights() -> bool:
    """True within a scope that may want weights in other layouts."""
    return any(scope.lays_out_weights for scope in _SCOPES.get())


def tuned_weight_layout(request: ScheduleRequest) -> RewrittenLayout | None:
    """The layout that the innermost scope with an answer wants for the weight of a function."""
    for scope in reversed(_SCOPES.get()):
        found = scope.weight_layout(request)
        if found is not None:
            return found
    return None


def decide_in_graph(decision: GraphDecision) -> Any:
    """What a graph pass takes: what the innermost scope with an answer says, else what the pass's model says."""
    for scope in reversed(_SCOPES.get()):
        found = scope.graph_choice(decision)
        if found is not None and found in decision.candidates:
            return found
    return decision.constructed


def tuned_schedule(request: ScheduleRequest) -> Schedule:
    """The schedule of a function: the innermost scope's, else the constructed one."""
    for scope in reversed(_SCOPES.get()):
        found = scope.schedule(request)
        if found is not None:
            return found
    return request.construct()
