"""Which task gets the next round, and how tuning goes on from a file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.auto_scheduler.computations import matmul

from tilewright import auto_scheduler
from tilewright.auto_scheduler.measure_types import MeasureInput, MeasureResult
from tilewright.auto_scheduler.measurer import ProgramMeasurer
from tilewright.auto_scheduler.search_policy import SearchPolicy
from tilewright.auto_scheduler.task_scheduler import LogEstimatedLatency, PrintTableInfo, make_search_policies
from tilewright.support.errors import TilewrightError


class Scripted(SearchPolicy):
    """Gives the times of a list, one round after the other; the last one again and again."""

    def __init__(self, task: Any, times: list[float]) -> None:
        super().__init__(task)
        self.times = times
        self.rounds = 0

    def continue_search_one_round(self, num_measure: int, measurer: ProgramMeasurer) -> Any:
        time = self.times[min(self.rounds, len(self.times) - 1)]
        self.rounds += 1
        inputs = [MeasureInput(self.search_task, self.search_task.compute_dag.get_init_state())] * num_measure
        return inputs, [MeasureResult([time], 0, "", 0.1, 1.0)] * num_measure


def tasks(count: int) -> list[auto_scheduler.SearchTask]:
    auto_scheduler.register_workload("product_of_schedulers", matmul, override=True)
    return [
        auto_scheduler.SearchTask(func="product_of_schedulers", args=(8 * (number + 1), 8, 8), target="llvm")
        for number in range(count)
    ]


def tune(
    times: list[list[float]], trials: int, **options: Any
) -> tuple[auto_scheduler.TaskScheduler, list[int]]:
    """The scheduler after tuning with rounds of two candidates, and the number of rounds of each task."""
    some = tasks(len(times))
    policies = [Scripted(task, one) for task, one in zip(some, times, strict=True)]
    limits = options.pop("limits", {})
    scheduler = auto_scheduler.TaskScheduler(some, callbacks=[], **options)
    scheduler.tune(
        auto_scheduler.TuningOptions(trials, num_measures_per_round=2, verbose=0, **limits), policies
    )
    return scheduler, [policy.rounds for policy in policies]


def test_round_robin() -> None:
    assert tune([[1.0], [1.0], [1.0]], 14, strategy="round-robin")[1] == [3, 2, 2]


def test_rounds_go_to_the_slow_task() -> None:
    """One task takes a thousand times as long as the other; both are tried once."""
    scheduler, rounds = tune([[1.0], [1e-3]], 20)
    assert rounds == [9, 1]
    assert scheduler.cur_score == pytest.approx(1.001)


def test_weights_and_objectives() -> None:
    """What is called more often counts more; an objective that ignores a task gives it one round."""
    assert tune([[1.0], [1.0]], 20, task_weights=[1.0, 1000.0])[1] == [1, 9]
    assert tune([[1.0], [1.0]], 20, objective_func=lambda costs: costs[0])[1] == [9, 1]


def test_a_task_that_improves_gets_more() -> None:
    """Two tasks of equal times: the one whose rounds pay is preferred once there is a history."""
    falling = [1.0 * 0.8**number for number in range(40)]
    _, rounds = tune([falling, [1.0]], 60, alpha=1.0)
    assert rounds[0] > rounds[1]


def test_early_stopping() -> None:
    _, rounds = tune([[1.0]], 1000, limits={"early_stopping": 6})
    assert 3 <= rounds[0] <= 6


def test_going_on(tmp_path: Path) -> None:
    """Best times and rounds come from the file."""
    some = tasks(2)
    path = str(tmp_path / "records.json")
    state = some[0].compute_dag.get_init_state()
    auto_scheduler.save_records(
        path,
        [MeasureInput(some[0], state)] * 4,
        [MeasureResult([cost], 0, "", 0.1, 1.0) for cost in (4, 2, 3, 5)],
    )
    scheduler = auto_scheduler.TaskScheduler(some, load_log_file=path, callbacks=[])
    scheduler._restore_status(path, 2)
    assert scheduler.best_costs[0] == 2.0 and scheduler.best_costs[1] == 1e10
    assert scheduler.task_cts == [2, 0] and scheduler.task_best_cts == [1, 0]


def test_what_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has a line for each task, the file one for each round."""
    some = tasks(2)
    log = tmp_path / "latency.tsv"
    scheduler = auto_scheduler.TaskScheduler(
        some, [1, 3], callbacks=[PrintTableInfo(), LogEstimatedLatency(str(log))]
    )
    policies = [Scripted(some[0], [2e-3]), Scripted(some[1], [1e-3])]
    scheduler.tune(auto_scheduler.TuningOptions(8, num_measures_per_round=2, verbose=0), policies)
    text = capsys.readouterr().out
    assert "Latency (ms)" in text and "2.000" in text and "Estimated total latency: 5.000 ms" in text
    lines = log.read_text().splitlines()
    assert len(lines) == 4 and "\tN/A\t" in lines[0] and lines[-1].split("\t")[3] == "5.000"


def test_policies() -> None:
    some = tasks(2)
    made = make_search_policies("sketch.random", None, some, 4, 0)
    assert [policy.search_task for policy in made] == some
    with pytest.raises(TilewrightError, match="'sketch.xgb', 'sketch.random' or a list"):
        make_search_policies("annealing", None, some, 4, 0)
    with pytest.raises(TilewrightError, match="there are no tasks to tune"):
        auto_scheduler.TaskScheduler([])
    assert np.isfinite(auto_scheduler.TaskScheduler(some, callbacks=[]).cur_score)
