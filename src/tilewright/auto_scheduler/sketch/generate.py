"""All sketches of a task: rules are tried on its stages from the last to the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.auto_scheduler.sketch.cpu_rules import (
    AddCacheWrite,
    AddRfactor,
    AlwaysInline,
    MultiLevelTiling,
    MultiLevelTilingWithFusion,
    SimplifyComputeWithConstTensor,
    SkipStage,
)
from tilewright.auto_scheduler.sketch.gpu_rules import (
    AddCacheRead,
    CrossThreadReduction,
    SpecialComputeLocation,
)
from tilewright.auto_scheduler.sketch.queries import is_gpu_task
from tilewright.auto_scheduler.sketch.rule import Condition, SketchRule
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.auto_scheduler.steps import RfactorStep, SplitStep
from tilewright.support.errors import ScheduleError

MOST_SKETCHES = 4096
"""A graph of many reductions has a sketch for every combination of what is done to each."""


def sketch_rules(task: Any) -> list[SketchRule]:
    """The rules for a task's target, in the order in which they are tried."""
    shared: list[SketchRule] = [AlwaysInline(), SimplifyComputeWithConstTensor()]
    tiling: list[SketchRule] = [
        AddCacheWrite(),
        MultiLevelTilingWithFusion(),
        MultiLevelTiling(),
        SkipStage(),
    ]
    if is_gpu_task(task):
        return [AddCacheRead(), SpecialComputeLocation(), *shared, CrossThreadReduction(), *tiling]
    return [*shared, AddRfactor(), *tiling]


def generate_sketches(task: Any, rules: Sequence[SketchRule]) -> list[StateObject]:
    """The sketches that the rules derive, those of fewer steps first."""
    start: StateObject = task.compute_dag.init_state
    current = [(start, len(start.stages) - 1)]
    complete: list[StateObject] = []
    while current:
        following: list[tuple[StateObject, int]] = []
        for state, stage_id in current:
            if stage_id < 0:
                complete.append(state)
            else:
                following += _derive(task, rules, state, stage_id)
        current = following[:MOST_SKETCHES]
    return [_open_factors(state) for state in complete]


def _derive(
    task: Any, rules: Sequence[SketchRule], state: StateObject, stage_id: int
) -> list[tuple[StateObject, int]]:
    derived: list[tuple[StateObject, int]] = []
    for rule in rules:
        try:
            condition = rule.condition(task, state, stage_id)
            if condition == Condition.PASS:
                continue
            derived += rule.apply(task, state, stage_id)
        except ScheduleError as error:
            raise ScheduleError(
                f"the sketch rule {rule.name} on stage {state.stages[stage_id].op.name}: {error.message}"
            ) from error
        if condition == Condition.APPLY_AND_SKIP_REST:
            break
    return derived


def _open_factors(state: StateObject) -> StateObject:
    """The sketch with the lengths of factored reductions left open."""
    steps = list(state.transform_steps)
    for number, step in enumerate(steps):
        before = steps[number - 1] if number else None
        if isinstance(step, RfactorStep) and isinstance(before, SplitStep) and before.lengths == (1,):
            steps[number - 1] = replace(before, lengths=(None,))
    changed = tuple(steps)
    if changed == state.transform_steps:
        return state
    return replace(state, transform_steps=changed, concrete=False)
