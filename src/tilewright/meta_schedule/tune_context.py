"""What a search is about: a module, a target, a design space and a strategy."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tilewright.ir.module import IRModule
from tilewright.meta_schedule.runner.runner import RunnerFuture
from tilewright.meta_schedule.search_strategy.search_strategy import MeasureCandidate, SearchStrategy
from tilewright.meta_schedule.space_generator.space_generator import SpaceGenerator
from tilewright.meta_schedule.utils import cpu_count
from tilewright.support.node import Object
from tilewright.target.target import Target, TargetLike
from tilewright.tir.function import PrimFunc


class TuneContext(Object):
    """One task of a tuning. ``rand_state`` -1 is a seed of chance, ``num_threads`` None all processors."""

    def __init__(
        self,
        mod: IRModule | PrimFunc | None = None,
        target: TargetLike | None = None,
        space_generator: SpaceGenerator | None = None,
        search_strategy: SearchStrategy | None = None,
        task_name: str | None = None,
        rand_state: int = -1,
        num_threads: int | None = None,
    ) -> None:
        self.mod = IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod
        self.target = None if target is None else Target(target)
        self.space_generator = space_generator
        self.search_strategy = search_strategy
        self.task_name = task_name
        self.rand_state = random.randrange(1, 2**31 - 1) if rand_state == -1 else rand_state
        self.num_threads = cpu_count() if num_threads is None else num_threads
        self.is_stopped = False
        self.runner_futures: list[RunnerFuture] | None = None
        self.measure_candidates: Sequence[MeasureCandidate] | None = None

    def initialize(self) -> None:
        """Tell the design space and the strategy what is tuned."""
        if self.space_generator is not None:
            self.space_generator.initialize_with_tune_context(self)
        if self.search_strategy is not None:
            self.search_strategy.initialize_with_tune_context(self)
