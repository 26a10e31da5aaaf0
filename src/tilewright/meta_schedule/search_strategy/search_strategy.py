"""Search strategies: which candidates of the design spaces are measured next."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.meta_schedule.arg_info import ArgInfo
from tilewright.meta_schedule.runner.runner import RunnerResult
from tilewright.meta_schedule.utils import require_overridden
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Object
from tilewright.tir.function import PrimFunc
from tilewright.tir.schedule.schedule import Schedule
from tilewright.tir.schedule.trace import Trace

if TYPE_CHECKING:
    from tilewright.meta_schedule.tune_context import TuneContext


class MeasureCandidate(Object):
    """A schedule to measure, and what the arguments of its function are."""

    def __init__(self, sch: Schedule, args_info: Sequence[ArgInfo]) -> None:
        self.sch = sch
        self.args_info = list(args_info)


class SearchStrategy(Object):
    """What chooses candidates. ``pre_tuning`` comes first; then candidates are generated and their results notified,
    in turn; ``post_tuning`` comes last."""

    def initialize_with_tune_context(self, tune_context: TuneContext) -> None:
        """Learn what is tuned."""
        raise NotImplementedError(f"{type(self).__name__} has no method initialize_with_tune_context")

    def pre_tuning(self, design_spaces: Sequence[Schedule]) -> None:
        """Start with these design spaces."""
        raise NotImplementedError(f"{type(self).__name__} has no method pre_tuning")

    def post_tuning(self) -> None:
        """The end of the search."""
        raise NotImplementedError(f"{type(self).__name__} has no method post_tuning")

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The candidates to measure next; None if the search has ended."""
        raise NotImplementedError(f"{type(self).__name__} has no method generate_measure_candidates")

    def notify_runner_results(self, results: Sequence[RunnerResult]) -> None:
        """Learn what the last candidates measured."""
        raise NotImplementedError(f"{type(self).__name__} has no method notify_runner_results")


class PySearchStrategy(SearchStrategy):
    """The base of strategies that programs write."""

    def __init__(self) -> None:
        names = [name for name in vars(SearchStrategy) if not name.startswith("_")]
        require_overridden(self, SearchStrategy, names)


class ReplayTrace(PySearchStrategy):
    """Replays the steps of the design spaces with new random decisions, so often in all."""

    def __init__(self, num_trials_per_iter: int, num_trials_total: int) -> None:
        super().__init__()
        if num_trials_per_iter < 1:
            raise TilewrightError(f"num_trials_per_iter is at least 1, not {num_trials_per_iter}")
        self.num_trials_per_iter = num_trials_per_iter
        self.num_trials_total = num_trials_total
        self._context: TuneContext | None = None
        self._spaces: list[Trace] | None = None
        self._done = 0
        self._random = random.Random()

    def initialize_with_tune_context(self, tune_context: TuneContext) -> None:
        if tune_context.mod is None:
            raise TilewrightError("the context of a search needs a module")
        self._context = tune_context
        self._random = random.Random(tune_context.rand_state)

    def pre_tuning(self, design_spaces: Sequence[Schedule]) -> None:
        if self._spaces is not None:
            raise TilewrightError("the search has started; post_tuning ends it")
        if not design_spaces:
            raise TilewrightError("there are no design spaces to choose from")
        # The decisions are left out: a replay takes new ones.
        self._spaces = [Trace(space.trace.simplified(True).insts, {}) for space in design_spaces]
        self._done = 0

    def post_tuning(self) -> None:
        self._spaces = None

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        if self._spaces is None or self._context is None:
            raise TilewrightError("call initialize_with_tune_context and pre_tuning first")
        mod = self._context.mod
        count = min(self.num_trials_per_iter, self.num_trials_total - self._done)
        if count <= 0:
            return None
        assert mod is not None
        entry = mod["main"] if "main" in mod else next(iter(mod.functions.values()))
        assert isinstance(entry, PrimFunc)
        args_info = ArgInfo.from_prim_func(entry)
        candidates = []
        for _ in range(count):
            schedule = Schedule(mod, seed=self._random.randrange(1, 2**31 - 1))
            self._random.choice(self._spaces).apply_to_schedule(schedule, remove_postproc=True)
            candidates.append(MeasureCandidate(schedule, args_info))
        return candidates

    def notify_runner_results(self, results: Sequence[RunnerResult]) -> None:
        self._done += len(results)
