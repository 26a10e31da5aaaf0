"""What all tuners do: propose configurations, have them measured, and keep the best."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilewright.autotvm.env import GLOBAL_SCOPE
from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult
from tilewright.autotvm.measure.measure_methods import create_measure_batch
from tilewright.autotvm.utils import format_si_prefix
from tilewright.search.outcomes import typical

logger = logging.getLogger("autotvm")

Callback = Callable[["Tuner", Sequence[MeasureInput], Sequence[MeasureResult]], Any]
WORTH_SAYING = 8
"""Failures in a row, from the first candidate on, after which the tuner says so."""


class Tuner(ABC):
    """Tunes a task. ``best_config``, ``best_flops`` and ``best_measure_pair`` are the best that was found;
    ``first_error`` is why the first candidate that failed did."""

    def __init__(self, task: Any, **kwargs: Any) -> None:
        self.task = task
        self.param = kwargs
        self.n_trial: int | None = None
        self.ttl: float | None = None
        self.early_stopping: float | None = None
        self.reset()

    @abstractmethod
    def has_next(self) -> bool:
        """True if there are configurations left to propose."""
        raise NotImplementedError(f"{type(self).__name__} does not say if it has configurations left")

    @abstractmethod
    def next_batch(self, batch_size: int) -> list[Any]:
        """Configurations to measure next, at most so many."""
        raise NotImplementedError(f"{type(self).__name__} does not propose configurations")

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements."""
        return

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Learn from earlier records, of other tasks too."""
        raise NotImplementedError(f"{type(self).__name__} does not learn from records")

    def reset(self) -> None:
        """Forget the best."""
        self.best_config: Any = None
        self.best_flops = 0.0
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.best_iter = 0
        self.first_error: str | None = None

    def tune(
        self,
        n_trial: int,
        measure_option: dict[str, Any],
        early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (),
        si_prefix: str = "G",
    ) -> None:
        """Measure up to ``n_trial`` configurations, and stop earlier if ``early_stopping`` in a row bring nothing
        better. The constructed schedule, where the task has one, is the first.

        After each batch, callbacks get (tuner, inputs, results).
        """
        format_si_prefix(0, si_prefix)
        measure_batch = create_measure_batch(self.task, measure_option)
        parallel = getattr(measure_batch, "n_parallel", 1)
        patience = float("inf") if early_stopping is None else early_stopping
        self.n_trial, self.early_stopping = n_trial, patience
        tried = failed = 0
        was_tuning, GLOBAL_SCOPE.in_tuning = GLOBAL_SCOPE.in_tuning, True
        try:
            while tried < n_trial:
                configs = self._proposed(min(parallel, n_trial - tried), tried)
                if not configs:
                    break
                inputs = [MeasureInput(self.task.target, self.task, config) for config in configs]
                results = measure_batch(inputs)
                before = failed
                failed += self._judge(inputs, results, tried, si_prefix)
                tried += len(results)
                if failed == tried and before < WORTH_SAYING <= failed:
                    self._say_that_all_fail(failed)
                self.ttl = min(patience + self.best_iter, n_trial) - tried
                self.update(inputs, results)
                for callback in callbacks:
                    callback(self, inputs, results)
                if tried >= self.best_iter + patience:
                    logger.debug("stopped early: the best is %d trials old", tried - self.best_iter)
                    break
        finally:
            GLOBAL_SCOPE.in_tuning = was_tuning
        if tried and failed == tried and failed < WORTH_SAYING:
            self._say_that_all_fail(failed)

    def _proposed(self, count: int, tried: int) -> list[Any]:
        """The next configurations; the first of all is what an untuned build has."""
        default = getattr(self.task.config_space, "default_index", None)
        if tried == 0 and default is not None and self.takes_default(default):
            return [self.task.config_space.get(default)]
        return self.next_batch(count) if self.has_next() else []

    def takes_default(self, index: int) -> bool:
        """True if the default configuration is to be measured first; it is then not proposed again."""
        return True

    def _judge(
        self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult], tried: int, si_prefix: str
    ) -> int:
        """Keep the best of a batch, and count the failures."""
        failed = 0
        for place, (inp, res) in enumerate(zip(inputs, results, strict=True)):
            flops = 0.0
            if res.error_no == 0:
                flops = float((inp.task.flop or 0) / typical(res.costs))
            else:
                failed += 1
                if self.first_error is None:
                    self.first_error = f"{getattr(res.error_no, 'name', res.error_no)}: {res.costs[0]}"
            if flops > self.best_flops:
                self.best_flops, self.best_config = flops, inp.config
                self.best_measure_pair = (inp, res)
                self.best_iter = tried + place
            logger.debug(
                "No: %d\t%sFLOPS: %.2f/%.2f\tresult: %s\t%s",
                tried + place + 1,
                si_prefix,
                format_si_prefix(flops, si_prefix),
                format_si_prefix(self.best_flops, si_prefix),
                res,
                inp.config,
            )
        return failed

    def _say_that_all_fail(self, count: int) -> None:
        logger.warning(
            "task %s: all of the first %d candidates failed. The first error: %s",
            self.task.name,
            count,
            self.first_error,
        )
