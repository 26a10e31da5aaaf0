"""How a task is tuned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.auto_scheduler.builders import LocalBuilder, ProgramBuilder
from tilewright.auto_scheduler.measure_types import MeasureCallback
from tilewright.auto_scheduler.measurer import ProgramMeasurer
from tilewright.auto_scheduler.runners import LocalRunner, ProgramRunner
from tilewright.support.errors import TilewrightError


class TuningOptions:
    """How many candidates are measured, how many at once, when to stop, with what, and who is told.

    ``early_stopping`` ends a search after so many candidates without a better one. ``verbose`` 0 prints nothing.
    """

    def __init__(
        self,
        num_measure_trials: int = 0,
        early_stopping: int | None = None,
        num_measures_per_round: int = 64,
        verbose: int = 1,
        builder: str | ProgramBuilder = "local",
        runner: str | ProgramRunner = "local",
        measure_callbacks: Sequence[MeasureCallback] | MeasureCallback | None = None,
    ) -> None:
        self.num_measure_trials = num_measure_trials
        self.early_stopping = -1 if early_stopping is None else early_stopping
        self.num_measures_per_round = num_measures_per_round
        self.verbose = verbose
        self.builder = _chosen(builder, ProgramBuilder, LocalBuilder, "builder")
        self.runner = _chosen(runner, ProgramRunner, LocalRunner, "runner")
        given = [measure_callbacks] if isinstance(measure_callbacks, MeasureCallback) else measure_callbacks
        self.measure_callbacks: list[MeasureCallback] = list(given or ())
        if num_measures_per_round <= 0:
            raise TilewrightError(
                f"num_measures_per_round is {num_measures_per_round}; at least one is needed"
            )

    def measurer(self) -> ProgramMeasurer:
        """What measures as these options say."""
        return ProgramMeasurer(self.builder, self.runner, self.measure_callbacks, self.verbose)


def _chosen(given: Any, base: type[Any], default: type[Any], name: str) -> Any:
    if isinstance(given, base):
        return given
    if given == "local":
        return default()
    raise TilewrightError(f"{name} is 'local' or a {base.__name__}, not {given!r}")
