"""Tuning with a cost model: it is fitted to what was measured, and proposes what it predicts to be fast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult
from tilewright.autotvm.task.points import knob2point, point2knob
from tilewright.autotvm.tuner.tuner import Tuner
from tilewright.search.outcomes import typical


class FeatureCache:
    """Features by kind and index."""

    def __init__(self) -> None:
        self.feature_cache: dict[str, dict[int, Any]] = {}

    def get(self, key: str) -> dict[int, Any]:
        """The features of a kind."""
        return self.feature_cache.setdefault(key, {})

    def size(self, key: str) -> int:
        """How many there are."""
        return len(self.feature_cache.get(key, ()))

    def clear(self, key: str) -> None:
        """Forget those of a kind."""
        self.feature_cache.pop(key, None)


class CostModel(ABC):
    """Predicts how fast configurations are, relative to each other."""

    @abstractmethod
    def fit(self, xs: Sequence[int], ys: Sequence[float], plan_size: int) -> None:
        """Learn the scores ``ys`` of indices ``xs``, of which ``plan_size`` are to be proposed at a time."""

    def fit_log(self, records: Iterable[Any], plan_size: int, min_seed_records: int = 500) -> bool:
        """Learn from records, of other tasks too; False if there are too few."""
        raise NotImplementedError

    @abstractmethod
    def predict(self, xs: Sequence[int], output_margin: bool = False) -> np.ndarray[Any, Any]:
        """The scores of indices; the higher, the faster."""

    def load_basemodel(self, base_model: CostModel) -> None:
        """Start from what another model learned."""
        raise NotImplementedError

    def spawn_base_model(self) -> CostModel:
        """A model to learn from records with."""
        raise NotImplementedError


class ModelOptimizer(ABC):
    """Finds points with high predictions."""

    @abstractmethod
    def find_maximums(self, model: CostModel, num: int, exclusive: Collection[int]) -> list[int]:
        """So many of them, best first, none among those to exclude."""


class ModelBasedTuner(Tuner):
    """Measures ``plan_size`` random points, then plans of the same size: points that the model ranks first, with one in
    twenty at random. With a ``diversity_filter_ratio`` above one, a plan is picked for variety from so many times more
    points."""

    def __init__(
        self,
        task: Any,
        cost_model: CostModel,
        model_optimizer: ModelOptimizer,
        plan_size: int,
        diversity_filter_ratio: float | None = None,
    ) -> None:
        super().__init__(task)
        self.space = task.config_space
        self.dims: list[int] = self.space.dims
        self.plan_size = plan_size
        self.cost_model = cost_model
        self.model_optimizer = model_optimizer
        self.diversity_filter_ratio = diversity_filter_ratio
        if diversity_filter_ratio is not None and diversity_filter_ratio < 1:
            raise ValueError(f"diversity_filter_ratio must be at least 1, not {diversity_filter_ratio}")
        self.trials: list[int] = []
        self.trial_pt = 0
        self.visited: set[int] = set()
        self.xs: list[int] = []
        self.ys: list[float] = []
        self.flops_max = 0.0
        self.train_ct = 0

    def has_next(self) -> bool:
        """True if not every point was measured."""
        return len(self.visited) < len(self.space)

    def takes_default(self, index: int) -> bool:
        """The default counts as proposed."""
        self.visited.add(index)
        return True

    def next_batch(self, batch_size: int) -> list[Any]:
        """The next points of the plan, or random ones where it has none."""
        made: list[Any] = []
        while len(made) < batch_size and self.has_next():
            index = self._from_plan()
            if index < 0:
                index = int(self.space.get_rand_index(to_exclude=self.visited))
            if index < 0:
                break
            self.visited.add(index)
            made.append(self.space.get(index))
        return made

    def _from_plan(self) -> int:
        """A point of the plan; -1 at its end, and one time in twenty."""
        while self.trial_pt < len(self.trials):
            index = self.trials[self.trial_pt]
            self.trial_pt += 1
            if index not in self.visited and self.space.is_index_valid(index):
                return -1 if np.random.random() < 0.05 else index
        return -1

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn, and after each plan make the next."""
        for inp, res in zip(inputs, results, strict=True):
            index = inp.config.index
            flops = 0.0
            if res.error_no == 0:
                flops = float((inp.task.flop or 1) / typical(res.costs))
                self.flops_max = max(self.flops_max, flops)
            self.xs.append(index)
            self.ys.append(flops)
            self.visited.add(index)
        if len(self.xs) >= self.plan_size * (self.train_ct + 1) and self.flops_max > 1e-6:
            self.cost_model.fit(self.xs, self.ys, self.plan_size)
            self._plan()
            self.train_ct += 1

    def _plan(self) -> None:
        wanted = self.plan_size
        if self.diversity_filter_ratio is not None:
            candidates = self.model_optimizer.find_maximums(
                self.cost_model, int(wanted * self.diversity_filter_ratio), self.visited
            )
            scores = self.cost_model.predict(candidates)
            knobs = [self.space.point2knob(candidate) for candidate in candidates]
            picked = submodular_pick(0 * scores, knobs, min(wanted, len(candidates)), knob_weight=1)
            self.trials = [candidates[number] for number in picked]
        else:
            self.trials = self.model_optimizer.find_maximums(self.cost_model, wanted, self.visited)
        self.trial_pt = 0

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Learn from earlier records, of other tasks too, and plan with that from the start."""
        base_model = self.cost_model.spawn_base_model()
        if not base_model.fit_log(data_set, self.plan_size, min_seed_records):
            return
        self.cost_model.load_basemodel(base_model)
        self._plan()


def submodular_pick(
    scores: np.ndarray[Any, Any],
    knobs: Sequence[Sequence[int]],
    n_pick: int,
    knob_weight: float | Sequence[float] = 1.0,
) -> list[int]:
    """Picks greedily for the sum of scores and of the different values of each knob that are covered."""
    count = len(knobs[0]) if knobs else 0
    weights = [knob_weight] * count if isinstance(knob_weight, (int, float)) else list(knob_weight)
    seen: list[set[int]] = [set() for _ in range(count)]
    left = list(range(len(scores)))
    picked: list[int] = []
    while left and len(picked) < n_pick:

        def gain(number: int) -> float:
            new = (
                weight
                for weight, value, values in zip(weights, knobs[number], seen, strict=True)
                if value not in values
            )
            return float(scores[number]) + sum(new)

        best = max(left, key=gain)
        picked.append(best)
        left.remove(best)
        for values, value in zip(seen, knobs[best], strict=True):
            values.add(value)
    return picked


__all__ = [
    "CostModel",
    "FeatureCache",
    "ModelBasedTuner",
    "ModelOptimizer",
    "knob2point",
    "point2knob",
    "submodular_pick",
]
