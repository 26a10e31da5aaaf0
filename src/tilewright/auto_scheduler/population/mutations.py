"""Small changes of a program: another tile size, unrolling, place or number of parallel loops.

A change is made to the steps, which are then taken again from the start: what no longer fits raises ``ScheduleError``,
and the change is given up.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tilewright.auto_scheduler.population.cpu import CPU_UNROLL_STEPS, GPU_UNROLL_STEPS
from tilewright.auto_scheduler.population.factors import divisors, tile_sizes
from tilewright.auto_scheduler.population.places import places_for
from tilewright.auto_scheduler.population.settings import Settings
from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.state_nodes import IteratorAnnotation, IteratorKind, StateObject
from tilewright.auto_scheduler.steps import (
    AnnotationStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FuseStep,
    PragmaStep,
    SplitStep,
    Step,
)
from tilewright.auto_scheduler.steps.loops import UNROLL_PRAGMA

Mutation = Callable[[Any, StateObject, Settings, random.Random], "StateObject | None"]


def replayed(task: Any, steps: Sequence[Step]) -> StateObject:
    """The state after these steps."""
    start: StateObject = task.compute_dag.init_state
    return start.replay(steps, task.compute_dag)


def _with_step(state: StateObject, number: int, step: Step) -> list[Step]:
    steps = list(state.transform_steps)
    steps[number] = step
    return steps


def mutate_tile_size(
    task: Any, state: StateObject, settings: Settings, generator: random.Random
) -> StateObject | None:
    """Move a factor from one level of a tiling to another."""
    found = [
        number
        for number, step in enumerate(state.transform_steps)
        if isinstance(step, SplitStep) and (step.extent or 0) > 1
    ]
    while found:
        number = found.pop(generator.randrange(len(found)))
        step = state.transform_steps[number]
        assert isinstance(step, SplitStep) and step.extent is not None
        lengths = _moved_factor(step, settings.max_innermost_split_factor, generator)
        if lengths is not None:
            return replayed(task, _with_step(state, number, replace(step, lengths=lengths)))
    return None


def _moved_factor(step: SplitStep, most_inner: int, generator: random.Random) -> tuple[int, ...] | None:
    inner = [length or 1 for length in step.lengths]
    assert step.extent is not None
    total = prod(inner)
    lengths = [-(-step.extent // total), *inner]
    if step.extent % total:
        # The tiles leave a rest: only the innermost size is chosen anew, the others follow from what is left.
        return _other_rest(step.extent, inner, most_inner, generator)
    order = list(range(len(lengths)))
    generator.shuffle(order)
    for position, source in enumerate(order):
        target = order[(position + 1) % len(order)]
        factors = divisors(lengths[source])[1:]
        if target == len(lengths) - 1:
            factors = tuple(one for one in factors if one * lengths[target] <= most_inner)
        if factors:
            factor = generator.choice(factors)
            lengths[source] //= factor
            lengths[target] *= factor
            return tuple(lengths[1:])
    return _other_rest(step.extent, inner, most_inner, generator)


def _other_rest(
    extent: int, inner: list[int], most_inner: int, generator: random.Random
) -> tuple[int, ...] | None:
    """Another innermost size, for lengths whose divisors give no choice."""
    sizes = [size for size in tile_sizes(extent, most_inner) if size != inner[-1]]
    if not sizes:
        return None
    size = generator.choice(sizes)
    rest = -(-extent // size)
    outer = []
    for _ in inner[:-1]:
        outer.append(generator.choice(divisors(rest)))
        rest //= outer[-1]
    return (*outer, size)


def mutate_auto_unroll(
    task: Any, state: StateObject, settings: Settings, generator: random.Random
) -> StateObject | None:
    """Let the loops of a stage be unrolled to another number of statements."""
    found = [
        number
        for number, step in enumerate(state.transform_steps)
        if isinstance(step, PragmaStep) and step.pragma_type.startswith(UNROLL_PRAGMA)
    ]
    if not found:
        return None
    number = generator.choice(found)
    step = state.transform_steps[number]
    assert isinstance(step, PragmaStep)
    allowed = GPU_UNROLL_STEPS if queries.is_gpu_task(task) else CPU_UNROLL_STEPS
    others = [one for one in allowed if one != step.value()]
    changed = replace(step, pragma_type=f"{UNROLL_PRAGMA}${generator.choice(others)}")
    return replayed(task, _with_step(state, number, changed))


def mutate_compute_location(
    task: Any, state: StateObject, settings: Settings, generator: random.Random
) -> StateObject | None:
    """Compute a stage that is not tiled somewhere else."""
    if not settings.change_compute_location:
        return None
    found = []
    for number, step in enumerate(state.transform_steps):
        if not isinstance(step, (ComputeAtStep, ComputeRootStep, ComputeInlineStep)):
            continue
        before = replayed(task, state.transform_steps[:number])
        stage = before.stages[step.stage_id]
        if isinstance(step, ComputeInlineStep) and not queries.is_tiled(stage):
            # Inlined by rule: only what was sampled may move.
            analyzer = queries.analyzer(task, before)
            if analyzer.is_strictly_inlineable(stage.op):
                continue
        if queries.is_tiled(stage) or queries.needs_tiling(task, before, step.stage_id):
            continue
        found.append((number, before))
    if not found:
        return None
    number, before = generator.choice(found)
    stage_id = state.transform_steps[number].stage_id
    choices: list[Step] = [ComputeRootStep(stage_id)]
    choices += [ComputeAtStep(stage_id, *place) for place in places_for(task, before, stage_id)]
    if not queries.has_reduction(before.stages[stage_id]) and not before.attach_map.attached_to(stage_id):
        choices.append(ComputeInlineStep(stage_id))
    others = [step for step in choices if step != state.transform_steps[number]]
    if not others:
        return None
    return replayed(task, _with_step(state, number, generator.choice(others)))


def mutate_parallel(
    task: Any, state: StateObject, settings: Settings, generator: random.Random
) -> StateObject | None:
    """Run one loop more, or one less, in parallel."""
    found = [
        number
        for number, step in enumerate(state.transform_steps)
        if isinstance(step, AnnotationStep)
        and step.annotation == IteratorAnnotation.PARALLEL
        and step.iter_id == 0
    ]
    if not found:
        return None
    number = generator.choice(found)
    step = state.transform_steps[number]
    before_step = state.transform_steps[number - 1] if number else None
    is_fused = (
        isinstance(before_step, FuseStep)
        and before_step.stage_id == step.stage_id
        and before_step.fused_ids[:1] == (0,)
    )
    first = number - 1 if is_fused else number
    count = len(before_step.fused_ids) if is_fused and isinstance(before_step, FuseStep) else 1
    before = replayed(task, state.transform_steps[:first])
    most = _parallel_loops(before, step.stage_id)
    choices = [one for one in (count - 1, count + 1) if 1 <= one <= most]
    if not choices:
        return None
    wanted = generator.choice(choices)
    fused: list[Step] = [FuseStep(step.stage_id, tuple(range(wanted)))] if wanted > 1 else []
    rest = [_renumbered(one, step.stage_id, count - wanted) for one in state.transform_steps[number + 1 :]]
    return replayed(task, [*state.transform_steps[:first], *fused, step, *rest])


def _parallel_loops(state: StateObject, stage_id: int) -> int:
    """How many outermost loops can run in parallel as one."""
    inside = state.attach_map.iter_to_attached_stages
    count = 0
    for number, iterator in enumerate(state.stages[stage_id].iters):
        if iterator.iter_kind == IteratorKind.REDUCTION or iterator.annotation != IteratorAnnotation.NONE:
            break
        count += 1
        if (stage_id, number) in inside:
            break
    return count


def _renumbered(step: Step, stage_id: int, more: int) -> Step:
    """A later step of a stage whose outermost loop became fewer or more; steps of others stay, but for what is placed
    in one of its loops."""
    if isinstance(step, ComputeAtStep) and step.target_stage_id == stage_id:
        return replace(step, target_iter_id=max(0, step.target_iter_id + more))
    if step.stage_id != stage_id:
        return step
    if isinstance(step, (AnnotationStep, PragmaStep)):
        return step if step.iter_id == 0 else replace(step, iter_id=step.iter_id + more)
    if isinstance(step, FuseStep):
        return replace(step, fused_ids=tuple(one + more for one in step.fused_ids))
    return step


CPU_MUTATIONS: tuple[tuple[Mutation, float], ...] = (
    (mutate_tile_size, 0.90),
    (mutate_auto_unroll, 0.04),
    (mutate_compute_location, 0.05),
    (mutate_parallel, 0.01),
)
GPU_MUTATIONS: tuple[tuple[Mutation, float], ...] = ((mutate_tile_size, 0.90), (mutate_auto_unroll, 0.10))
"""The changes and how often each is tried."""
