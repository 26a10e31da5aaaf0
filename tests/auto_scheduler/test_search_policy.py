"""A search from end to end: what is measured first, what is recorded, what is applied."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.auto_scheduler.computations import matmul
from tests.auto_scheduler.numeric import agrees

import tilewright as tvm
from tilewright import auto_scheduler
from tilewright.auto_scheduler.builders import constructed_schedule
from tilewright.auto_scheduler.measure_types import (
    MeasureCallback,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
)
from tilewright.auto_scheduler.measurer import ProgramMeasurer
from tilewright.auto_scheduler.population.seeds import constructed_states
from tilewright.auto_scheduler.runners import Comparison
from tilewright.auto_scheduler.untuned import best_comparison, read_comparisons, read_note
from tilewright.auto_scheduler.untuned_note import untuned_note
from tilewright.search.measure import Built, Measured
from tilewright.support.errors import ScheduleError

SMALL = {"evolutionary_search_population": 16, "sample_init_min_population": 8}


def new_task(*sizes: int) -> auto_scheduler.SearchTask:
    auto_scheduler.register_workload("product_of_searches", matmul, override=True)
    return auto_scheduler.SearchTask(func="product_of_searches", args=sizes or (16, 16, 16), target="llvm")


class Told(MeasureCallback):
    """Remembers what it was told, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def callback(self, policy: Any, inputs: Any, results: Any) -> None:
        self.events += ["candidate"] * len(inputs)

    def untuned(self, policy: Any, seconds: float) -> None:
        self.events.append("untuned")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[auto_scheduler.SearchTask, Path, Told]:
    """A task with six measured candidates in a file."""
    path = tmp_path_factory.mktemp("search") / "records.json"
    task, told = new_task(), Told()
    policy = auto_scheduler.SketchPolicy(task, params=SMALL, seed=1, verbose=0)
    task.tune(
        auto_scheduler.TuningOptions(
            6,
            num_measures_per_round=3,
            verbose=0,
            builder=auto_scheduler.LocalBuilder(timeout=120),
            runner=auto_scheduler.LocalRunner(timeout=60, number=1, min_repeat_ms=0),
            measure_callbacks=[auto_scheduler.RecordToFile(path), told],
        ),
        policy,
    )
    return task, path, told


def test_the_constructed_schedule_is_measured_first(searched: Any) -> None:
    """Before any candidate; its time is in the file, as a comment that readers of records skip."""
    task, path, told = searched
    assert told.events[0] == "untuned" and told.events.count("candidate") >= 6
    first = path.read_text().splitlines()[0]
    key, seconds = read_note(first)
    assert key == (task.workload_key, "llvm") and 0 < seconds < 10
    inputs, results = auto_scheduler.RecordReader(path).read_lines()
    assert len(inputs) >= 6
    assert all(result.error_no == MeasureErrorNo.NO_ERROR for result in results)
    assert len({one.state.transform_steps for one in inputs[:6]}) == 6


def test_what_is_applied_computes_the_product(searched: Any) -> None:
    task, path, _ = searched
    for one in auto_scheduler.load_records(path):
        agrees(task.compute_dag, one[0].state)
        break
    schedule, arguments = task.apply_best(path)
    built = tvm.build(schedule, arguments, "llvm")
    a, b = (np.random.default_rng(seed).standard_normal((16, 16)).astype("float32") for seed in (0, 1))
    out = tvm.nd.empty((16, 16))
    built(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4, atol=1e-5)


def test_a_search_goes_on(searched: Any) -> None:
    """What a file has is not measured again."""
    task, path, _ = searched
    policy = auto_scheduler.SketchPolicy(
        task,
        params=SMALL,
        seed=1,
        verbose=0,
        init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(path)],
    )
    known = {one.state.transform_steps for one, _ in auto_scheduler.load_records(path)}
    assert set(policy.measured) == known
    assert not known & {state.transform_steps for state in policy._candidates(4)}


def test_inputs_travel_as_json(searched: Any) -> None:
    """To another process, and back."""
    task, path, _ = searched
    first, _ = next(iter(auto_scheduler.load_records(path)))
    again = MeasureInput.deserialize(json.loads(json.dumps(first.serialize())))
    assert again.state.transform_steps == first.state.transform_steps
    assert again.task.workload_key == task.workload_key
    agrees(again.task.compute_dag, again.state)
    with pytest.raises(ScheduleError, match="not those of a measured input"):
        MeasureInput.deserialize(["nonsense", ()])


def records(path: Path, task: Any, lines: list[str | float]) -> None:
    """A file of notes (given as texts) and records with these costs, of different states."""
    for number, line in enumerate(lines):
        if isinstance(line, str):
            with path.open("a") as stream:
                stream.write(line + "\n")
            continue
        state = task.compute_dag.get_init_state()
        state.split(2, state.stages[2].iters[0], [2 ** (1 + number % 4)])
        auto_scheduler.save_records(
            path, [MeasureInput(task, state)], [MeasureResult([line], 0, "", 0.1, number)]
        )


def test_nothing_slower_than_untuned_is_applied(tmp_path: Path) -> None:
    """A record counts against the note before it; without a note it counts as it is."""
    task, path = new_task(), tmp_path / "records.json"
    records(path, task, [untuned_note(task, 2.0), 3.0, 4.0])
    found = best_comparison(path, task)
    assert found is not None and found.cost == 3.0 and not found.is_faster
    schedule, _ = task.apply_best(path)
    assert str(schedule.trace) == str(constructed_schedule(task).trace)
    assert not auto_scheduler.ApplyHistoryBest(path).best
    # The same state measured again, in turns with the constructed schedule: the last word counts.
    again = tmp_path / "again.json"
    records(again, task, [untuned_note(task, 2.0), 1.0])
    text = again.read_text().splitlines()[1]
    records(again, task, [untuned_note(task, 1.5), text.replace("[1.0]", "[1.7]")])
    assert [(one.cost, one.untuned) for one in read_comparisons(again)] == [(1.7, 1.5)]
    without = tmp_path / "without.json"
    records(without, task, [3.0])
    assert auto_scheduler.ApplyHistoryBest(str(without)).best


def test_seeds_are_the_constructed_schedule_and_its_neighbours() -> None:
    """The first makes the same loops as the constructed schedule; all compute the product."""
    task = new_task(32, 32, 32)
    first, *others = constructed_states(task)
    schedule, tensors = task.compute_dag.apply_steps_from_state(first)
    tvm.ir.assert_structural_equal(
        tvm.lower(schedule, tensors), tvm.lower(constructed_schedule(task), task.compute_dag.tensors)
    )
    assert others
    agrees(task.compute_dag, others[0])


class Broken(auto_scheduler.LocalBuilder):
    """Builds nothing."""

    def build(self, measure_inputs: Any, verbose: int = 1) -> list[Any]:
        nothing = [Built(None, 0.1, "", MeasureErrorNo.COMPILE_HOST, "no such instruction")] * len(
            measure_inputs
        )
        return [
            auto_scheduler.measure.BuildResult(None, (), 2, "no such instruction", 0.1, built)
            for built in nothing
        ]

    def build_untuned(self, task: Any) -> Built:
        return Built(None, 0.1)


def test_it_says_at_once_that_everything_fails(caplog: pytest.LogCaptureFixture) -> None:
    task = new_task()
    policy = auto_scheduler.SketchPolicy(task, params=SMALL, seed=0, verbose=0)
    measurer = ProgramMeasurer(Broken(), auto_scheduler.LocalRunner(), max_continuous_error=3)
    with caplog.at_level(logging.WARNING, logger="auto_scheduler"):
        assert policy.search(20, -1, 4, measurer) is None
    first = caplog.records[0].getMessage()
    assert "all 4 candidates failed so far; the first error: COMPILE_HOST: no such instruction" in first
    assert measurer.progress_of(task).trials == 4  # three failures in a row end the search


class Timed(auto_scheduler.LocalRunner):
    """Says that a candidate takes 2 seconds alone, and 3 in turns with the constructed schedule, which takes 2.5."""

    def run_untuned(self, task: Any, built: Any, arguments: Any) -> Measured:
        return Measured((2.5,), MeasureErrorNo.NO_ERROR, "", 0.1, 1.0)

    def run_below(self, inputs: Any, built: Any, limit: float, on_done: Any = None) -> list[MeasureResult]:
        results = [MeasureResult([2.0], 0, "", 0.1, 1.0) for _ in inputs]
        for number, result in enumerate(results):
            on_done(number, result)
        return results

    def compare(self, task: Any, built: Any, other: Any, arguments: Any) -> Any:
        measured = Measured((3.0,), MeasureErrorNo.NO_ERROR, "", 0.1, 2.0, (2.5,))
        return Comparison(measured, (2.5,))


def test_the_best_is_measured_again_in_turns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A candidate that was lucky is not applied; records of templates in the same file are nobody's mistake."""
    task, path = new_task(8, 8, 8), tmp_path / "records.json"
    task.layout_rewrite_option = auto_scheduler.LayoutRewriteOption.NO_REWRITE
    options = auto_scheduler.TuningOptions(
        2,
        num_measures_per_round=2,
        verbose=0,
        builder=auto_scheduler.LocalBuilder(timeout=120),
        runner=Timed(),
        measure_callbacks=[auto_scheduler.RecordToFile(path)],
    )
    task.tune(options, auto_scheduler.SketchPolicy(task, params=SMALL, seed=0, verbose=0))
    assert sorted(one.cost for one in read_comparisons(path)) == [3.0, 3.0]
    with path.open("a") as file:
        file.write(
            '{"input": ["llvm", "tilewright.kernel", [], {}], "config": {}, "result": [[1.0], 0, 0.1, 0]}\n'
        )
    caplog.clear()
    assert len(list(read_comparisons(path))) == 2 and "no records" not in caplog.text
    assert not auto_scheduler.ApplyHistoryBest(path).best
