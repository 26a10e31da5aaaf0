"""Gradient-boosted trees on the features of statements, learnt from what was measured."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.auto_scheduler.cost_model.cost_model import PythonBasedModel
from tilewright.auto_scheduler.cost_model.prior import guessed_scores
from tilewright.auto_scheduler.features.of_state import Features, features_of_states
from tilewright.auto_scheduler.measure_record import RecordReader
from tilewright.auto_scheduler.measure_types import MeasureInput, MeasureResult
from tilewright.search.trees import PackSumTrees, has_trees
from tilewright.support.errors import TilewrightError

logger = logging.getLogger("auto_scheduler")

_ROUNDS = 100
_DEPTH = 10
_RATE = 0.2
_KEPT = 8192
"""How many states' features are kept: those of a few rounds."""


class XGBModel(PythonBasedModel):
    """Learns the throughput of programs, relative to the best of their task, from all that was measured.

    Until ``num_warmup_sample`` programs were measured, scores are guesses (see ``prior``), on GPUs random. Without the
    package ``xgboost`` (the extra ``tune``), they always are.
    """

    def __init__(
        self,
        verbose_eval: int = 25,
        num_warmup_sample: int = 100,
        seed: int | None = None,
        model_file: str | None = None,
        adapative_training: bool = False,
    ) -> None:
        self.verbose_eval = verbose_eval
        self.num_warmup_sample = num_warmup_sample
        self.model_file = model_file
        self.adapative_training = adapative_training
        self.seed = 43 if seed is None else seed
        self.generator = np.random.default_rng(self.seed)
        self.trees: PackSumTrees | None = None
        self.inputs: list[MeasureInput] = []
        self.results: list[MeasureResult] = []
        self._features: list[Features] = []
        self._costs: list[float] = []
        self._tasks: list[str] = []
        self._learnt = 0
        self._known: OrderedDict[tuple[str, Any], Features] = OrderedDict()
        has_trees()  # says so where they are not there

    @property
    def has_learned(self) -> bool:
        """True if scores come from what was measured; a guess by a simple model of the machine otherwise."""
        return self.trees is not None

    # -- learning -------------------------------------------------------------------------------------------------

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements. Failures teach that a program is as slow as can be."""
        if not inputs:
            return
        self.inputs += inputs
        self.results += results
        by_task: dict[str, list[int]] = {}
        for number, one in enumerate(inputs):
            by_task.setdefault(one.task.workload_key, []).append(number)
        for key, numbers in by_task.items():
            self._features += self._rows(
                inputs[numbers[0]].task, [inputs[number].state for number in numbers]
            )
            self._costs += [results[number].mean for number in numbers]
            self._tasks += [key] * len(numbers)
        self._learn()

    def _learn(self) -> None:
        """Train anew on everything; with adaptive training only when there is a fifth more than last time."""
        known = len(self._costs)
        if not has_trees() or known < max(2, self.num_warmup_sample):
            return
        if self.adapative_training and self._learnt and known < self._learnt * 1.2:
            return
        self._learnt = known
        good = [number for number in range(known) if len(self._features[number])]
        if not good:
            return
        self.trees = PackSumTrees(_ROUNDS, max_depth=_DEPTH, eta=_RATE, seed=self.seed)
        self.trees.fit_packs([self._features[number] for number in good], self.throughputs()[good])
        if self.model_file:
            self.save(self.model_file)

    def throughputs(self) -> NDArray[np.float64]:
        """For each measurement how fast it was, as a part of the fastest of its task."""
        best: dict[str, float] = {}
        for key, cost in zip(self._tasks, self._costs, strict=True):
            best[key] = min(cost, best.get(key, np.inf))
        return np.array(
            [
                best[key] / cost if np.isfinite(cost) else 0.0
                for key, cost in zip(self._tasks, self._costs, strict=True)
            ]
        )

    def update_from_file(self, file_name: str, n_lines: int | None = None) -> None:
        """Learn from a file of records."""
        inputs, results = RecordReader(file_name).read_lines(n_lines)
        known = [number for number, one in enumerate(inputs) if one.task.is_known]
        logger.info("XGBModel: Loaded %s measurement records from %s", len(known), file_name)
        self.update([inputs[number] for number in known], [results[number] for number in known])

    # -- predicting -----------------------------------------------------------------------------------------------

    def _rows(self, task: Any, states: Sequence[Any]) -> list[Features]:
        """The features of states; those that were asked for lately are not computed again."""
        keys = [(task.workload_key, state.transform_steps) for state in states]
        fresh = {key: state for key, state in zip(keys, states, strict=True) if key not in self._known}
        if fresh:
            self._known.update(zip(fresh, features_of_states(task, list(fresh.values())), strict=True))
        found = [self._known[key] for key in keys]
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return found

    def predict(self, task: Any, states: Sequence[Any]) -> NDArray[np.float64]:
        """A score for each state; minus infinity for one that makes no program."""
        found = self._rows(task, states)
        if self.trees is not None:
            return np.asarray(self.trees.predict_packs(found), np.float64)
        if task.hardware_params.max_threads_per_block <= 0:
            return guessed_scores(found, task.hardware_params)
        return np.where([len(one) > 0 for one in found], self.generator.random(len(states)), -np.inf)

    def predict_stages(self, task: Any, states: Sequence[Any]) -> list[NDArray[np.float64]]:
        """For each state the scores of its statements; at random until there is a model."""
        found = self._rows(task, states)
        if self.trees is None:
            return [self.generator.random(len(one)) for one in found]
        return [np.asarray(self.trees.predict_rows(one) if len(one) else (), np.float64) for one in found]

    # -- files ----------------------------------------------------------------------------------------------------

    def save(self, file_name: str) -> None:
        """Write the model to a file (xgboost's JSON)."""
        if self.trees is None:
            raise TilewrightError("the model has learned nothing yet: there is nothing to save")
        self.trees.save(file_name)

    def load(self, file_name: str) -> None:
        """Read a model from a file."""
        if not Path(file_name).is_file():
            raise TilewrightError(f"there is no file {file_name}")
        self.trees = PackSumTrees(_ROUNDS, max_depth=_DEPTH, eta=_RATE, seed=self.seed)
        self.trees.load(file_name)
        self.num_warmup_sample = -1
