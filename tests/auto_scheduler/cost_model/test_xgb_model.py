"""Models learn what was measured, and say nothing of what makes no program."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.auto_scheduler.computations import matmul

from tilewright import auto_scheduler
from tilewright.auto_scheduler.measure_types import MeasureErrorNo, MeasureInput, MeasureResult
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.auto_scheduler.steps import SplitStep
from tilewright.support.errors import TilewrightError

pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def measured() -> tuple[Any, list[MeasureInput], list[MeasureResult]]:
    """States whose times follow from their structure: those with a local copy of the tile are ten times as fast."""
    auto_scheduler.register_workload("product_of_models", matmul, override=True)
    task = auto_scheduler.SearchTask(func="product_of_models", args=(32, 32, 32), target="llvm")
    policy = auto_scheduler.SketchPolicy(task, params={"sample_init_min_population": 40}, seed=0, verbose=0)
    states = policy.sample_initial_population()[:40]
    costs = [1e-4 if ".local" in str(state) else 1e-3 for state in states]
    assert len(set(costs)) == 2
    return (
        task,
        [MeasureInput(task, state) for state in states],
        [MeasureResult([cost], 0, "", 0.1, 1.0) for cost in costs],
    )


def test_it_learns(measured: Any, tmp_path: Path) -> None:
    task, inputs, results = measured
    states = [one.state for one in inputs]
    model = auto_scheduler.XGBModel(num_warmup_sample=10, seed=1)
    assert not model.has_learned and len(model.predict(task, states)) == len(states)
    model.update(inputs[:30], results[:30])
    assert model.has_learned
    scores = np.asarray(model.predict(task, states))
    fast = np.array([result.costs[0].value == 1e-4 for result in results])
    assert scores[30:][fast[30:]].min() > scores[30:][~fast[30:]].max()
    # The score of a program is the sum of those of its statements.
    parts = model.predict_stages(task, states[:3])
    np.testing.assert_allclose([part.sum() for part in parts], scores[:3], rtol=1e-4, atol=1e-5)
    model.save(str(tmp_path / "model.json"))
    again = auto_scheduler.XGBModel()
    again.load(str(tmp_path / "model.json"))
    np.testing.assert_allclose(again.predict(task, states), scores, rtol=1e-5)


def test_records_are_learnt_from(measured: Any, tmp_path: Path) -> None:
    task, inputs, results = measured
    path = str(tmp_path / "records.json")
    auto_scheduler.save_records(path, inputs, results)
    model = auto_scheduler.XGBModel(num_warmup_sample=10, seed=1)
    model.update_from_file(path)
    assert model.has_learned and len(model.inputs) == len(inputs)


def test_failures_are_the_slowest(measured: Any) -> None:
    task, inputs, results = measured
    failed = [
        MeasureResult([], MeasureErrorNo.RUN_TIMEOUT, "", 1.0, 1.0) if n % 2 else r
        for n, r in enumerate(results)
    ]
    model = auto_scheduler.XGBModel(num_warmup_sample=10, seed=1)
    model.update(inputs, failed)
    assert model.throughputs()[1::2].max() == 0.0 and model.throughputs()[::2].max() == 1.0


def test_what_makes_no_program(measured: Any) -> None:
    """A state whose steps do not fit has the least score, with and without a model."""
    task, inputs, results = measured
    bad = StateObject((), (SplitStep(2, 9, 32, (4,), True),))
    model = auto_scheduler.XGBModel(num_warmup_sample=10, seed=1)
    before = model.predict(task, [bad, inputs[0].state])
    model.update(inputs, results)
    after = model.predict(task, [bad, inputs[0].state])
    for scores in (before, after):
        assert scores[0] == -np.inf and np.isfinite(scores[1])


def test_nothing_to_save() -> None:
    with pytest.raises(TilewrightError, match="has learned nothing yet"):
        auto_scheduler.XGBModel().save("model.json")


def test_guesses_before_anything_is_measured() -> None:
    """Parallel and vectorized is guessed to be faster than neither; what makes no program is not guessed at."""
    task = auto_scheduler.SearchTask(
        compute_dag=auto_scheduler.ComputeDAG(matmul(64, 64, 64)),
        target="llvm",
        hardware_params=auto_scheduler.HardwareParams(num_cores=2),
    )
    plain = task.compute_dag.get_init_state()
    better = plain.copy()
    i, j, k = better.stages[2].iters
    better.reorder(2, [i, k, j])
    outer, inner = better.split(2, better.stages[2].iters[2], [16])
    better.vectorize(2, inner)
    parallel = better.copy()
    parallel.parallel(2, parallel.stages[2].iters[0])
    bad = StateObject((), (SplitStep(2, 9, 32, (4,), True),))
    scores = auto_scheduler.XGBModel().predict(task, [plain, better, parallel, bad])
    assert scores[0] < scores[1] <= scores[2] == 1.0 and scores[3] == -np.inf
