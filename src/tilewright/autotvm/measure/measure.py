"""What is measured, what comes of it, and how: inputs, results, builders and runners."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple


class MeasureInput(NamedTuple):
    """A configuration of a task, on a target."""

    target: Any
    task: Any
    config: Any


class MeasureResult(NamedTuple):
    """``costs``: seconds of each repeat, or the error; ``all_cost``: seconds that building and measuring took;
    ``timestamp``: when it ended."""

    costs: Sequence[Any]
    error_no: int
    all_cost: float
    timestamp: float

    def __repr__(self) -> str:
        error = _NAMES.get(self.error_no, self.error_no)
        spent = f"all_cost={self.all_cost}, timestamp={self.timestamp}"
        return f"MeasureResult(costs={self.costs}, error_no={error}, {spent})"


class MeasureErrorNo(IntEnum):
    """Where a candidate failed; the numbers stand in records."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


_NAMES = {number.value: f"MeasureErrorNo.{number.name}" for number in MeasureErrorNo}


class Builder(ABC):
    """Builds the programs of inputs, ``n_parallel`` at a time, each within ``timeout`` seconds."""

    def __init__(
        self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: dict[str, Any] | None = None
    ) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel or len(os.sched_getaffinity(0)) or 1
        self.user_build_kwargs = dict(build_kwargs or {})
        self.build_kwargs: dict[str, Any] = {}
        self.task: Any = None

    def set_task(self, task: Any, build_kwargs: dict[str, Any] | None = None) -> None:
        """Say which task is tuned; ``build_kwargs`` is what the runner wants of programs."""
        self.task = task
        self.build_kwargs = {**self.user_build_kwargs, **(build_kwargs or {})}

    @abstractmethod
    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        """One build result for each input, or a ``MeasureResult`` that says why there is none."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it builds")


class Runner(ABC):
    """Runs programs, each within ``timeout`` seconds."""

    def __init__(self, timeout: float = 5, n_parallel: int | None = None) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel or len(os.sched_getaffinity(0)) or 1
        self.task: Any = None

    def set_task(self, task: Any) -> None:
        """Say which task is tuned."""
        self.task = task

    def get_build_kwargs(self) -> dict[str, Any]:
        """What programs need, for the builder: the limits of the device."""
        return {}

    @abstractmethod
    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        """One result for each input."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it runs programs")
