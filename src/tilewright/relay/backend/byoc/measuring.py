"""Times of models on this machine, taken in turns: what disturbs one disturbs the others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.build_module import build
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.runtime.device import cpu
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.target import Target

ROUNDS = 5
_ROUND_SECONDS = 0.03
_MOST_RUNS = 200


def random_inputs(main: Function) -> dict[str, np.ndarray[Any, Any]]:
    """Values for the parameters of a typed function: numbers in [-1, 1), and zero for integers, which may be
    indices."""
    generator = np.random.default_rng(0)
    made: dict[str, np.ndarray[Any, Any]] = {}
    for parameter in main.params:
        kind = parameter.checked_type
        dtype = str(kind.dtype)
        values = generator.uniform(-1, 1, kind.concrete_shape)
        made[parameter.name_hint] = (
            values.astype(dtype) if dtype.startswith("float") else np.zeros(kind.concrete_shape, dtype)
        )
    return made


class Contestant:
    """A model that is compiled and ready to be timed."""

    def __init__(
        self, module: IRModule, target: Target, inputs: Mapping[str, Any] | None = None, context: Any = None
    ) -> None:
        typed = infer_module(module)
        with context if context is not None else PassContext(opt_level=3):
            self.factory = build(typed, target)
        self.executor: GraphExecutor = self.factory["default"](cpu())
        for name, value in (inputs if inputs is not None else random_inputs(typed["main"])).items():
            self.executor.set_input(name, value)
        self.executor.run()  # primitives are made and weights packed in the first run
        self.rounds: list[float] = []
        self._runs = 1

    @property
    def best(self) -> float:
        """The seconds of a run in the best round."""
        return min(self.rounds)

    def round(self) -> None:
        """Time a few runs; where one is short, a first one is not counted, which finds the caches and the threads as
        another contestant left them."""
        if self._runs > 1:
            self.executor.run()
        started = time.perf_counter()
        for _ in range(self._runs):
            self.executor.run()
        seconds = (time.perf_counter() - started) / self._runs
        self.rounds.append(seconds)
        self._runs = max(1, min(_MOST_RUNS, int(_ROUND_SECONDS / max(seconds, 1e-7))))


def race(contestants: Sequence[Contestant], rounds: int = ROUNDS) -> list[float]:
    """The seconds of a run of each, timed in turns; another one begins each time, so that none always follows the
    same one."""
    for number in range(rounds + 1):
        first = number % len(contestants)
        for one in [*contestants[first:], *contestants[:first]]:
            one.round()
    return [one.best for one in contestants]


def is_faster(one: Contestant, other: Contestant, margin: float) -> bool:
    """True if a contestant needs at most this part of the other's time, in the best round of each and in the middle
    one of the rounds that they ran side by side: one lucky round decides nothing."""
    ratios = sorted(mine / yours for mine, yours in zip(one.rounds, other.rounds, strict=True))
    return one.best < margin * other.best and ratios[len(ratios) // 2] < margin
