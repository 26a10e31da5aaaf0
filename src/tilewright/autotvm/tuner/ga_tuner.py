"""A genetic algorithm: the values of the knobs are the genes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult
from tilewright.autotvm.tuner.tuner import Tuner
from tilewright.search.outcomes import typical


class GATuner(Tuner):
    """Populations of ``pop_size``, of which the best ``elite_num`` survive; genes mutate with ``mutation_prob``."""

    def __init__(
        self, task: Any, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1
    ) -> None:
        super().__init__(task)
        if elite_num > pop_size:
            raise ValueError(f"{elite_num} cannot survive from a population of {pop_size}")
        self.space = task.config_space
        self.pop_size = min(pop_size, len(self.space))
        self.elite_num = min(elite_num, self.pop_size)
        self.mutation_prob = mutation_prob
        self.dims: list[int] = self.space.dims
        self.visited: set[int] = set()
        self.genes: list[list[int]] = [
            self.space.point2knob(index) for index in self.space.sample_ints(self.pop_size)
        ]
        self.visited.update(self.space.knob2point(gene) for gene in self.genes)
        self.scores: list[float] = []
        self.elites: list[list[int]] = []
        self.elite_scores: list[float] = []
        self.trial_pt = 0

    def has_next(self) -> bool:
        """True if there are genes to measure."""
        return self.trial_pt < len(self.genes)

    def takes_default(self, index: int) -> bool:
        """The default is the first gene."""
        self.visited.add(index)
        default = self.space.point2knob(index)
        if default in self.genes:
            self.genes.remove(default)
        self.genes.insert(0, default)
        self.trial_pt = 1
        return True

    def next_batch(self, batch_size: int) -> list[Any]:
        """The next genes of the population."""
        chosen = self.genes[self.trial_pt : self.trial_pt + batch_size]
        self.trial_pt += len(chosen)
        return [self.space.get(self.space.knob2point(gene)) for gene in chosen]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Score genes; after the last one of a population, make the next."""
        for inp, res in zip(inputs, results, strict=True):
            is_good = res.error_no == 0
            self.scores.append(float((inp.task.flop or 1) / typical(res.costs)) if is_good else 0.0)
        if len(self.scores) < len(self.genes):
            return
        genes = self.genes + self.elites
        scores = np.array(self.scores[: len(self.genes)] + self.elite_scores)
        best = np.argsort(-scores, kind="stable")[: self.elite_num]
        self.elites = [genes[number] for number in best]
        self.elite_scores = [float(scores[number]) for number in best]
        self.genes, self.scores, self.trial_pt = self._offspring(genes, scores), [], 0

    def _offspring(self, genes: list[list[int]], scores: np.ndarray[Any, Any]) -> list[list[int]]:
        """The next population, none of which was measured before."""
        chances = scores + 1e-8
        chances = chances / chances.sum()
        left = len(self.space) - len(self.visited)
        made: list[list[int]] = []
        for _ in range(min(self.pop_size, left)):
            first, second = np.random.choice(len(genes), size=2, replace=True, p=chances)
            point = int(np.random.randint(len(self.dims))) if self.dims else 0
            child = genes[first][:point] + genes[second][point:]
            index = self._fresh(self._mutated(child))
            if index < 0:
                break
            self.visited.add(index)
            made.append(self.space.point2knob(index))
        return made

    def _mutated(self, child: list[int]) -> list[int]:
        return [
            int(np.random.randint(size)) if np.random.random() < self.mutation_prob else value
            for value, size in zip(child, self.dims, strict=True)
        ]

    def _fresh(self, child: list[int]) -> int:
        """The child, changed until it is a point that was not measured; -1 where there is none."""
        index: int = self.space.knob2point(child)
        for _ in range(32):
            if index not in self.visited and self.space.is_index_valid(index):
                return index
            index = self.space.random_walk(index)
        return int(self.space.get_rand_index(to_exclude=self.visited))

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Nothing: populations are of this task only."""
