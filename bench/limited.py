"""A function in a process of its own, with limits of time and memory: whatever becomes of it is a result."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

_TICK = 1.0
_ROUND = 0.05
"""Seconds between two looks at processes that run at once."""


class _Clock:
    """Seconds in which this process was not suspended. A run may be stopped while something else is measured."""

    def __init__(self) -> None:
        self.active = self.suspended = 0.0
        self._last = time.perf_counter()

    def seconds(self) -> float:
        """The seconds so far; to be asked at least once in each tick."""
        now = time.perf_counter()
        passed, self._last = now - self._last, now
        awake = min(passed, 3 * _TICK)
        self.active += awake
        self.suspended += passed - awake
        return self.active


def failed(error: BaseException) -> dict[str, Any]:
    """How a function failed, as a result."""
    where = "".join(traceback.format_exception(error))[-2000:]
    return {"status": "error", "note": f"{type(error).__name__}: {error}"[:600], "trace": where}


def child(work: Callable[[], Iterator[dict[str, Any]]], memory: int, answer: Connection) -> None:
    """The process: what the function yields, or how it failed."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    try:
        for found in work():
            answer.send(found)
    except BaseException as error:  # noqa: BLE001 - whatever it is goes into the table
        answer.send(failed(error))
    answer.send(None)


def run(work: Callable[[], dict[str, Any]], limit: float, memory: int) -> dict[str, Any]:
    """The result of a function in a process with limits, whatever becomes of it."""
    return next(series(lambda: iter([work()]), limit, memory))


def series(
    work: Callable[[], Iterator[dict[str, Any]]], limit: float, memory: int
) -> Iterator[dict[str, Any]]:
    """The results that a function yields in a process with limits, each within the limit of time.

    Where the process ends, or has to be ended, before its time, the last result says so.
    """
    with closing(polled(work, limit, memory, _TICK)) as found:
        yield from (one for one in found if one is not None)


def polled(
    work: Callable[[], Iterator[dict[str, Any]]], limit: float, memory: int, wait: float = 0.0
) -> Generator[dict[str, Any] | None]:
    """As ``series``, but with None wherever no result came within the seconds of ``wait``, for ``together``."""
    # The packages are loaded once, here; a child has them from the start.
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(work, memory, send))
    process.start()
    send.close()
    try:
        while True:
            clock = _Clock()
            try:
                while not receive.poll(wait):
                    if clock.seconds() > limit:
                        yield {"status": "time limit", "seconds": limit, "note": ""}
                        return
                    yield None
                found = receive.recv()
            except EOFError:
                process.join(10)
                yield {
                    "status": "crash",
                    "seconds": round(clock.seconds(), 1),
                    "note": f"exit {process.exitcode}",
                }
                return
            clock.seconds()
            if found is not None and clock.suspended and "seconds" in found:
                found["seconds"] = round(max(found["seconds"] - clock.suspended, 0.0), 1)
            if found is None:
                process.join(1)
                return
            yield dict(found)
    finally:
        if process.is_alive() and process.pid is not None:
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


def together(tasks: Iterator[Generator[None]], jobs: int) -> None:
    """Go through tasks, up to a number of them at once. A task yields where it has to wait, as ``polled`` does."""
    with ExitStack() as stack:
        running: list[Generator[None]] = []
        while True:
            for task in islice(tasks, jobs - len(running)):
                stack.enter_context(closing(task))
                running.append(task)
            if not running:
                return
            running = [task for task in running if next(task, task) is None]
            time.sleep(_ROUND)
