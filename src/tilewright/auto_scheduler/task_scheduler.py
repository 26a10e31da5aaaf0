"""Tuning the tasks of a network together: time goes where it shortens the whole most."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.auto_scheduler.cost_model import RandomModel, XGBModel
from tilewright.auto_scheduler.measure_record import RecordReader
from tilewright.auto_scheduler.measure_types import MeasureErrorNo
from tilewright.auto_scheduler.measurer import ProgramMeasurer
from tilewright.auto_scheduler.search_policy import PreloadMeasuredStates, SearchPolicy, SketchPolicy
from tilewright.auto_scheduler.search_task import SearchTask
from tilewright.auto_scheduler.task_callbacks import (
    LogEstimatedLatency,
    PrintTableInfo,
    TaskSchedulerCallback,
)
from tilewright.auto_scheduler.tuning_options import TuningOptions
from tilewright.support.errors import TilewrightError

logger = logging.getLogger("auto_scheduler")

__all__ = [
    "LogEstimatedLatency",
    "PrintTableInfo",
    "TaskScheduler",
    "TaskSchedulerCallback",
    "derive_similarity_tag",
    "make_search_policies",
]

UNKNOWN_COST = 1e10
"""The cost of a task of which nothing was measured."""


def make_search_policies(
    search_policy: str | Sequence[SearchPolicy],
    search_policy_params: dict[str, Any] | None,
    tasks: Sequence[SearchTask],
    num_measures_per_round: int,
    verbose: int,
    load_model_file: str | None = None,
    load_log_file: str | None = None,
    adapative_training: bool = False,
) -> list[SearchPolicy]:
    """A policy for each task: ``default`` is ``sketch.xgb``, sketches ranked by one model of all tasks;
    ``sketch.random`` ranks at random."""
    if not isinstance(search_policy, str):
        given = list(search_policy)
        if len(given) != len(tasks) or not all(isinstance(one, SearchPolicy) for one in given):
            raise TilewrightError(f"{len(tasks)} tasks need a search policy each")
        return given
    kind, _, model_kind = ("sketch.xgb" if search_policy == "default" else search_policy).partition(".")
    if kind != "sketch" or model_kind not in ("xgb", "random"):
        raise TilewrightError(
            f"search_policy is 'default', 'sketch.xgb', 'sketch.random' or a list, not {search_policy!r}"
        )
    model: Any = RandomModel()
    if model_kind == "xgb":
        model = XGBModel(
            num_warmup_sample=len(tasks) * num_measures_per_round,
            model_file=load_model_file,
            adapative_training=adapative_training,
        )
        if load_model_file and Path(load_model_file).is_file():
            logger.info("TaskScheduler: Load pretrained model...")
            model.load(load_model_file)
        elif load_log_file:
            logger.info("TaskScheduler: Reload measured states and train the model...")
            model.update_from_file(load_log_file)
    preload = [PreloadMeasuredStates(load_log_file)] if load_log_file else None
    return [
        SketchPolicy(task, model, params=search_policy_params, verbose=verbose, init_search_callbacks=preload)
        for task in tasks
    ]


def derive_similarity_tag(dag: Any, log_base: float = 1.618) -> str:
    """A name that tasks of the same operators and about the same number of operations share; empty for none."""
    tags = [
        str(attributes["auto_scheduler_task_scheduler_tag"])
        for operation in dag.ops
        if "auto_scheduler_task_scheduler_tag" in (attributes := operation.attrs)
    ]
    if not tags:
        return ""
    flops = max(dag.flop_ct, 1.0)
    return f"{'_'.join(tags)}_{round(math.log(flops + 1, log_base))}"


class TaskScheduler:
    """Tunes tasks in rounds. ``round-robin`` gives each its turn; ``gradient`` gives the next round to the task from
    which the objective is expected to gain most: by its recent progress, by how fast similar tasks are (``beta`` times
    slower is not to be expected), and by what is left to gain at most (``gamma``, ``alpha``: the weights of these).

    The objective is the sum of weight and time by default; ``objective_func`` is another function of the tasks' times.
    """

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        task_weights: Sequence[float] | None = None,
        objective_func: Callable[[Any], float] | None = None,
        strategy: str = "gradient",
        load_model_file: str | None = None,
        load_log_file: str | None = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Sequence[TaskSchedulerCallback] | None = None,
    ) -> None:
        if not tasks:
            raise TilewrightError(
                "there are no tasks to tune: the network has no function that needs a schedule"
            )
        if strategy not in ("round-robin", "gradient"):
            raise TilewrightError(f"strategy is 'round-robin' or 'gradient', not {strategy!r}")
        if task_weights is not None and len(task_weights) != len(tasks):
            raise TilewrightError(f"{len(tasks)} tasks have {len(task_weights)} weights")
        self.tasks = list(tasks)
        self.task_weights = list(task_weights) if task_weights is not None else [1.0] * len(self.tasks)
        self.objective_func = objective_func or self._weighted_sum
        self.strategy = strategy
        self.load_model_file = load_model_file
        self.load_log_file = load_log_file
        self.alpha, self.beta, self.gamma = alpha, beta, gamma
        self.backward_window_size = backward_window_size
        self.callbacks = (
            list(callbacks)
            if callbacks is not None
            else [PrintTableInfo(), LogEstimatedLatency("total_latency.tsv")]
        )
        count = len(self.tasks)
        self.task_cts = [0] * count
        self.task_best_cts = [0] * count
        self.task_costs_history: list[list[float]] = [[] for _ in range(count)]
        self.best_costs = np.full(count, UNKNOWN_COST)
        self.cur_score = self._compute_score(self.best_costs)
        self.ct = self.best_ct = 0
        self.best_score = math.inf
        self.tic = time.time()
        self.num_measures_per_round = 0
        self.dead_tasks: set[int] = set()
        self.task_tags = [derive_similarity_tag(task.compute_dag) for task in self.tasks]
        self.search_policies: list[SearchPolicy] = []
        self.measurer: ProgramMeasurer | None = None

    def _weighted_sum(self, costs: Any) -> float:
        return float(sum(cost * weight for cost, weight in zip(costs, self.task_weights, strict=True)))

    def _compute_score(self, costs: Any) -> float:
        return float(self.objective_func(costs))

    # -- tuning ---------------------------------------------------------------------------------------------------

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: str | Sequence[SearchPolicy] = "default",
        search_policy_params: dict[str, Any] | None = None,
        adapative_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> None:
        """Tune the tasks until so many candidates were measured in all."""
        self.tic = time.time()
        self.num_measures_per_round = min(
            tune_option.num_measures_per_round, max(1, tune_option.num_measure_trials // len(self.tasks))
        )
        if tune_option.num_measure_trials <= 0:
            raise TilewrightError("num_measure_trials is 0: there is nothing to measure")
        self.measurer = tune_option.measurer()
        self.ct = self.best_ct = 0
        self.task_cts = [0] * len(self.tasks)
        self.dead_tasks = set()
        if self.load_log_file:
            self._restore_status(self.load_log_file, self.num_measures_per_round)
        self.search_policies = make_search_policies(
            search_policy,
            search_policy_params,
            self.tasks,
            self.num_measures_per_round,
            tune_option.verbose,
            self.load_model_file,
            self.load_log_file,
            adapative_training,
        )
        most = tune_option.num_measure_trials
        for number in range(len(self.tasks)):
            # Every task once: nothing can be said about one of which nothing was measured.
            if self.ct >= most:
                break
            if number not in self.dead_tasks:
                self._tune_task(number)
        self.best_ct, self.best_score = self.ct, self.cur_score
        turn = -1
        while self.ct < most and len(self.dead_tasks) < len(self.tasks):
            turn = self._next_task(turn)
            self._tune_task(turn)
            self._adjust_similarity_group(turn)
            if self.cur_score < self.best_score:
                self.best_score, self.best_ct = self.cur_score, self.ct
            elif 0 <= tune_option.early_stopping < self.ct - self.best_ct:
                if tune_option.verbose:
                    logger.info(
                        "Stop early since no performance improvement in the last %d measurement trials.",
                        tune_option.early_stopping,
                    )
                break
            idle = self.task_cts[turn] - self.task_best_cts[turn]
            if (
                per_task_early_stopping is not None
                and idle * self.num_measures_per_round >= per_task_early_stopping
            ):
                self.dead_tasks.add(turn)
        for policy in self.search_policies:
            policy.finish(self.measurer)

    def _tune_task(self, number: int) -> None:
        """One round for one task."""
        for callback in self.callbacks:
            callback.pre_tune(self, number)
        assert self.measurer is not None
        inputs, results = self.search_policies[number].continue_search_one_round(
            self.num_measures_per_round, self.measurer
        )
        self.task_cts[number] += 1
        for result in results:
            cost = result.mean if result.error_no == MeasureErrorNo.NO_ERROR else UNKNOWN_COST
            if cost < self.best_costs[number]:
                self.task_best_cts[number] = self.task_cts[number]
                self.best_costs[number] = cost
        if not inputs or self.measurer.is_hopeless(self.tasks[number]):
            self.dead_tasks.add(number)
        self.task_costs_history[number].append(float(self.best_costs[number]))
        self.ct += len(inputs)
        self.cur_score = self._compute_score(self.best_costs)
        for callback in self.callbacks:
            callback.post_tune(self, number)

    # -- whose turn it is -----------------------------------------------------------------------------------------

    def _next_task(self, last: int) -> int:
        alive = [number for number in range(len(self.tasks)) if number not in self.dead_tasks]
        if self.strategy == "round-robin":
            return next((number for number in alive if number > last), alive[0])
        gradients = {number: self._gradient(number) for number in alive}
        steepest = min(gradients.values())
        if max(gradients.values()) == steepest:
            return alive[int(np.random.choice(len(alive)))]
        return min(alive, key=lambda number: gradients[number])

    def _gradient(self, number: int) -> float:
        """How much the objective is expected to change with one more round for a task; below zero is a gain."""
        chain = self._objective_slope(number)
        history = self.task_costs_history[number]
        rounds = self.task_cts[number]
        window = self.backward_window_size
        # The progress of the last rounds, and a guess at that of the next ones.
        if rounds - 1 < len(history) and rounds - 1 - window >= 0:
            backward = (history[rounds - 1] - history[rounds - 1 - window]) / window
        else:
            backward = 0.0
        forward_own = -float(self.best_costs[number]) / max(1, rounds)
        forward_similar = self._similar_forward(number)
        forward = min(forward_own, forward_similar)
        slope = self.alpha * backward + (1 - self.alpha) * forward
        return chain * slope

    def _objective_slope(self, number: int) -> float:
        """How the objective changes with the time of one task."""
        step = 1e-4
        moved = self.best_costs.copy()
        moved[number] -= step
        return (self._compute_score(self.best_costs) - self._compute_score(moved)) / step

    def _similar_forward(self, number: int) -> float:
        """What a task would gain if it became as fast as the fastest of its kind, by operations a second."""
        tag = self.task_tags[number]
        if not tag:
            return 0.0
        group = [
            one for one, other in enumerate(self.task_tags) if other == tag and one not in self.dead_tasks
        ]
        best = max(self.tasks[one].compute_dag.flop_ct / self.best_costs[one] for one in group)
        reachable = self.beta * self.tasks[number].compute_dag.flop_ct / best if best > 0 else 0.0
        return -(float(self.best_costs[number]) - reachable) * self.gamma

    def _adjust_similarity_group(self, number: int) -> None:
        """A task that stays far behind others of its kind for long, with many rounds, is left to itself."""
        tag = self.task_tags[number]
        if not tag or self.task_cts[number] < 5:
            return
        group = [one for one, other in enumerate(self.task_tags) if other == tag]
        speeds = {one: self.tasks[one].compute_dag.flop_ct / self.best_costs[one] for one in group}
        fastest = max(speeds.values())
        if len(group) > 1 and speeds[number] < fastest / self.beta and self.task_cts[number] > 5 * len(group):
            self.task_tags[number] = ""

    # -- continuing -----------------------------------------------------------------------------------------------

    def _restore_status(self, log_file: str, num_measures_per_round: int) -> None:
        """Go on from a file of records: the best times and the rounds of each task."""
        places = {
            (task.workload_key, task.target.kind.name): number for number, task in enumerate(self.tasks)
        }
        total = 0
        trials = [0] * len(self.tasks)
        best_trials = [0] * len(self.tasks)
        for measured, result in RecordReader(log_file):
            total += 1
            number = places.get((measured.task.workload_key, measured.task.target.kind.name))
            if number is None:
                continue
            trials[number] += 1
            if result.error_no == MeasureErrorNo.NO_ERROR and result.mean < self.best_costs[number]:
                self.best_costs[number] = result.mean
                best_trials[number] = trials[number]
        for number in range(len(self.tasks)):
            rounds = -(-trials[number] // num_measures_per_round)
            self.task_cts[number] = rounds
            self.task_best_cts[number] = -(-best_trials[number] // num_measures_per_round)
            self.task_costs_history[number] = [float(self.best_costs[number])] * rounds
        self.cur_score = self._compute_score(self.best_costs)
        logger.info("TaskScheduler: Loaded %d measurement records from %s", total, log_file)
