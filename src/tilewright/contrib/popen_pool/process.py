"""One worker process, seen from its parent."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilewright.contrib.popen_pool.messages import packed, read_frame, unpacked, write_frame
from tilewright.contrib.popen_pool.worker import RAISED, STARTED
from tilewright.support.errors import TilewrightError

_START_SECONDS = 120.0
"""How long a new interpreter may take to read its first job: the time limit of a job is for the job only."""


def kill_child_processes(pid: int) -> None:
    """Ends the processes that a process has started, and theirs."""
    for child in _children(pid):
        kill_child_processes(child)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)


def _children(pid: int) -> list[int]:
    """The processes whose parent this is, as Linux says; elsewhere ``ps`` is asked."""
    lists = list(Path(f"/proc/{pid}/task").glob("*/children"))
    with suppress(OSError):
        if lists:
            return [int(child) for one in lists for child in one.read_text().split()]
    with suppress(OSError):
        asked = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, check=False)
        return [int(child) for child in asked.stdout.split()]
    return []


class PopenWorker:
    """A Python process that calls functions, one at a time, started when the first is sent.

    ``send`` gives it a function, ``recv`` waits for what became of it. A job beyond its time limit is a
    ``TimeoutError``, a process that ended is a ``ChildProcessError``; the next job gets a new process. ``initializer``
    is called with ``initargs`` in every new process.
    """

    def __init__(self, initializer: Callable[..., Any] | None = None, initargs: Sequence[Any] = ()) -> None:
        if initializer is not None and not callable(initializer):
            raise TypeError(f"the initializer is called in each process: {initializer!r} cannot be")
        self._initializer = initializer
        self._initargs = tuple(initargs)
        self._process: subprocess.Popen[bytes] | None = None
        self._incoming = -1
        self._timeout: float | None = None

    def __del__(self) -> None:
        with suppress(Exception):
            self.kill()

    def _start(self) -> None:
        incoming, theirs_out = os.pipe()
        theirs_in, outgoing = os.pipe()
        code = (
            "from tilewright.contrib.popen_pool.worker import serve; "
            f"serve({theirs_in}, {theirs_out}, {list(sys.path)!r})"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], pass_fds=[theirs_in, theirs_out], env=environment
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._incoming = incoming
        self._outgoing = os.fdopen(outgoing, "wb")
        if self._initializer is not None:
            self._put(self._initializer, self._initargs, {})
            self.recv()

    def _put(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        content = packed((fn, tuple(args), dict(kwargs)))
        with suppress(BrokenPipeError):  # recv says that the process has ended
            write_frame(self._outgoing, content)

    def send(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Gives the process a function to call, within so many seconds from when it begins."""
        if self._process is not None and self._process.poll() is not None:
            self.kill()
        self._timeout = None
        if self._process is None:
            self._start()
        self._timeout = timeout
        self._put(fn, args, kwargs or {})

    def recv(self) -> Any:
        """What the function that was sent returned, or the exception that it raised."""
        if self._process is None:
            raise TilewrightError("nothing was sent to this worker: send a function before recv")
        try:
            status, value = self._receive(_START_SECONDS)
            if status == STARTED:
                status, value = self._receive(self._timeout)
        except (TimeoutError, EOFError) as problem:
            process = self._process
            self.kill()
            if isinstance(problem, TimeoutError):
                raise
            raise ChildProcessError(f"the worker process ended with status {process.returncode}") from None
        if status == RAISED:
            raise value
        return value

    def _receive(self, seconds: float | None) -> tuple[int, Any]:
        limit = None if seconds is None else time.monotonic() + seconds

        def read(size: int) -> bytes:
            left = None if limit is None else max(0.0, limit - time.monotonic())
            if not select.select([self._incoming], [], [], left)[0]:
                raise TimeoutError(f"the job took longer than {seconds:g} s")
            return os.read(self._incoming, size)

        answer: tuple[int, Any] = unpacked(read_frame(read))
        return answer

    def join(self, timeout: float | None = None) -> None:
        """Lets the process finish, and waits for its end; after so many seconds it is ended anyway."""
        if self._process is None:
            return
        with suppress(OSError):
            self._outgoing.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.kill()

    def is_alive(self) -> bool:
        """True while there is a process that can take a job, or does one."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Ends the process and those that it started, whatever they do. The next job starts a new one."""
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.poll() is None:
            kill_child_processes(process.pid)
            process.kill()
        process.wait()
        with suppress(OSError):
            self._outgoing.close()
        os.close(self._incoming)
