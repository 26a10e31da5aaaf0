"""What a cost model is, one that knows nothing, and the base of users' own."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.auto_scheduler.measure_types import MeasureInput, MeasureResult


class CostModel:
    """Scores programs: the higher, the faster. Minus infinity marks a state that is not a valid program."""

    @property
    def is_random(self) -> bool:
        """True if scores say nothing: nothing is ranked by them then."""
        return False

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements."""
        raise NotImplementedError(f"{type(self).__name__} has no method update(inputs, results)")

    def predict(self, task: Any, states: Sequence[Any]) -> Any:
        """A score for each state of a task."""
        raise NotImplementedError(f"{type(self).__name__} has no method predict(task, states)")


class RandomModel(CostModel):
    """Scores at random."""

    @property
    def is_random(self) -> bool:
        """Always."""
        return True

    def __init__(self, seed: int | None = None) -> None:
        self.generator = np.random.default_rng(seed)

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Nothing is learnt."""

    def predict(self, task: Any, states: Sequence[Any]) -> list[float]:
        """Random scores."""
        return [float(score) for score in self.generator.random(len(states))]


def random_fill_float(size: int, return_ptr: Any) -> None:
    """Fill an array of float32, or memory given by its address or a pointer of ctypes, with random numbers between 0
    and 1."""
    if not isinstance(return_ptr, np.ndarray):
        pointer = ctypes.cast(return_ptr, ctypes.POINTER(ctypes.c_float))
        return_ptr = np.ctypeslib.as_array(pointer, shape=(size,))
    return_ptr[:size] = np.random.default_rng().random(size, dtype=np.float32)


class PythonBasedModel(CostModel):
    """The base of models of one's own: ``update(inputs, results)`` and ``predict(task, states)``, and where it is
    wanted ``predict_stages(task, states)`` with the scores of single statements."""

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Nothing is learnt unless a subclass does."""

    def predict_stages(self, task: Any, states: Sequence[Any]) -> Any:
        """The scores of the statements of each state."""
        raise NotImplementedError(f"{type(self).__name__} has no method predict_stages(task, states)")
