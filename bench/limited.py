"""A function in a process of its own, with limits of time and memory: whatever becomes of it is a result."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def child(work: Callable[[], dict[str, Any]], memory: int, answer: Connection) -> None:
    """The process: what the function gives, or how it failed."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    try:
        answer.send(work())
    except BaseException as error:  # noqa: BLE001 - whatever it is goes into the table
        where = "".join(traceback.format_exception(error))[-2000:]
        answer.send({"status": "error", "note": f"{type(error).__name__}: {error}"[:600], "trace": where})


def run(work: Callable[[], dict[str, Any]], limit: float, memory: int) -> dict[str, Any]:
    """The result of a function in a process with limits, whatever becomes of it."""
    # The packages are loaded once, here; a child has them from the start.
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(work, memory, send))
    started = time.perf_counter()
    process.start()
    send.close()
    try:
        if not receive.poll(limit):
            return {"status": "time limit", "seconds": limit, "note": ""}
        return dict(receive.recv())
    except EOFError:
        process.join(10)
        return {
            "status": "crash",
            "seconds": round(time.perf_counter() - started, 1),
            "note": f"exit {process.exitcode}",
        }
    finally:
        if process.is_alive():
            process.join(1)
        if process.is_alive() and process.pid is not None:
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
