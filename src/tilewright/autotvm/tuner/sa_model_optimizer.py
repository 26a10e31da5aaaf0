"""Simulated annealing on a cost model: points that the model predicts to be fast."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from tilewright.autotvm.task.points import knob2point, point2knob
from tilewright.autotvm.tuner.model_based_tuner import CostModel, ModelOptimizer

logger = logging.getLogger("autotvm")


class SimulatedAnnealingOptimizer(ModelOptimizer):
    """``parallel_size`` walks of up to ``n_iter`` steps, the temperature going from ``temp[0]`` to ``temp[1]``. With
    ``persistent``, walks go on where the last call ended. They stop when the best have not changed for
    ``early_stop`` steps. Of a space with at most ``enumerated`` points all are predicted instead."""

    def __init__(
        self,
        task: Any,
        n_iter: int = 500,
        temp: float | Sequence[float] = (1, 0),
        persistent: bool = True,
        parallel_size: int = 128,
        early_stop: int = 50,
        log_interval: int = 50,
        enumerated: int = 4096,
    ) -> None:
        super().__init__()
        self.task = task
        self.space = task.config_space
        self.n_iter = n_iter
        self.temp = temp
        self.persistent = persistent
        self.parallel_size = min(parallel_size, len(self.space))
        self.early_stop = early_stop or n_iter
        self.log_interval = log_interval
        self.enumerated = enumerated
        self.points: list[int] | None = None

    def find_maximums(self, model: CostModel, num: int, exclusive: Collection[int]) -> list[int]:
        """The points with the highest predictions, best first, none of them among those to exclude."""
        if self.space.range_length <= self.enumerated:
            left = [
                index
                for index in range(self.space.range_length)
                if index not in exclusive and self.space.is_index_valid(index)
            ]
            scores = np.asarray(model.predict(left) if left else [], dtype=float)
            return [left[place] for place in np.argsort(-scores, kind="stable")[:num]]
        if self.persistent and self.points is not None:
            points = self.points
        else:
            points = self.space.sample_ints(self.parallel_size)
        scores = np.asarray(model.predict(points), dtype=float)
        best: dict[int, float] = {}
        changed = self._keep(best, points, scores, num, exclusive)
        last_change = 0
        for step in range(1, self.n_iter + 1):
            proposed = [self.space.random_walk(point) for point in points]
            found = np.asarray(model.predict(proposed), dtype=float)
            with np.errstate(over="ignore"):
                chance = np.exp(np.minimum((found - scores) / (self._temperature(step) + 1e-5), 1))
            accepted = np.random.random(len(points)) < chance
            points = [
                new if accept else old for new, old, accept in zip(proposed, points, accepted, strict=True)
            ]
            scores = np.where(accepted, found, scores)
            changed = self._keep(best, proposed, found, num, exclusive)
            last_change = step if changed else last_change
            if step - last_change >= self.early_stop:
                break
        if self.persistent:
            self.points = points
        return sorted(best, key=lambda point: -best[point])

    def _temperature(self, step: int) -> float:
        if isinstance(self.temp, (int, float)):
            return float(self.temp)
        first, last = self.temp
        return float(first + (last - first) * step / self.n_iter)

    @staticmethod
    def _keep(
        best: dict[int, float],
        points: Sequence[int],
        scores: np.ndarray[Any, Any],
        num: int,
        exclusive: Collection[int],
    ) -> bool:
        """Take points into the best; True if that changed them."""
        before = set(best)
        for point, score in zip(points, scores, strict=True):
            if point not in exclusive:
                best[point] = max(float(score), best.get(point, -np.inf))
        for point in heapq.nsmallest(max(len(best) - num, 0), best, key=lambda one: best[one]):
            del best[point]
        return set(best) != before


def random_walk(p: int, dims: Sequence[int]) -> int:
    """A point that differs from another in one knob."""
    knob = point2knob(p, dims)
    movable = [number for number, size in enumerate(dims) if size > 1]
    if movable:
        number = movable[np.random.randint(len(movable))]
        value = int(np.random.randint(dims[number] - 1))
        knob[number] = value if value < knob[number] else value + 1
    return knob2point(knob, dims)
