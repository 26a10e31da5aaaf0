"""Filling in the lengths of a sketch's tilings."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tilewright.auto_scheduler.population.factors import random_lengths
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.auto_scheduler.steps import SplitStep, Step
from tilewright.support.errors import ScheduleError


def fill_tile_sizes(task: Any, sketch: StateObject, most_inner: int, generator: random.Random) -> StateObject:
    """The sketch with lengths for all its splits."""
    if sketch.concrete:
        return sketch
    steps: list[Step] = []
    for step in sketch.transform_steps:
        if isinstance(step, SplitStep) and None in step.lengths:
            if step.extent is None:
                raise ScheduleError(
                    f"the length of the loop that a sketch splits is not known: {step.as_text()}"
                )
            lengths = random_lengths(step.extent, len(step.lengths), most_inner, generator)
            step = replace(step, lengths=lengths)
        steps.append(step)
    start: StateObject = task.compute_dag.init_state
    return start.replay(steps, task.compute_dag)
