"""Where runners run their jobs: an executor takes a function with arguments and gives a future."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Executor(ABC):
    """Runs jobs. One of your own, set as a runner's ``executor``, may send them elsewhere."""

    @abstractmethod
    def submit(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function; the future has its result."""


class LocalExecutor(Executor):
    """Runs jobs at once. Functions that measure use processes of their own."""

    def submit(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function now."""
        future: Future[Any] = Future()
        try:
            future.set_result(func(*args, **kwargs))
        except Exception as problem:  # noqa: BLE001 - the caller gets it from the future
            future.set_exception(problem)
        return future
