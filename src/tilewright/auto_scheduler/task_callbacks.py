"""What is told while the tasks of a network are tuned."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_UNKNOWN = 1e9


class TaskSchedulerCallback:
    """Called around every round."""

    def pre_tune(self, task_scheduler: Any, task_id: int) -> None:
        """Before a round of a task."""

    def post_tune(self, task_scheduler: Any, task_id: int) -> None:
        """After a round of a task."""


class PrintTableInfo(TaskSchedulerCallback):
    """Prints a table of all tasks before every round."""

    def pre_tune(self, task_scheduler: Any, task_id: int) -> None:
        if task_scheduler.ct == 0 or task_scheduler.num_measures_per_round == 0:
            return
        sys.stdout.write("\n".join([*self.rows(task_scheduler), self.summary(task_scheduler, task_id), ""]))
        sys.stdout.flush()

    def rows(self, task_scheduler: Any) -> list[str]:
        """A line for each task: its best time, its speed, how often it was measured, and its gain over the constructed
        schedule."""
        heads = ("ID", "Task", "Latency (ms)", "Speed (GFLOPS)", "Trials", "Gain")
        line = "|{:^5}|{:^40}|{:^14}|{:^16}|{:^8}|{:^8}|"
        made = ["-" * 98, line.format(*heads), "-" * 98]
        for number, task in enumerate(task_scheduler.tasks):
            cost = float(task_scheduler.best_costs[number])
            known = cost < _UNKNOWN
            flops = task.compute_dag.flop_ct
            untuned = task_scheduler.measurer.progress_of(task).untuned if task_scheduler.measurer else None
            made.append(
                line.format(
                    number,
                    (task.desc or task.workload_key)[:40],
                    f"{cost * 1e3:.3f}" if known else "-",
                    f"{flops / cost / 1e9:.2f}" if known and flops > 0 else "-",
                    task_scheduler.task_cts[number] * task_scheduler.num_measures_per_round,
                    f"{untuned.seconds / cost:.2f}" if known and untuned is not None else "-",
                )
            )
        return [*made, "-" * 98]

    def summary(self, task_scheduler: Any, task_id: int) -> str:
        """One line about all tasks."""
        score = task_scheduler.cur_score
        total = f"{score * 1e3:.3f} ms" if score < _UNKNOWN else "-"
        return (
            f"Estimated total latency: {total}\tTrials: {task_scheduler.ct}\t"
            f"Used time : {time.time() - task_scheduler.tic:.0f} s\tNext ID: {task_id}"
        )


class LogEstimatedLatency(TaskSchedulerCallback):
    """Appends the time, the number of trials and the estimated latency to a file after every round."""

    def __init__(self, log_file: str) -> None:
        self.log_file = log_file
        Path(log_file).unlink(missing_ok=True)

    def post_tune(self, task_scheduler: Any, task_id: int) -> None:
        score = task_scheduler.cur_score
        text = f"{score * 1e3:.3f}" if all(cost < _UNKNOWN for cost in self._costs(task_scheduler)) else "N/A"
        with open(self.log_file, "a", encoding="utf-8") as stream:
            stream.write(
                f"ElapsedTime(s)\t{time.time() - task_scheduler.tic:.0f}\t"
                f"EstimatedLatency(ms)\t{text}\tTrials\t{task_scheduler.ct}\n"
            )

    def _costs(self, task_scheduler: Any) -> Sequence[float]:
        return [float(cost) for cost in task_scheduler.best_costs]
