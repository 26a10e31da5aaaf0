"""Several workers behind the interface of ``concurrent.futures``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import IntEnum
from typing import Any, NamedTuple

from tilewright.contrib.popen_pool.process import PopenWorker


class StatusKind(IntEnum):
    """What became of a job."""

    RUNNING = 0
    COMPLETE = 1
    EXCEPTION = 2
    TIMEOUT = 3


class MapResult(NamedTuple):
    """The result of a job or, where it has none, the exception that says why."""

    status: StatusKind
    value: Any


class PopenPoolExecutor:
    """Calls functions in worker processes, at most ``max_workers`` at once, each within ``timeout`` seconds."""

    def __init__(
        self,
        max_workers: int | None = None,
        timeout: float | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Sequence[Any] = (),
    ) -> None:
        if initializer is not None and not callable(initializer):
            raise TypeError(f"the initializer is called in each process: {initializer!r} cannot be")
        self._threads = ThreadPoolExecutor(max_workers or os.cpu_count() or 1)
        self._timeout = timeout
        self._initializer = initializer
        self._initargs = initargs
        self._workers: dict[int, PopenWorker] = {}
        self._lock = threading.Lock()

    def __del__(self) -> None:
        threads = getattr(self, "_threads", None)
        if threads is None:
            return
        for worker in list(self._workers.values()):
            worker.kill()
        threads.shutdown(wait=False, cancel_futures=True)

    def _do(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._lock:
            worker = self._workers.setdefault(
                threading.get_ident(), PopenWorker(self._initializer, self._initargs)
            )
        worker.send(fn, args, kwargs, self._timeout)
        return worker.recv()

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """A future for the call of a function. Its exception is a ``TimeoutError`` where the job took too long, a
        ``ChildProcessError`` where its process ended."""
        return self._threads.submit(self._do, fn, args, kwargs)

    def map_with_error_catching(
        self, fn: Callable[[Any], Any], iterator: Iterable[Any]
    ) -> Iterator[MapResult]:
        """The outcome of the function for each value, in order, whatever became of it."""
        for future in [self.submit(fn, value) for value in iterator]:
            try:
                yield MapResult(StatusKind.COMPLETE, future.result())
            except TimeoutError as problem:
                yield MapResult(StatusKind.TIMEOUT, problem)
            except Exception as problem:  # noqa: BLE001 - what became of the job is the result
                yield MapResult(StatusKind.EXCEPTION, problem)
