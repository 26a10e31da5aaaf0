"""Implementations of an operator, as users register them: a tensor expression, a schedule, a name and a level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.target.target import Target
from tilewright.te.schedule.specialized import SpecializedCondition

DEFAULT_LEVEL = 10


@dataclass
class OpImplementation:
    """One way to compute an operator: a tensor expression and a schedule for it."""

    compute_function: Callable[..., Any]
    schedule_function: Callable[..., Any]
    name: str
    plevel: int

    def compute(self, attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        """The output tensors."""
        made = self.compute_function(attrs, inputs, out_type)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def schedule(self, attrs: Any, outs: Sequence[Any], target: Target) -> Any:
        """The schedule of output tensors, within a fused function too."""
        return self.schedule_function(attrs, outs, target)


@dataclass
class OpSpecialization:
    """Implementations that apply under a condition, or always."""

    implementations: list[OpImplementation] = field(default_factory=list)
    condition: SpecializedCondition | None = None

    @property
    def applies(self) -> bool:
        """True if the condition holds for the shapes at hand."""
        return self.condition is None or all(
            Analyzer().can_prove(clause) for clause in self.condition.clauses
        )


class OpStrategy:
    """The implementations of an operator for a target; the one with the highest level is used."""

    def __init__(self) -> None:
        self.specializations: list[OpSpecialization] = []

    def add_implementation(
        self,
        compute: Callable[..., Any],
        schedule: Callable[..., Any],
        name: str = "default",
        plevel: int = DEFAULT_LEVEL,
    ) -> None:
        """Add an implementation; within ``with te.SpecializedCondition(...)``, one for calls where that holds."""
        condition = SpecializedCondition.current()
        place = next((one for one in self.specializations if one.condition is condition), None)
        if place is None:
            place = OpSpecialization(condition=condition)
            self.specializations.append(place)
        place.implementations.append(OpImplementation(compute, schedule, name, plevel))

    @property
    def implementations(self) -> list[OpImplementation]:
        """All implementations that apply, the preferred one first."""
        found = [one for each in self.specializations if each.applies for one in each.implementations]
        return sorted(found, key=lambda one: -one.plevel)
