"""A program of two: some choices of one, the others of the other."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tilewright.auto_scheduler.population.mutations import replayed
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.auto_scheduler.steps import PragmaStep, SplitStep, Step


def cross(task: Any, one: StateObject, other: StateObject, generator: random.Random) -> StateObject | None:
    """A state with the structure of the first and some of the tile sizes and unrolling of the second; None if they do
    not have the same structure, or the same choices."""
    if len(one.transform_steps) != len(other.transform_steps):
        return None
    steps: list[Step] = []
    changed = False
    for mine, theirs in zip(one.transform_steps, other.transform_steps, strict=True):
        if not _same_place(mine, theirs):
            return None
        taken = mine if mine == theirs or generator.random() < 0.5 else theirs
        changed = changed or taken != mine
        steps.append(taken)
    return replayed(task, steps) if changed else None


def _same_place(one: Step, other: Step) -> bool:
    """True if two steps are the same but for a choice of lengths or unrolling."""
    if isinstance(one, SplitStep) and isinstance(other, SplitStep):
        return replace(one, lengths=other.lengths) == other and len(one.lengths) == len(other.lengths)
    if isinstance(one, PragmaStep) and isinstance(other, PragmaStep):
        return replace(one, pragma_type=other.pragma_type) == other
    return one == other
