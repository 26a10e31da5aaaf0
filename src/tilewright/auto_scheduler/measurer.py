"""Builds and runs candidates, remembers the best of each task, and tells who wants to know."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.auto_scheduler.builders import LocalBuilder, ProgramBuilder
from tilewright.auto_scheduler.measure_types import (
    MeasureCallback,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
)
from tilewright.auto_scheduler.rewritten_pair import RewrittenPair, build_pair
from tilewright.auto_scheduler.runners import LocalRunner, ProgramRunner, as_result, untuned_arguments
from tilewright.search.measure import Built

logger = logging.getLogger("auto_scheduler")

DEFAULT_MAX_CONTINUOUS_ERROR = 150
_HOPELESS = 5.0
"""A candidate that takes so many times as long as the best one is not measured well."""


@dataclass
class Untuned:
    """A task's constructed schedule: its code, and its time; infinite where it could not be measured."""

    built: Built
    seconds: float


@dataclass
class Progress:
    """What is known of one task."""

    trials: int = 0
    best_trial: int = 0
    best_cost: float = float("inf")
    best_state: Any = None
    failures: int = 0
    continuous_failures: int = 0
    first_error: str = ""
    untuned: Untuned | None = None


class ProgramMeasurer:
    """Measures candidates. ``max_continuous_error`` failures in a row end a search."""

    def __init__(
        self,
        builder: ProgramBuilder,
        runner: ProgramRunner,
        callbacks: Sequence[MeasureCallback] | None = None,
        verbose: int = 1,
        max_continuous_error: int | None = None,
    ) -> None:
        self.builder = builder
        self.runner = runner
        self.callbacks = list(callbacks or ())
        self.verbose = verbose
        self.max_continuous_error = (
            DEFAULT_MAX_CONTINUOUS_ERROR
            if max_continuous_error is None or max_continuous_error < 0
            else max_continuous_error
        )
        self.progress: dict[str, Progress] = {}

    def progress_of(self, task: Any) -> Progress:
        """What is known of a task."""
        return self.progress.setdefault(f"{task.workload_key} {task.target}", Progress())

    # -- candidates -----------------------------------------------------------------------------------------------

    def measure(self, task: Any, policy: Any, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        """Measure candidates of one task, in batches that are built at once."""
        results: list[MeasureResult] = []
        size = max(8, 4 * getattr(self.builder, "n_parallel", 1))
        for start in range(0, len(inputs), size):
            results += self._measure_batch(task, policy, inputs[start : start + size])
        return results

    def _measure_batch(self, task: Any, policy: Any, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        known = self.progress_of(task)
        built = self.builder.build(inputs, self.verbose)
        prompt = [callback for callback in self.callbacks if callback.each]

        def tell(number: int, result: MeasureResult) -> None:
            for callback in prompt:
                callback.callback(policy, [inputs[number]], [result])

        if isinstance(self.runner, LocalRunner):
            limit = _HOPELESS * min(known.best_cost, known.untuned.seconds if known.untuned else float("inf"))
            results = self.runner.run_below(inputs, built, limit, tell)
        else:
            results = self.runner.run(inputs, built, self.verbose)
            for number, result in enumerate(results):
                tell(number, result)
        for callback in self.callbacks:
            if not callback.each:
                callback.callback(policy, inputs, results)
        for measured, result in zip(inputs, results, strict=True):
            self._note(known, measured, result)
        if known.failures == known.trials and self.verbose >= 0:
            logger.warning(
                "%s: all %d candidates failed so far; the first error: %s",
                task.desc or task.workload_key,
                known.trials,
                known.first_error,
            )
        return results

    def _note(self, known: Progress, measured: MeasureInput, result: MeasureResult) -> None:
        known.trials += 1
        if result.error_no != MeasureErrorNo.NO_ERROR:
            known.failures += 1
            known.continuous_failures += 1
            known.first_error = known.first_error or f"{result.error_no.name}: {result.error_msg}"
            return
        known.continuous_failures = 0
        if result.mean < known.best_cost:
            known.best_cost, known.best_state, known.best_trial = result.mean, measured.state, known.trials

    def is_hopeless(self, task: Any) -> bool:
        """True if so many candidates failed in a row that the search should end."""
        return self.progress_of(task).continuous_failures >= self.max_continuous_error

    # -- the constructed schedule ---------------------------------------------------------------------------------

    def measure_untuned(self, task: Any, policy: Any) -> Untuned | None:
        """Measure the constructed schedule, once for each task: what a search has to beat."""
        known = self.progress_of(task)
        if known.untuned is not None or not self._is_local():
            return known.untuned
        assert isinstance(self.builder, LocalBuilder) and isinstance(self.runner, LocalRunner)
        built = self.builder.build_untuned(task)
        seconds = float("inf")
        if built.is_good:
            result = as_result(self.runner.run_untuned(task, built, untuned_arguments(task)))
            seconds = result.mean
            if result.error_no != MeasureErrorNo.NO_ERROR:
                logger.warning(
                    "the constructed schedule of %s: %s", task.desc or task.workload_key, result.error_msg
                )
        known.untuned = Untuned(built, seconds)
        if seconds < float("inf"):
            self._tell_untuned(policy, seconds)
        return known.untuned

    def confirm(self, task: Any, policy: Any, candidate: MeasureInput) -> bool | None:
        """Measure a candidate and the constructed schedule in turns, and record both; whether the candidate is faster
        and gives the same results. None where that cannot be told."""
        untuned = self.progress_of(task).untuned
        if untuned is None or not untuned.built.is_good or not self._is_local():
            return None
        assert isinstance(self.builder, LocalBuilder) and isinstance(self.runner, LocalRunner)
        pair = build_pair(self.builder, candidate)
        if pair is None:
            (built,) = self.builder.build([candidate], 0)
            pair = RewrittenPair(built.built, untuned.built, untuned_arguments(task))
        if not pair.candidate.is_good or not pair.untuned.is_good:
            return None
        found = self.runner.compare(task, pair.candidate, pair.untuned, pair.arguments)
        result = as_result(found.first)
        if found.other_costs:
            seconds = sum(found.other_costs) / len(found.other_costs)
            self._tell_untuned(policy, seconds)
            untuned.seconds = seconds
        for callback in self.callbacks:
            callback.callback(policy, [candidate], [result])
        return result.mean < untuned.seconds

    def _tell_untuned(self, policy: Any, seconds: float) -> None:
        for callback in self.callbacks:
            callback.untuned(policy, seconds)

    def _is_local(self) -> bool:
        return isinstance(self.builder, LocalBuilder) and isinstance(self.runner, LocalRunner)
