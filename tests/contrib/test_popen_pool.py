"""Worker processes for Python functions."""

from __future__ import annotations

import os
import signal
import time
from typing import NoReturn

import pytest

from tilewright.contrib.popen_pool import PopenPoolExecutor, PopenWorker, StatusKind
from tilewright.support.errors import TilewrightError
from tilewright.testing import after_initializer, identity_after, initializer, terminate_self


def fail(number: int) -> NoReturn:
    """An error of the job's own."""
    raise ValueError(f"no {number}")


def test_one_worker() -> None:
    """Time-outs and crashes cost the process only; the next job has a new one, which is initialised again."""
    worker = PopenWorker(initializer, (1, 2, 3))
    with pytest.raises(TilewrightError, match="send a function before recv"):
        worker.recv()
    begin = time.monotonic()
    worker.send(identity_after, (1, 60), timeout=0.05)
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"):
        worker.recv()
    assert time.monotonic() - begin < 30 and not worker.is_alive()
    worker.send(after_initializer)
    assert worker.recv() == (1, 2, 3) and worker.is_alive()
    worker.send(terminate_self)
    with pytest.raises(ChildProcessError, match="ended with status 255"):
        worker.recv()
    worker.send(fail, (7,))
    with pytest.raises(ValueError, match="no 7") as caught:
        worker.recv()
    assert "in the worker process" in caught.value.__notes__[0]
    worker.join()
    assert not worker.is_alive()


def test_functions_that_cannot_be_imported() -> None:
    """Lambdas, closures and functions that call themselves travel as their code."""

    def factorial(number: int) -> int:
        return 1 if number == 0 else number * factorial(number - 1)

    pool = PopenPoolExecutor(max_workers=1)
    offset = 5
    assert pool.submit(lambda x, *, scale=2: os.path.basename(f"/a/{x * scale + offset}"), 4).result() == "13"
    assert pool.submit(factorial, 5).result() == 120


def test_a_pool_says_what_became_of_each_job() -> None:
    """In order, whatever happened; a process that a signal ended too."""

    def job(number: int) -> int:
        if number == 1:
            raise KeyError(number)
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 3:
            time.sleep(60)
        return number

    pool = PopenPoolExecutor(max_workers=2, timeout=0.5)
    results = list(pool.map_with_error_catching(job, range(5)))
    assert [one.status for one in results] == [
        StatusKind.COMPLETE,
        StatusKind.EXCEPTION,
        StatusKind.EXCEPTION,
        StatusKind.TIMEOUT,
        StatusKind.COMPLETE,
    ]
    assert isinstance(results[2].value, ChildProcessError) and results[4].value == 4
