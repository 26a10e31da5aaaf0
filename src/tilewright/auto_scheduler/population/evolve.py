"""Evolution: good programs are changed a little, again and again, and the best that were met are kept."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tilewright.auto_scheduler.population.crossover import cross
from tilewright.auto_scheduler.population.mutations import CPU_MUTATIONS, GPU_MUTATIONS
from tilewright.auto_scheduler.population.settings import Settings
from tilewright.auto_scheduler.sketch.queries import is_gpu_task
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.support.errors import ScheduleError

Scores = Callable[[Sequence[StateObject]], Sequence[float]]
NO_PROGRAM = -1e10
"""Scores below are those of states that make no program."""


@dataclass(frozen=True)
class EvolutionOptions:
    """``population`` states in each of ``generations``, of which the part ``mutation`` are changed ones, and among
    those the part ``crossing`` are made of two; no more generations once so many ``seconds`` have passed."""

    population: int
    generations: int
    mutation: float
    crossing: float = 0.05
    seconds: float = float("inf")


def evolve(
    task: Any,
    start: Sequence[StateObject],
    count: int,
    score: Scores,
    measured: set[Any],
    settings: Settings,
    options: EvolutionOptions,
    generator: random.Random,
) -> list[StateObject]:
    """The ``count`` states with the best scores that were met and not measured yet, the best first."""
    starts = time.monotonic()
    best: list[tuple[float, int, StateObject]] = []
    known: dict[Any, float] = {}
    seen = set(measured)
    order = 0
    current = list(start)
    for generation in range(options.generations + 1):
        scores = _scored(current, score, known)
        alive = [(state, value) for state, value in zip(current, scores, strict=True) if value > NO_PROGRAM]
        for state, value in alive:
            if state.transform_steps in seen:
                continue
            seen.add(state.transform_steps)
            order += 1
            if len(best) < count:
                heapq.heappush(best, (value, -order, state))
            elif value > best[0][0]:
                heapq.heapreplace(best, (value, -order, state))
        done = generation == options.generations or time.monotonic() - starts > options.seconds
        if done or not alive:
            break
        current = _next_generation(task, alive, settings, options, generator)
    return [state for _, _, state in sorted(best, key=lambda one: one[:2], reverse=True)]


def _scored(states: Sequence[StateObject], score: Scores, known: dict[Any, float]) -> list[float]:
    """The score of each state; those that have one already are not scored again."""
    fresh = {state.transform_steps: state for state in states if state.transform_steps not in known}
    if fresh:
        known.update(zip(fresh, map(float, score(list(fresh.values()))), strict=True))
    return [known[state.transform_steps] for state in states]


def _next_generation(
    task: Any,
    alive: Sequence[tuple[StateObject, float]],
    settings: Settings,
    options: EvolutionOptions,
    generator: random.Random,
) -> list[StateObject]:
    """States drawn by their scores, most of them changed."""
    states = [state for state, _ in alive]
    least = min(0.0, *(value for _, value in alive)) if len(alive) > 1 else 0.0
    weights = list(accumulate(value - least + 1e-9 for _, value in alive))
    mutations = GPU_MUTATIONS if is_gpu_task(task) else CPU_MUTATIONS
    kinds = [mutation for mutation, _ in mutations]
    shares = list(accumulate(share for _, share in mutations))
    made: list[StateObject] = []
    attempts = 0
    while len(made) < options.population and attempts < 4 * options.population:
        attempts += 1
        (state,) = generator.choices(states, cum_weights=weights)
        if generator.random() >= options.mutation:
            made.append(state)
            continue
        try:
            if generator.random() < options.crossing:
                (other,) = generator.choices(states, cum_weights=weights)
                changed = cross(task, state, other, generator)
            else:
                (mutate,) = generator.choices(kinds, cum_weights=shares)
                changed = mutate(task, state, settings, generator)
        except ScheduleError:
            continue
        if changed is not None:
            made.append(changed)
    return made
