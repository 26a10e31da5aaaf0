"""One complete program from a sketch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tilewright.auto_scheduler.population import cpu, gpu
from tilewright.auto_scheduler.population.places import choose_places
from tilewright.auto_scheduler.population.settings import Settings
from tilewright.auto_scheduler.population.tiles import fill_tile_sizes
from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.sketch.draft import Draft
from tilewright.auto_scheduler.state_nodes import StateObject

InitRule = Callable[[Any, Draft, Settings, random.Random], None]


def _places(task: Any, draft: Draft, settings: Settings, generator: random.Random) -> None:
    if settings.change_compute_location:
        choose_places(task, draft, generator)
    if draft.state.attach_map.stage_to_attach_iter:
        # How much of a stage is computed where it is placed decides what is vectorized.
        draft.state = task.compute_dag.infer_bound_from_state(draft.state).state_object


def _parallel(task: Any, draft: Draft, settings: Settings, generator: random.Random) -> None:
    cpu.parallelize(task, draft)


def _unroll(task: Any, draft: Draft, settings: Settings, generator: random.Random) -> None:
    cpu.unroll(task, draft, generator)


def _vectorize(task: Any, draft: Draft, settings: Settings, generator: random.Random) -> None:
    cpu.vectorize(draft, settings.max_vectorize_size, generator)


def _threads(task: Any, draft: Draft, settings: Settings, generator: random.Random) -> None:
    gpu.bind_threads(task, draft)


def init_rules(task: Any) -> list[InitRule]:
    """What is decided after the tile sizes, in this order."""
    if queries.is_gpu_task(task):
        return [_threads, _unroll]
    return [_places, _parallel, _unroll, _vectorize]


def sample_state(task: Any, sketch: StateObject, settings: Settings, generator: random.Random) -> StateObject:
    """A program of a sketch, with everything that is open decided at random. Raises ``ScheduleError`` for a choice that
    makes no program."""
    filled = fill_tile_sizes(task, sketch, settings.max_innermost_split_factor, generator)
    draft = Draft(filled, task.compute_dag)
    for rule in init_rules(task):
        rule(task, draft, settings, generator)
    return draft.state
