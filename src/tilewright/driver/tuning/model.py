"""Tunes a model: its kernels one by one, then the model as a whole, with and without what was found."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.driver.tuning.comparison import Comparison, Kept, ModelComparison
from tilewright.driver.tuning.records import record_of
from tilewright.driver.tuning.states import StateTuner, state_tasks
from tilewright.driver.tvmc.compiler import Settings
from tilewright.driver.tvmc.export import Compiled
from tilewright.driver.tvmc.measurable import require_processor
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.driver.tvmc.runner import complete_inputs, with_shapes
from tilewright.driver.tvmc.tensors import module_inputs
from tilewright.relay.backend.explain import kernel_functions
from tilewright.search.kernel_task import kernel_tasks
from tilewright.search.kernel_tuner import KernelTuner, TuneOptions
from tilewright.search.progress import CurvePoint, TaskProgress, TuneListener, has_failed
from tilewright.search.records import RecordFile

_COMPARING_SHARE = 0.1
_LONGEST_COMPARING = 20.0
_CHOICES_SHARE = 0.6
"""Of the time, where AutoScheduler follows the search over choices."""


@dataclass(frozen=True)
class ModelTuning:
    """What tuning a model came to. ``kernels`` is how many kernels the model has, ``tasks`` those that were searched;
    ``applied`` are the names of those that use what was found."""

    model: str
    target: str
    records: str
    kernels: int
    tasks: Sequence[TaskProgress]
    curve: Sequence[CurvePoint]
    trials: int
    failures: int
    resumed: int
    seconds: float
    comparison: Comparison | None
    applied: frozenset[str]

    @property
    def improved(self) -> int:
        """Tasks that use what was found."""
        return len(self.applied)

    def last_line(self) -> str:
        """The result in one line, whatever it is."""
        tasks = f"{self.improved} of {len(self.tasks)} tasks improved"
        if not self.tasks:
            return "nothing to tune: no kernel of this model has a schedule with choices"
        if self.improved == 0 or self.comparison is None:
            return f"not faster than untuned; {tasks}"
        return f"{100 * (self.comparison.gain - 1):.1f} % faster than untuned; {tasks}"


def tune_model(
    model: TVMCModel,
    settings: Settings,
    name: str,
    records: str,
    options: TuneOptions,
    listener: TuneListener | None = None,
    fill_shapes: Mapping[str, Sequence[Any]] | None = None,
    tuner: str = "choices",
) -> ModelTuning:
    """Tune a model within the time that the options give; what is measured is appended to ``records``.

    ``tuner`` is ``choices``, which searches those of the constructed schedules, ``auto_scheduler``, or ``both``.
    """
    return _ModelTuner(model, settings, records, options, listener, fill_shapes).tune(name, tuner)


class _ModelTuner:
    """The steps, and what they share."""

    def __init__(
        self,
        model: TVMCModel,
        settings: Settings,
        records: str,
        options: TuneOptions,
        listener: TuneListener | None,
        fill_shapes: Mapping[str, Sequence[Any]] | None,
    ) -> None:
        self.starts = time.monotonic()
        require_processor(settings.target)
        if settings.executor == "aot":
            # The kernels are the same, and the graph executor can be compared with itself.
            settings = replace(settings, executor="graph")
        self.model, self.settings, self.records = model, settings, records
        self.options, self.listener = options, listener
        infos = module_inputs(model.mod, model.params)
        self.values = complete_inputs(with_shapes(infos, fill_shapes), {}, "random")
        self.comparing = min(_COMPARING_SHARE * options.seconds, _LONGEST_COMPARING)
        self.compiling = 0.0
        """Seconds that the model took, and will take once more with what was found."""

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self.starts

    def tune(self, name: str, tuner: str) -> ModelTuning:
        """Search, and compare."""
        begins = self.spent
        untuned = self.settings.compile(self.model.mod, self.model.params)
        self.compiling = self.spent - begins
        functions = kernel_functions(self.settings.fused(self.model.mod, self.model.params, untuned))
        searches: list[KernelTuner | StateTuner] = []
        with self.settings.context(self.model.mod, self.model.params):
            if tuner != "auto_scheduler":
                tasks = kernel_tasks(functions, self.settings.target)
                options = self._options(_CHOICES_SHARE if tuner == "both" else 1.0)
                choices = KernelTuner(tasks, RecordFile(self.records), options, self.listener)
                choices.tune()
                searches.append(choices)
            if tuner != "choices":
                found = state_tasks(self.model, self.settings)
                states = StateTuner(found, self.records, self._options(1.0), self.listener)
                states.tune(_has_states(self.records))
                searches.append(states)
        kept = self._compare(untuned)
        return ModelTuning(
            name,
            str(self.settings.target),
            self.records,
            len(functions),
            [task for one in searches for task in one.tasks],
            _joined(searches),
            sum(one.trials for one in searches),
            sum(one.failures for one in searches),
            sum(one.resumed for one in searches),
            self.spent,
            kept.comparison,
            _names(searches, kept),
        )

    def _options(self, share: float) -> TuneOptions:
        """The options with the time that is left for a search."""
        left = max(self.options.seconds - self.spent - self.comparing - self.compiling, 0.0)
        return replace(self.options, seconds=left * share)

    def _compare(self, untuned: Compiled) -> Kept:
        if not Path(self.records).exists():
            return Kept(None, frozenset(), frozenset())
        # A search without a limit of time may have been short.
        seconds = min(self.comparing, max(_COMPARING_SHARE * self.spent, 1.0))
        return ModelComparison(
            self.model, self.settings, untuned, self.values, self.records, seconds
        ).compare()


def _has_states(records: str) -> bool:
    return "state" in RecordFile(records).read(record_of).records


def _joined(searches: Sequence[KernelTuner | StateTuner]) -> list[CurvePoint]:
    """One curve of searches that followed each other. Each is about its own kernels: a later one goes on at the height
    that the one before reached, as far as it lowers its own start."""
    points: list[CurvePoint] = []
    for one in searches:
        if not one.curve:
            continue
        seconds, trials, height = (
            (points[-1].seconds, points[-1].trials, points[-1].kernel_seconds / one.curve[0].kernel_seconds)
            if points and one.curve[0].kernel_seconds > 0
            else (0.0, 0, 1.0)
        )
        points += [
            CurvePoint(point.seconds + seconds, point.trials + trials, point.kernel_seconds * height)
            for point in one.curve
        ]
    return points


def _names(searches: Sequence[KernelTuner | StateTuner], kept: Kept) -> frozenset[str]:
    """The names of the tasks that use what was found."""
    found = set()
    for one in searches:
        if isinstance(one, KernelTuner):
            found |= {task.name for task in one.tasks if task.workload in kept.workloads}
        else:
            found |= {task.name for task in one.tasks if task.task.workload_key in kept.states}
    return frozenset(found)


__all__ = ["ModelTuning", "TuneOptions", "has_failed", "tune_model"]
