"""Measures candidates, one after the other, in a process that may crash, hang or corrupt its memory.

The process is started once and serves batch after batch. A candidate that takes it down is measured once more in a new
one, so that it is not blamed for what an earlier candidate did to the memory of both.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tilewright.compile.workers import Failed, Outcome, WorkerPool
from tilewright.search import child
from tilewright.search.options import Argument, RunOptions
from tilewright.search.outcomes import Built, ErrorKind, Measured, count_outliers

_STARTING_SECONDS = 60.0
_pools: dict[str, WorkerPool] = {}


def run_all(
    built: Sequence[Built],
    arguments: Sequence[Argument],
    options: RunOptions = RunOptions(),  # noqa: B008 - it is frozen
    incumbent: Built | None = None,
    on_done: Callable[[int, Measured], None] | None = None,
) -> list[Measured]:
    """Measure what was built on these arguments; what was not built keeps its error. With an incumbent, each repeat of
    a candidate follows one of the incumbent's. ``on_done`` is told of each candidate as it ends."""
    results: dict[int, Measured] = {}

    def keep(number: int, measured: Measured) -> None:
        results[number] = measured
        if on_done is not None:
            on_done(number, measured)

    with tempfile.TemporaryDirectory(prefix="tilewright-measure-") as folder:
        write_arguments(Path(folder), arguments)
        other = b"" if incumbent is None or incumbent.unit is None else incumbent.unit
        for number, one in enumerate(built):
            if one.unit is None:
                keep(number, Measured((), one.error_kind, one.message, one.seconds, time.time()))
                continue
            starts = time.monotonic()
            payload = child.request(options, folder, one.unit, other)
            outcome = _run(payload, options)
            if isinstance(outcome, Failed) and outcome.crashed and not outcome.timed_out:
                outcome = _run(payload, options)
            keep(number, _measured(outcome, one, time.monotonic() - starts))
    return [results[number] for number in range(len(built))]


def _run(payload: bytes, options: RunOptions) -> Outcome:
    (outcome,) = _pool(options.device).run(child.measure, [payload], options.seconds)
    return outcome


def _pool(device: str) -> WorkerPool:
    """The process that runs candidates. A driver does not survive a fork: for a device, it is a new interpreter."""
    found = _pools.get(device)
    if found is None or not found.belongs_here:
        found = _pools[device] = WorkerPool(1, "the candidate", forks=device == "cpu")
        # The start of an interpreter is not part of any candidate's time.
        found.run(child.start, [b""], _STARTING_SECONDS)
    return found


def close_runners() -> None:
    """End the processes that run candidates."""
    for pool in _pools.values():
        if pool.belongs_here:
            pool.close()
    _pools.clear()


def _measured(outcome: Outcome, built: Built, seconds: float) -> Measured:
    spent = built.seconds + seconds
    if isinstance(outcome, Failed):
        kind = ErrorKind.RUN_TIMEOUT if outcome.timed_out else ErrorKind.RUNTIME_DEVICE
        return Measured((), kind, outcome.reason, spent, time.time())
    said = json.loads(outcome.result)
    if "kind" in said:
        return Measured((), ErrorKind(said["kind"]), said["message"], spent, time.time())
    costs = tuple(said["costs"])
    return Measured(
        costs,
        ErrorKind.NO_ERROR,
        "",
        spent,
        time.time(),
        tuple(said["incumbent"]),
        count_outliers(costs),
    )


def write_arguments(folder: Path, arguments: Sequence[Argument]) -> None:
    """Write what the arguments are, and the values of those that have some, for the process that runs candidates."""
    described = []
    for number, argument in enumerate(arguments):
        described.append([list(argument.shape), argument.dtype, argument.values is not None])
        if argument.values is not None:
            values = argument.values if isinstance(argument.values, np.ndarray) else argument.values.numpy()
            plain = values.view(f"V{values.dtype.itemsize}") if values.dtype.kind == "V" else values
            np.save(folder / f"{number}.npy", plain, allow_pickle=False)
    (folder / "arguments.json").write_text(json.dumps(described))
