"""What happens after each batch of a tuner: records are written, progress is shown."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from tilewright.autotvm import record
from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult
from tilewright.autotvm.utils import format_si_prefix
from tilewright.search.outcomes import typical
from tilewright.search.records import RecordFile

logger = logging.getLogger("autotvm")


def log_to_file(file_out: str | Path | IO[str], protocol: str = "json") -> Any:
    """Append every measurement to a file. With a path, each batch is on the disk before the tuner goes on."""

    def write(_: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        lines = [record.encode(inp, res, protocol) for inp, res in zip(inputs, results, strict=True)]
        if isinstance(file_out, (str, Path)):
            RecordFile(file_out).append(lines)
        else:
            file_out.write("".join(f"{line}\n" for line in lines))

    # The path must be usable before anything is measured.
    if isinstance(file_out, (str, Path)):
        Path(file_out).parent.mkdir(parents=True, exist_ok=True)
    return write


def log_to_database(db: Any) -> Any:
    """Save every measurement to a database."""

    def save(_: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, res in zip(inputs, results, strict=True):
            db.save(inp, res)

    return save


class Monitor:
    """Keeps the speed and the time of every measurement."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, res in zip(inputs, results, strict=True):
            is_good = res.error_no == 0
            self.scores.append(float(inp.task.flop / typical(res.costs)) if is_good else 0.0)
            self.timestamps.append(res.timestamp)

    def reset(self) -> None:
        """Forget everything."""
        self.scores, self.timestamps = [], []

    def trial_scores(self) -> np.ndarray[Any, Any]:
        """Operations a second, 0 for failures, in the order of the measurements."""
        return np.array(self.scores)

    def trial_timestamps(self) -> np.ndarray[Any, Any]:
        """When each measurement ended."""
        return np.array(self.timestamps)


class _Progress:
    """The state of a progress bar."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.tried = 0
        self.failed = 0
        self.current = 0.0
        self.best = 0.0
        self.started = time.monotonic()


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Any:
    """Show the current and the best speed, and how many candidates were measured, in one line."""
    state = _Progress(total)
    format_si_prefix(0, si_prefix)

    def show(tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, res in zip(inputs, results, strict=True):
            state.tried += 1
            if res.error_no == 0:
                state.current = float(inp.task.flop / typical(res.costs))
                state.best = max(state.best, state.current)
            else:
                state.failed += 1
        if logger.isEnabledFor(logging.DEBUG):
            return
        failures = f", {state.failed} failed" if state.failed else ""
        seconds = time.monotonic() - state.started
        sys.stdout.write(
            f"\r{prefix} Current/Best: {format_si_prefix(state.current, si_prefix):7.2f}/"
            f"{format_si_prefix(state.best, si_prefix):7.2f} {si_prefix}FLOPS | "
            f"Progress: ({state.tried}/{state.total}{failures}) | {seconds:.2f} s"
        )
        if state.tried >= state.total or not tuner or not tuner.has_next():
            sys.stdout.write(" Done.\n")
        sys.stdout.flush()

    return show
