"""What a sketch rule is."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.support.errors import ScheduleError

Derived = list[tuple[StateObject, int]]
"""States, each with the stage that comes next; below zero where the sketch is complete."""


class Condition(IntEnum):
    """Whether a rule applies, and whether later rules do then. The numbers are those that users' functions return."""

    PASS = 0
    APPLY = 1
    APPLY_AND_SKIP_REST = 2


class SketchRule:
    """Derives states from a state, for one of its stages."""

    name = "SketchRule"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        """Whether the rule applies to a stage."""
        raise NotImplementedError

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        """The states that it gives."""
        raise NotImplementedError


class CustomRule(SketchRule):
    """A rule of a user's: two functions of the search policy, a state and the number of a stage."""

    def __init__(
        self, policy: Any, meet_condition: Callable[..., Any], apply: Callable[..., Any], name: str
    ) -> None:
        self.name = name
        self.policy = policy
        self.meet_condition = meet_condition
        self.apply_function = apply

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        found = self.meet_condition(self.policy, state, stage_id)
        if found not in (0, 1, 2):
            raise ScheduleError(
                f"the condition of the sketch rule {self.name} returned {found!r}; it returns PASS, APPLY or "
                "APPLY_AND_SKIP_REST of PreloadCustomSketchRule"
            )
        return Condition(int(found))

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        derived: Derived = []
        for entry in self.apply_function(self.policy, state, stage_id):
            if len(entry) != 2:
                raise ScheduleError(
                    f"the sketch rule {self.name} gives pairs of a state and the next stage, not {entry!r}"
                )
            made, following = entry
            if int(following) > len(state.stages):
                raise ScheduleError(
                    f"the sketch rule {self.name} goes on with stage {following}, which there is not"
                )
            derived.append((getattr(made, "state_object", made), int(following)))
        return derived
