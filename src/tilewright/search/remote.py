"""Measures candidates on devices of a tracker: each in a session of its own, several devices at once."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tilewright.compile.unit import Unit, link
from tilewright.rpc.client import RPCSession
from tilewright.rpc.tracker_session import connect_tracker
from tilewright.runtime.device import Device
from tilewright.runtime.ndarray import NDArray, array
from tilewright.search.child import random_array
from tilewright.search.options import Argument, RunOptions
from tilewright.search.outcomes import Built, ErrorKind, Measured, count_outliers
from tilewright.support.errors import RPCSessionTimeoutError, TilewrightError

_FLUSH = "cache_flush_cpu_non_first_arg"
_TRANSFER_SECONDS = 30


@dataclass(frozen=True)
class Devices:
    """Devices that a tracker lends: those with a label, ``at_once`` of them at the same time."""

    key: str
    host: str
    port: int
    priority: int = 1
    at_once: int = 1
    wait_seconds: int = 0
    """How long to wait for a free device; 0 for ever."""


def run_remotely(
    built: Sequence[Built],
    arguments: Sequence[Argument],
    options: RunOptions,
    devices: Devices,
    on_done: Callable[[int, Measured], None] | None = None,
) -> list[Measured]:
    """Measure what was built on these arguments, as ``run_all`` does on this machine; the time limit is that of a
    session, with what it takes to send code and arguments on top."""

    def measure(number: int) -> Measured:
        one = built[number]
        if one.unit is None:
            measured = Measured((), one.error_kind, one.message, one.seconds, time.time())
        else:
            measured = _measure(one, arguments, options, devices)
        if on_done is not None:
            on_done(number, measured)
        return measured

    with ThreadPoolExecutor(max(1, devices.at_once), "tilewright-remote") as pool:
        return list(pool.map(measure, range(len(built))))


def _measure(built: Built, arguments: Sequence[Argument], options: RunOptions, devices: Devices) -> Measured:
    starts = time.monotonic()

    def failed(kind: ErrorKind, problem: Exception) -> Measured:
        spent = built.seconds + time.monotonic() - starts
        return Measured((), kind, f"{type(problem).__name__}: {problem}", spent, time.time())

    try:
        costs = _costs(built, arguments, options, devices)
    except RPCSessionTimeoutError as problem:
        return failed(ErrorKind.RUN_TIMEOUT, problem)
    except (TilewrightError, OSError, ValueError) as problem:
        return failed(ErrorKind.RUNTIME_DEVICE, problem)
    spent = built.seconds + time.monotonic() - starts
    return Measured(costs, ErrorKind.NO_ERROR, "", spent, time.time(), outliers=count_outliers(costs))


def _costs(
    built: Built, arguments: Sequence[Argument], options: RunOptions, devices: Devices
) -> tuple[float, ...]:
    assert built.unit is not None
    limit = round(options.seconds) + _TRANSFER_SECONDS
    with connect_tracker(devices.host, devices.port) as tracker:
        session = tracker.request(
            devices.key, devices.priority, session_timeout=limit, wait_seconds=devices.wait_seconds
        )
    with session:
        name = _send(session, built.unit)
        where = session.device(options.device, options.device_id)
        values = [_value(one, where, number) for number, one in enumerate(arguments)]
        module = session.load_module(name)
        number, least = (1, 0) if options.flush else (options.number, options.min_repeat_ms)
        evaluate = module.time_evaluator(
            options.function or module.entry_name,
            where,
            number,
            options.repeat,
            least,
            _FLUSH if options.flush else "",
        )
        costs = evaluate(*values).results
    if options.cooldown > 0:
        time.sleep(options.cooldown)
    return costs


def _send(session: RPCSession, unit: bytes) -> str:
    """Uploads the code of a candidate; its name there."""
    read = Unit.from_bytes(unit)
    with tempfile.TemporaryDirectory(prefix="tilewright-measure-") as folder:
        path = Path(folder) / "candidate.tar"  # every server links objects itself
        link([read], read.host.target).export_library(str(path))
        session.upload(path)
    return path.name


def _value(argument: Argument, where: Device, number: int) -> NDArray:
    if argument.values is not None:
        return array(argument.values, where)
    return random_array(list(argument.shape), argument.dtype, where, number)
