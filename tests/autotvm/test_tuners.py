"""Tuners on a task whose times are known: what they propose, what they learn, when they stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tilewright import autotvm, te
from tilewright.autotvm.measure import Builder, MeasureErrorNo, MeasureInput, MeasureResult, Runner
from tilewright.autotvm.task.constructed.space import ConstructedSpace, Variant
from tilewright.autotvm.tuner.model_based_tuner import submodular_pick
from tilewright.autotvm.tuner.xgboost_cost_model import XGBoostCostModel

FAST = {"a": 6, "b": 3}


@autotvm.template("tests/two_knobs")
def two_knobs(n: int) -> Any:
    """A template with two knobs and little to lower."""
    cfg = autotvm.get_config()
    cfg.define_knob("a", list(range(12)))
    cfg.define_knob("b", list(range(8)))
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    s[b].split(s[b].op.axis[0], factor=cfg["a"].val + 1)
    return s, [a, b]


class NothingBuilder(Builder):
    """Builds nothing."""

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        return [None] * len(measure_inputs)


class KnownRunner(Runner):
    """Times follow from the knobs; those in ``failing`` fail."""

    def __init__(self, failing: Any = lambda config: False) -> None:
        super().__init__(1, 1)
        self.failing = failing
        self.seen: list[int] = []

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        results = []
        for inp in measure_inputs:
            self.seen.append(inp.config.index)
            if self.failing(inp.config):
                error = RuntimeError("the device is on fire")
                results.append(MeasureResult((error,), MeasureErrorNo.RUNTIME_DEVICE, 0.1, time.time()))
                continue
            options = inp.config.get_other_option()
            distance = sum(abs(options[name] - FAST[name]) for name in FAST if name in options)
            results.append(MeasureResult((1e-3 * (1 + distance),), 0, 0.1, time.time()))
        return results


@pytest.fixture
def task() -> Any:
    np.random.seed(1)
    return autotvm.task.create("tests/two_knobs", args=(64,), target="llvm")


def option(runner: Runner) -> dict[str, Any]:
    return autotvm.measure_option(NothingBuilder(n_parallel=4), runner)


TUNERS = {
    "grid": lambda task: autotvm.tuner.GridSearchTuner(task),
    "random": lambda task: autotvm.tuner.RandomTuner(task),
    "genetic": lambda task: autotvm.tuner.GATuner(task, pop_size=12, elite_num=3),
    "knob": lambda task: autotvm.tuner.XGBTuner(task, plan_size=12, feature_type="knob"),
    "reg": lambda task: autotvm.tuner.XGBTuner(task, plan_size=12, feature_type="knob", loss_type="reg"),
    "itervar": lambda task: autotvm.tuner.XGBTuner(task, plan_size=24, feature_type="itervar"),
    "curve": lambda task: autotvm.tuner.XGBTuner(task, plan_size=24, feature_type="curve"),
}


@pytest.mark.parametrize("name", TUNERS)
def test_every_tuner_finds_the_best(task: Any, name: str) -> None:
    """With as many trials as points, all are measured once, and the best is known."""
    runner = KnownRunner()
    tuner = TUNERS[name](task)
    tuner.tune(200, option(runner))
    assert len(set(runner.seen)) == len(runner.seen)
    assert tuner.best_config.get_other_option() == FAST
    assert tuner.best_measure_pair[1].costs == (1e-3,)
    if name != "genetic":
        assert len(runner.seen) == 96


@pytest.mark.parametrize("name", ["genetic", "knob", "reg"])
def test_learning_tuners_need_fewer_trials(task: Any, name: str) -> None:
    """Half of the points are enough to come close to the best."""
    tuner = TUNERS[name](task)
    tuner.tune(48, option(KnownRunner()))
    assert tuner.best_measure_pair[1].costs[0] <= 2e-3


def test_ranges(task: Any) -> None:
    """Index-based tuners keep to a range; one that is not part of the space is refused."""
    runner = KnownRunner()
    autotvm.tuner.RandomTuner(task, range_idx=(8, 15)).tune(100, option(runner))
    assert sorted(runner.seen) == list(range(8, 16))
    with pytest.raises(ValueError, match="which has 96"):
        autotvm.tuner.GridSearchTuner(task, range_idx=(90, 96))


def test_early_stopping(task: Any) -> None:
    """Tuning ends when so many trials brought nothing better."""
    runner = KnownRunner()
    tuner = autotvm.tuner.GridSearchTuner(task)
    tuner.tune(96, option(runner), early_stopping=10)
    assert len(runner.seen) < 96
    assert len(runner.seen) - tuner.best_iter >= 10


@pytest.mark.parametrize("name", TUNERS)
def test_the_default_comes_first(task: Any, name: str) -> None:
    """Where a space has a default, every tuner measures it first, and once."""
    task.config_space = ConstructedSpace(
        [Variant({"c": 1}, {"a": tuple(range(12)), "b": tuple(range(8))}), Variant({"c": 2}, {"a": (0, 1)})]
    )
    runner = KnownRunner()
    TUNERS[name](task).tune(30, option(runner))
    assert runner.seen[0] == 0
    assert runner.seen.count(0) == 1


def test_when_everything_fails_it_is_said_at_once(task: Any, caplog: pytest.LogCaptureFixture) -> None:
    """After the first few failures, with the first error; and the search goes on."""
    runner = KnownRunner(failing=lambda config: config.index < 20)
    counts = []
    tuner = autotvm.tuner.GridSearchTuner(task)
    with caplog.at_level(logging.WARNING, "autotvm"):
        tuner.tune(
            96,
            option(runner),
            callbacks=[lambda *_: counts.append((len(runner.seen), "on fire" in caplog.text))],
        )
    assert counts[0] == (4, False) and counts[1] == (8, True)
    assert caplog.text.count("all of the first 8 candidates failed") == 1
    assert tuner.first_error == "RUNTIME_DEVICE: the device is on fire"
    assert tuner.best_config.get_other_option() == FAST


def test_two_failures_of_two_are_said(task: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Few trials that all fail are said at the end."""
    with caplog.at_level(logging.WARNING, "autotvm"):
        autotvm.tuner.RandomTuner(task).tune(2, option(KnownRunner(failing=lambda config: True)))
    assert "all of the first 2 candidates failed" in caplog.text


def _records(task: Any, indices: Sequence[int]) -> list[Any]:
    inputs = [MeasureInput(task.target, task, task.config_space.get(index)) for index in indices]
    return list(zip(inputs, KnownRunner().run(inputs, inputs), strict=True))


@pytest.mark.parametrize("features", ["knob", "itervar"])
def test_transfer_from_another_task(task: Any, features: str) -> None:
    """Records of a task of another size rank this one's points before any is measured."""
    other = autotvm.task.create("tests/two_knobs", args=(128,), target="llvm")
    records = _records(other, range(96))
    tuner = autotvm.tuner.XGBTuner(task, plan_size=8, feature_type=features)
    tuner.load_history(records, min_seed_records=97)
    assert tuner.cost_model.base_model is None
    tuner.load_history(records, min_seed_records=90)
    first = [config.get_other_option() for config in tuner.next_batch(6)]
    distances = [sum(abs(one[name] - FAST[name]) for name in FAST) for one in first]
    assert np.median(distances) <= 3, distances


def test_the_model_ranks_what_it_has_not_seen(task: Any) -> None:
    """Fitted to every third point, it orders the others."""
    model = XGBoostCostModel(task, "knob", "rank")
    assert set(model.predict(range(4))) == {0.0}
    seen = list(range(0, 96, 3))
    model.fit(seen, [1 / res.costs[0] for _, res in _records(task, seen)], 8)
    unseen = [index for index in range(96) if index % 3]
    costs = np.array([res.costs[0] for _, res in _records(task, unseen)])
    scores = model.predict(unseen)
    best = np.argsort(-scores)[:8]
    assert costs[best].mean() < 0.6 * costs.mean()


def test_unknown_kinds_of_models_are_refused(task: Any) -> None:
    """The error lists what there is."""
    with pytest.raises(RuntimeError, match="itervar, curve, knob"):
        autotvm.tuner.XGBTuner(task, feature_type="smell")
    with pytest.raises(RuntimeError, match="rank or reg"):
        autotvm.tuner.XGBTuner(task, loss_type="sad")


def test_diversity() -> None:
    """A pick for variety takes points whose knobs have values that were not picked."""
    knobs = [[0, 0], [0, 0], [1, 1], [0, 1]]
    assert submodular_pick(np.zeros(4), knobs, 2) == [0, 2]
    assert submodular_pick(np.array([0, 9, 0, 0]), knobs, 1) == [1]


def test_callbacks(task: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The monitor keeps speeds and times, the database results, and the bar is one line."""
    monitor, database = autotvm.tuner.callback.Monitor(), autotvm.database.DummyDatabase()
    autotvm.tuner.GridSearchTuner(task).tune(
        8,
        option(KnownRunner(failing=lambda config: config.index == 0)),
        callbacks=[
            monitor,
            autotvm.callback.log_to_database(database),
            autotvm.callback.progress_bar(8, prefix="[task]", si_prefix="k"),
        ],
    )
    assert list(monitor.trial_scores() > 0) == [False, *[True] * 7]
    assert len(monitor.trial_timestamps()) == 8 and len(database.db) == 8
    shown = capsys.readouterr().out
    assert "(8/8, 1 failed)" in shown and shown.endswith("Done.\n") and shown.count("\n") == 1
