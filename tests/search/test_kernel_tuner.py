"""Tuning the kernels of a model: what is found, what is kept, and what survives a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.backend.explain import kernel_functions
from tilewright.search import ErrorKind, RunOptions, kernel_tuner, running
from tilewright.search.kernel_records import (
    KernelRecord,
    TunedKernels,
    best_choices,
    gains_of,
    read_kernel_records,
)
from tilewright.search.kernel_task import KernelTask, kernel_tasks
from tilewright.search.kernel_tuner import KernelTuner, TuneOptions
from tilewright.search.outcomes import Measured
from tilewright.search.progress import has_failed
from tilewright.search.records import RecordFile

TARGET = tvm.target.Target("llvm")
QUICK = TuneOptions(
    trials=4,
    round_size=4,
    run=RunOptions(number=1, repeat=1),
    confirm=RunOptions(number=1, repeat=2),
)


@pytest.fixture(scope="module")
def model() -> tvm.IRModule:
    """A product with an activation, whose schedule has choices."""
    x = relay.var("x", shape=(24, 40))
    weight = relay.const(np.random.default_rng(0).standard_normal((36, 40)).astype("float32"))
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, weight))))


@pytest.fixture
def tasks(model: tvm.IRModule) -> list[KernelTask]:
    """Its tasks."""
    return kernel_tasks(kernel_functions(relay.build(model, TARGET).ir_mod), TARGET)


@pytest.fixture(autouse=True, scope="module")
def _end_runners() -> Iterator[None]:
    yield
    running.close_runners()


def run(model: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    """The model's result, compiled in the current scope."""
    executor = graph_executor.GraphModule(relay.build(model, TARGET)["default"](tvm.cpu()))
    executor.run(x=x)
    return executor.get_output(0).numpy()


def with_gain(task: KernelTask, choices: object, gain: float | None, **changes: object) -> KernelRecord:
    """A record that says how some choices compare."""
    measured = Measured((1e-3,), ErrorKind.NO_ERROR, "", 0.1, 1.0)
    record = KernelRecord.of(task.workload, dict(choices), measured, gain)  # type: ignore[call-overload]
    return replace(record, workload=replace(record.workload, **changes)) if changes else record


class Watcher:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.changes = 0

    def changed(self, tuner: KernelTuner) -> None:
        self.changes += 1

    def failed(self, task: KernelTask) -> None:
        self.failures.append(task.first_error)


def test_the_untuned_schedule_is_measured_first_and_everything_is_recorded(
    tasks: list[KernelTask], tmp_path: Path
) -> None:
    """As lines of AutoTVM's format, with the machine; the curve never rises."""
    (task,) = tasks
    file, watcher = RecordFile(tmp_path / "records.json"), Watcher()
    tuner = KernelTuner(tasks, file, QUICK, watcher)
    tuner.tune()
    loaded = read_kernel_records(file)
    assert not loaded.problems and not watcher.failures and watcher.changes >= 5
    assert loaded.records[0].choices == task.search.constructed
    assert tuner.trials == 4 and task.trials == 5 and task.untuned < 1
    quick = [record for record in loaded.records[1:] if record.gain is None]
    assert len(quick) == 4 and len({record.choices for record in quick}) == 4
    row = json.loads(file.path.read_text().splitlines()[0])
    assert row["version"] == 0.2 and row["input"][1] == "tilewright.kernel" and row["result"][1] == 0
    assert "cores" in row["tilewright"]["machine"]
    assert KernelRecord.from_json(row) == loaded.records[0]
    heights = [point.kernel_seconds for point in tuner.curve]
    assert heights == sorted(heights, reverse=True)


def test_a_second_run_goes_on_where_the_first_ended(model: tvm.IRModule, tmp_path: Path) -> None:
    """Nothing is measured twice but the untuned schedule; what is known to be best is the start."""
    functions = kernel_functions(relay.build(model, TARGET).ir_mod)
    file = RecordFile(tmp_path / "records.json")
    first = KernelTuner(kernel_tasks(functions, TARGET), file, QUICK)
    first.tune()
    again = KernelTuner(kernel_tasks(functions, TARGET), file, QUICK)
    again.tune()
    assert again.resumed >= 5 and again.trials == 4
    quick = [one.choices for one in read_kernel_records(file).records if one.gain is None]
    constructed = again.tasks[0].search.constructed
    others = [one for one in quick if one != constructed]
    assert len(others) == len(set(others)) == 8 and quick.count(constructed) == 2


def test_only_what_took_turns_and_was_faster_is_applied(model: tvm.IRModule, tasks: list[KernelTask]) -> None:
    """Neither a lower cost of another run nor a gain below one; what was said last counts."""
    (task,) = tasks
    tiles = task.search.space["tile"].candidates
    first, second, third = ((("tile", tile),) for tile in tiles[1:4])
    assert gains_of([with_gain(task, first, None), with_gain(task, second, 0.9)]) == {}
    said = [with_gain(task, first, 1.5), with_gain(task, second, 1.2), with_gain(task, third, 1.1)]
    assert best_choices(gains_of(said)) == {task.workload: (first, 1.5)}
    withdrawn = [*said, with_gain(task, first, 1.0)]
    assert best_choices(gains_of(withdrawn)) == {task.workload: (second, 1.2)}
    x = np.random.default_rng(1).standard_normal((24, 40)).astype("float32")
    untuned = run(model, x)
    with TunedKernels(said) as scope:
        np.testing.assert_allclose(run(model, x), untuned, rtol=1e-4, atol=1e-5)
    assert list(scope.used) == [task.workload] and not scope.refused


@pytest.mark.parametrize(
    ("changes", "choices", "reason"),
    [
        ({"target": "llvm -mcpu=skylake"}, None, "for the target 'llvm -mcpu=skylake'"),
        ({"machine": "i486, 0 bits, 1 cores"}, None, "on another machine (i486, 0 bits, 1 cores)"),
        ({"implementation": "other.cpu"}, None, "for the implementation other.cpu"),
        ({}, (("tile", (1, 1, 1, 99)),), "the choice 'tile' cannot be (1, 1, 1, 99) here"),
        ({}, (("gone", 1),), "there is no choice gone here any more"),
    ],
)
def test_records_that_do_not_fit_are_refused_with_a_reason(
    model: tvm.IRModule, tasks: list[KernelTask], changes: dict, choices: object, reason: str
) -> None:
    """The model is compiled as if there were none."""
    (task,) = tasks
    chosen = choices or (("tile", task.search.space["tile"].candidates[1]),)
    with TunedKernels([with_gain(task, chosen, 2.0, **changes)]) as scope:
        relay.build(model, TARGET)
    assert not scope.used
    assert reason in next(iter(scope.refused.values()))


def test_a_kernel_of_which_every_candidate_fails_is_told_at_once(
    tasks: list[KernelTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first error; the untuned schedule stays what is used."""
    (task,) = tasks
    lower = task.lower

    def broken(assignment: object) -> object:
        if assignment == task.search.constructed:
            return lower(assignment)  # type: ignore[arg-type]
        raise ValueError("out of registers")

    monkeypatch.setattr(task, "lower", broken)
    watcher = Watcher()
    KernelTuner(tasks, RecordFile(tmp_path / "r.json"), QUICK, watcher).tune()
    assert watcher.failures == ["ValueError: out of registers"]
    assert task.gain == 1.0 and task.failures == 4 and not has_failed(task)


def test_a_model_whose_untuned_kernel_fails_ends(
    tasks: list[KernelTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to compare with, so nothing is searched."""
    (task,) = tasks
    monkeypatch.setattr(task, "lower", lambda assignment: 1 // 0)
    watcher = Watcher()
    tuner = KernelTuner(tasks, RecordFile(tmp_path / "r.json"), QUICK, watcher)
    tuner.tune()
    assert has_failed(task) and tuner.trials == 0 and "division" in watcher.failures[0]


def test_time_goes_where_the_model_spends_it(tasks: list[KernelTask], tmp_path: Path) -> None:
    """A kernel that is called often is searched before one that is not; one without gains gives way."""
    (task,) = tasks
    tuner = KernelTuner([], RecordFile(tmp_path / "r.json"))
    task.incumbent, task.untuned = object(), 1e-3  # type: ignore[assignment]
    often = tuner._promise(replace(task, calls=10))
    assert often == pytest.approx(10 * tuner._promise(task))
    assert tuner._promise(replace(task, rounds_without_gain=3)) < tuner._promise(task) / 5
    assert tuner._promise(replace(task, is_exhausted=True)) == 0
    assert kernel_tuner._LEAST_GAIN > 1
