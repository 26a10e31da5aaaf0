"""A pool of worker processes that stays, each doing one job at a time.

A job is a function of this package, named by module and function, from bytes to bytes: nothing is pickled. A job that
exceeds its time limit is killed; one that crashes (LLVM aborts on its own internal errors) takes its worker down and
nothing else. The caller gets an outcome for each job, whatever happened to it.

Where the system can fork and no other Python thread runs, a worker is a fork, which starts at once. Otherwise it is a
new interpreter. Workers that have been idle for a while exit; so do all when this process ends.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import IO

from tilewright.support.collection import THRESHOLDS
from tilewright.support.options import compile_processes, own_variables

Job = Callable[[bytes], bytes]

IDLE_SECONDS = 60.0
_HEAD = struct.Struct("<cQ")
_STARTED, _DONE, _RAISED = b"s", b"d", b"r"


@dataclass(frozen=True)
class Done:
    """A job's result."""

    result: bytes


@dataclass(frozen=True)
class Failed:
    """Why a job has no result. ``crashed`` is False where it raised an exception of Python's, or where no worker could
    be started: the caller may do it itself. ``timed_out`` is True where it was killed at its time limit."""

    reason: str
    crashed: bool
    timed_out: bool = field(default=False, compare=False)


Outcome = Done | Failed


class WorkerPool:
    """Workers of this process. May be used from several threads at once; they share the workers. ``doing`` is what
    messages about a worker that died call it; ``forks`` False has every worker be a new interpreter."""

    def __init__(self, size: int, doing: str = "the compiler", forks: bool = True) -> None:
        self.size = size
        self.doing = doing
        self.forks = forks
        self._owner = os.getpid()
        self._idle: list[_Worker] = []
        self._count = 0
        self._changed = threading.Condition()

    def run(
        self,
        job: Job,
        payloads: Sequence[bytes],
        seconds: float,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Outcome]:
        """Do the job on every payload, each within so many seconds; ``on_done`` is told of each that ends."""
        outcomes: dict[int, Outcome] = {}
        waiting = list(range(len(payloads)))[::-1]
        busy: dict[int, tuple[_Worker, int, float]] = {}  # by the worker's socket: worker, payload, deadline
        try:
            while waiting or busy:
                while waiting and (worker := self._take(wait=not busy)) is not None:
                    number = waiting.pop()
                    worker.send(job, payloads[number])
                    busy[worker.socket.fileno()] = (worker, number, time.monotonic() + seconds)
                first = min(deadline for _, _, deadline in busy.values())
                # A worker of another thread's may become free before one of ours.
                patience = min(first - time.monotonic(), 0.05 if waiting and len(busy) < self.size else 3600)
                ready = _readable(list(busy), max(0.0, patience))
                late = [place for place, (_, _, deadline) in busy.items() if deadline <= time.monotonic()]
                for place in {*ready, *late}:
                    worker, number, _ = busy[place]
                    if place in ready and worker.starts():
                        continue
                    del busy[place]
                    outcome: Outcome | None = Failed(
                        f"took longer than {seconds:g} s", crashed=True, timed_out=True
                    )
                    if place in ready:
                        outcome = worker.receive()
                    else:
                        worker.kill()
                    self._give_back(worker)
                    if outcome is None:
                        waiting.append(number)
                        continue
                    outcomes[number] = outcome
                    if on_done is not None:
                        on_done(number)
        finally:
            # An interrupt: what the workers still do is of no use to anybody.
            for worker, _, _ in busy.values():
                worker.kill()
                self._give_back(worker)
        return [outcomes[number] for number in range(len(payloads))]

    def _take(self, wait: bool) -> _Worker | None:
        """A worker that has nothing to do, a new one, or None where all have; waits for one if asked."""
        with self._changed:
            while True:
                while self._idle:
                    worker = self._idle.pop()
                    if worker.is_alive():
                        return worker
                    worker.kill()
                    self._count -= 1
                if self._count < self.size:
                    worker = _Worker(self.doing, self.forks)
                    self._count += 1
                    return worker
                if not wait:
                    return None
                self._changed.wait()

    def _give_back(self, worker: _Worker) -> None:
        with self._changed:
            if worker.is_dead:
                self._count -= 1
            else:
                self._idle.append(worker)
            self._changed.notify()

    def close(self) -> None:
        """End the workers that have nothing to do."""
        with self._changed:
            while self._idle:
                self._idle.pop().kill()
                self._count -= 1

    @property
    def belongs_here(self) -> bool:
        """False in a fork of the process that made the pool: its workers are not the fork's."""
        return self._owner == os.getpid()


_pool: WorkerPool | None = None
_pool_lock = threading.Lock()


def _new_lock() -> None:
    """In a fork, whichever thread held the lock is gone."""
    global _pool_lock
    _pool_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def pool() -> WorkerPool:
    """The pool of this process, as large as ``TILEWRIGHT_COMPILE_PROCESSES`` says now."""
    global _pool
    with _pool_lock:
        size = compile_processes()
        if _pool is None or not _pool.belongs_here or _pool.size != size:
            if _pool is not None and _pool.belongs_here:
                _pool.close()
            _pool = WorkerPool(size)
        return _pool


@atexit.register
def _close_pool() -> None:
    """Workers would leave by themselves; their sockets and files are closed properly this way."""
    if _pool is not None and _pool.belongs_here:
        _pool.close()


def has_workers() -> bool:
    """True where worker processes can be made, and more than one process may compile."""
    return hasattr(os, "fork") and compile_processes() > 1


def can_fork() -> bool:
    """True where a fork is safe and starts at once: no other Python thread can hold a lock that the fork needs."""
    return sys.platform.startswith("linux") and threading.active_count() == 1


class _Worker:
    """One worker process, seen from its parent."""

    def __init__(self, doing: str, forks: bool) -> None:
        self.doing = doing
        self.is_dead = False
        self.has_started = forks and can_fork()
        self.socket, theirs = socket.socketpair()
        self._messages: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if self.has_started:
                self.number = _fork(theirs, self._messages)
            else:
                self._process = _start(theirs, self._messages)
                self.number = self._process.pid
        finally:
            theirs.close()

    def is_alive(self) -> bool:
        """False for a worker that has left; one without a job sends nothing, so anything to read is the end."""
        return not self.is_dead and not _readable([self.socket.fileno()], 0)

    def send(self, job: Job, payload: bytes) -> None:
        """Give it a job. One that dies meanwhile shows when its answer is read."""
        head = json.dumps(
            [job.__module__, job.__qualname__, own_variables(), sys.getrecursionlimit()]
        ).encode()
        with suppress(OSError):
            self.socket.sendall(_HEAD.pack(b"j", len(head)) + head + _HEAD.pack(b"p", len(payload)) + payload)

    def starts(self) -> bool:
        """True if what there is to read is the word that a new interpreter says first."""
        try:
            if self.has_started or self.socket.recv(1, socket.MSG_PEEK) != _STARTED:
                return False
            _read_frame(self.socket)
        except (EOFError, OSError):
            return False
        self.has_started = True
        return True

    def receive(self) -> Outcome | None:
        """What became of the job; None if the worker had left before it came."""
        try:
            kind, content = _read_frame(self.socket)
        except (EOFError, OSError):
            status = self._wait()
            reason = self._why_it_died(status)
            return Failed(reason, crashed=self.has_started) if status or not self.has_started else None
        if kind == _DONE:
            return Done(content)
        return Failed(content.decode(errors="replace"), crashed=False)

    def _why_it_died(self, status: int) -> str:
        self.is_dead = True
        self.socket.close()
        self._messages.seek(0)
        said = self._messages.read()[-2000:].decode(errors="replace").strip()
        self._messages.close()
        if status < 0:
            try:
                reason = f"{self.doing} crashed ({signal.Signals(-status).name})"
            except ValueError:
                reason = f"{self.doing} crashed (signal {-status})"
        else:
            reason = f"{self.doing} ended with status {status}"
        return f"{reason}: {said}" if said else reason

    def _wait(self) -> int:
        """The exit status of the process; minus the number of the signal that ended it."""
        if self._process is not None:
            return self._process.wait()
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.number, 0)[1])
        except ChildProcessError:  # somebody else has waited for it
            return 1

    def kill(self) -> None:
        """End it, whatever it does."""
        if self.is_dead:
            return
        self.is_dead = True
        with suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        self._wait()
        self.socket.close()
        self._messages.close()


def _fork(theirs: socket.socket, messages: IO[bytes]) -> int:
    """A fork of this process that serves the other end of a socket."""
    with warnings.catch_warnings():
        # The threads of the C runtime do not run Python; the child neither uses nor joins them.
        warnings.simplefilter("ignore", DeprecationWarning)
        # JAX warns of its own threads, which the child does not use either.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        # Keep nothing of the parent's open: other workers would never see it leave.
        os.dup2(messages.fileno(), 2)
        own = os.dup2(theirs.fileno(), 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        serve(socket.socket(fileno=own))
        status = 0
    finally:
        # Leave at once: files, exit handlers and threads are the parent's to clean up.
        os._exit(status)


def _start(theirs: socket.socket, messages: IO[bytes]) -> subprocess.Popen[bytes]:
    """A new interpreter that serves the other end of a socket."""
    number = theirs.fileno()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    return subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import serve_number; serve_number({number})"],
        pass_fds=[number],
        stdin=subprocess.DEVNULL,
        stderr=messages,
        env=environment,
        start_new_session=True,
    )


def serve_number(number: int) -> None:
    """What a new interpreter runs."""
    parent = socket.socket(fileno=number)
    parent.sendall(_HEAD.pack(_STARTED, 0))
    serve(parent)


def serve(parent: socket.socket) -> None:
    """Do jobs until the parent leaves, or nothing was asked for a while."""
    before: dict[str, str] = own_variables()
    # What a fork has inherited stays: looking for garbage there would copy its memory page by page.
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    while True:
        if not _readable([parent.fileno()], IDLE_SECONDS):
            return
        try:
            _, head = _read_frame(parent)
            _, payload = _read_frame(parent)
        except (EOFError, OSError):
            return
        module, name, variables, limit = json.loads(head)
        for missing in before.keys() - variables.keys():
            os.environ.pop(missing, None)
        os.environ.update(variables)
        before = variables
        sys.setrecursionlimit(limit)
        try:
            job: Job = getattr(import_module(module), name)
            kind, content = _DONE, job(payload)
        except Exception as problem:  # noqa: BLE001 - the parent decides what it means
            kind, content = _RAISED, f"{type(problem).__name__}: {problem}".encode()
        try:
            parent.sendall(_HEAD.pack(kind, len(content)) + content)
        except OSError:
            return


def _readable(files: Sequence[int], seconds: float) -> list[int]:
    """Those of the files that have something to read, or whose other end is closed; waits so long for the first."""
    with selectors.DefaultSelector() as selector:
        for number in files:
            selector.register(number, selectors.EVENT_READ)
        return [key.fd for key, _ in selector.select(seconds)]


def _read_frame(stream: socket.socket) -> tuple[bytes, bytes]:
    kind, size = _HEAD.unpack(_read(stream, _HEAD.size))
    return kind, _read(stream, size)


def _read(stream: socket.socket, size: int) -> bytes:
    content = bytearray(size)
    view, at = memoryview(content), 0
    while at < size:
        count = stream.recv_into(view[at:])
        if count == 0:
            raise EOFError
        at += count
    return bytes(content)
