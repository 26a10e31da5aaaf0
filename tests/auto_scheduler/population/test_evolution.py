"""Sampling, mutation and crossover give programs that compute the same; evolution finds what a model likes."""

import random
from typing import Any

import pytest
from tests.auto_scheduler.computations import matmul, matmul_relu
from tests.auto_scheduler.numeric import agrees

from tilewright import auto_scheduler
from tilewright.auto_scheduler.builders import state_loops
from tilewright.auto_scheduler.cost_model import PythonBasedModel
from tilewright.auto_scheduler.population.crossover import cross
from tilewright.auto_scheduler.population.factors import divisors, random_lengths, tile_sizes
from tilewright.auto_scheduler.population.mutations import CPU_MUTATIONS
from tilewright.auto_scheduler.population.sample import sample_state
from tilewright.auto_scheduler.population.settings import Settings, complete_params
from tilewright.auto_scheduler.state_nodes import IteratorAnnotation
from tilewright.auto_scheduler.steps import SplitStep
from tilewright.support.errors import ScheduleError, TilewrightError

SETTINGS = Settings.of(complete_params(None))


def task_of(tensors: Any, target: str = "llvm") -> auto_scheduler.SearchTask:
    return auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(tensors), target=target)


def test_lengths() -> None:
    """Divisors where there are some; sizes that leave a rest for lengths that have none."""
    assert divisors(12) == (1, 2, 3, 4, 6, 12)
    assert tile_sizes(48, 16) == (1, 2, 3, 4, 6, 8, 12, 16)
    assert {1, 8, 16} <= set(tile_sizes(509, 64)) and tile_sizes(7, 64) == (1, 7)
    generator = random.Random(0)
    for _ in range(50):
        lengths = random_lengths(96, 3, 8, generator)
        assert 96 % (lengths[0] * lengths[1] * lengths[2]) == 0 and lengths[-1] <= 8


@pytest.mark.parametrize("tensors", [matmul(8, 16, 12), matmul_relu(7, 16, 13)])
def test_samples_and_their_mutations_compute_the_same(tensors: Any) -> None:
    """Also where the lengths are primes."""
    task = task_of(tensors)
    sketches = auto_scheduler.SketchPolicy(task, seed=0, verbose=0).sketches
    generator = random.Random(3)
    states = [sample_state(task, sketch, SETTINGS, generator) for sketch in sketches]
    changed = {mutate.__name__: 0 for mutate, _ in CPU_MUTATIONS}
    for state in states:
        agrees(task.compute_dag, state)
        for mutate, _ in CPU_MUTATIONS:
            try:
                made = mutate(task, state, SETTINGS, generator)
            except ScheduleError:
                continue
            if made is not None:
                assert made.transform_steps != state.transform_steps
                agrees(task.compute_dag, made)
                changed[mutate.__name__] += 1
    assert all(changed[name] for name in ("mutate_tile_size", "mutate_auto_unroll", "mutate_parallel")), (
        changed
    )


def test_crossover() -> None:
    """A child has splits of both parents, or there is none."""
    task = task_of(matmul(32, 32, 32))
    (sketch, *others) = auto_scheduler.SketchPolicy(task, seed=0, verbose=0).sketches
    generator = random.Random(1)
    made = None
    while made is None:
        one, other = (sample_state(task, sketch, SETTINGS, generator) for _ in range(2))
        made = cross(task, one, other, generator)
    parents = [
        [step for step in state.transform_steps if isinstance(step, SplitStep)] for state in (one, other)
    ]
    splits = [step for step in made.transform_steps if isinstance(step, SplitStep)]
    assert all(step in pair for step, pair in zip(splits, zip(*parents, strict=True), strict=True))
    agrees(task.compute_dag, made)
    assert cross(task, one, sample_state(task, others[0], SETTINGS, generator), generator) is None


class LikesTiles(PythonBasedModel):
    """Only programs whose reduction has an inner tile of two are any good."""

    def predict(self, task: Any, states: Any) -> list[float]:
        return [float(self.is_good(state)) for state in states]

    @staticmethod
    def is_good(state: Any) -> bool:
        return any("k.1 (0,2)" in line for line in str(state).splitlines())


def test_evolution_finds_what_the_model_likes() -> None:
    task = task_of(matmul(10, 10, 4))
    policy = auto_scheduler.SketchPolicy(
        task, LikesTiles(), {"evolutionary_search_population": 64}, seed=2, verbose=0
    )
    bad = [state for state in policy.sample_initial_population() if not LikesTiles.is_good(state)][:20]
    assert bad
    found = policy.evolutionary_search(bad, 5)
    assert LikesTiles.is_good(found[0])
    assert len({state.transform_steps for state in found}) == len(found)


def test_programs_for_a_gpu_fit_it() -> None:
    """Every sampled program has blocks and threads, no more than the limits, and lowers."""
    task = task_of(matmul(128, 128, 64), "cuda")
    policy = auto_scheduler.SketchPolicy(task, params={"sample_init_min_population": 3}, seed=0, verbose=0)
    for state in policy.sample_initial_population()[:3]:
        product = state.stages[-1]
        assert {IteratorAnnotation.BLOCK_X, IteratorAnnotation.THREAD_X} <= {
            one.annotation for one in product.iters
        }
        module = state_loops(auto_scheduler.MeasureInput(task, state))
        assert module.functions


def test_an_unknown_parameter() -> None:
    with pytest.raises(TilewrightError, match="populatoin is not a parameter of SketchPolicy"):
        auto_scheduler.SketchPolicy(task_of(matmul()), params={"populatoin": 3})
