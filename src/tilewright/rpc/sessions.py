"""Sessions in processes of their own, which are ended at their time limit or with their client."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.rpc.channel import Channel
from tilewright.rpc.failures import ChannelError
from tilewright.rpc.folder import Folder
from tilewright.rpc.frames import Kind, frame
from tilewright.rpc.loop import GONE, READ, Loop, Timer
from tilewright.rpc.service import Service
from tilewright.rpc.serving import open_answer, serve
from tilewright.rpc.wire import Wire

_GRACE_SECONDS = 1.0
_POLL_SECONDS = 0.05
_PR_SET_PDEATHSIG = 1

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Child:
    """A session's process."""

    pid: int
    folder: Folder
    connection: socket.socket
    exit: int | None
    limit: Timer | None = None
    killed: bool = False


class Sessions:
    """The running sessions of a server."""

    def __init__(
        self, loop: Loop, on_end: Callable[[], None], close_copies: Callable[[], None], most_seconds: int = 0
    ) -> None:
        """``on_end`` is called after each session; ``close_copies`` in its process, to close what is not its own.
        ``most_seconds`` limits every session, 0 not."""
        self._loop, self._on_end, self._close_copies = loop, on_end, close_copies
        self._most_seconds = most_seconds
        self._children: dict[int, _Child] = {}

    def __len__(self) -> int:
        return len(self._children)

    def start(self, wire: Wire, label: str, seconds: int) -> None:
        """Starts a session for a client that was let in, with the time limit that it asked for."""
        seconds = min(filter(None, (seconds, self._most_seconds)), default=0)
        connection = wire.detach()
        folder = Folder(Path(tempfile.mkdtemp(prefix="tilewright-rpc-")))
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._be_child(wire, folder, label, seconds, parent)
        with contextlib.suppress(OSError):  # it did so itself, or has ended
            os.setpgid(pid, pid)
        child = _Child(pid, folder, connection, _exit_descriptor(pid))
        self._children[pid] = child
        if child.exit is not None:
            self._loop.watch(child.exit, READ, lambda events: self._ended(child))
        else:
            self._loop.later(_POLL_SECONDS, lambda: self._poll(child))
        # The session's process reads; this one only wants to know when the client is gone.
        self._loop.watch(connection.fileno(), GONE, lambda events: self._client_gone(child))
        if seconds:
            child.limit = self._loop.later(seconds, lambda: self._kill(child, "its time limit"))

    def _be_child(self, wire: Wire, folder: Folder, label: str, seconds: int, parent: int) -> None:
        """The session's process, from its start to its end; does not return."""
        status = 1
        try:
            os.setpgid(0, 0)
            _end_with(parent)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            self._close_copies()
            for other in self._children.values():
                other.connection.close()
            run_session(wire.channel(), folder, label, seconds)
            status = 0
        except ChannelError as error:
            _log.debug("a session ended: %s", error.message)
        except BaseException:  # noqa: BLE001 - it must not go on as the parent
            _log.exception("a session failed")
        finally:
            os._exit(status)

    # ---- the end of sessions ----

    def _client_gone(self, child: _Child) -> None:
        self._loop.forget(child.connection.fileno())
        self._loop.later(_GRACE_SECONDS, lambda: self._kill(child, "the end of its client"))

    def _kill(self, child: _Child, why: str) -> None:
        if child.pid in self._children:
            _log.info("a session is ended: %s", why)
            child.killed = True
            _kill_group(child.pid)

    def _poll(self, child: _Child) -> None:
        if child.pid in self._children and not self._reap(child):
            self._loop.later(_POLL_SECONDS, lambda: self._poll(child))

    def _ended(self, child: _Child) -> None:
        self._reap(child)

    def _reap(self, child: _Child) -> bool:
        """Frees what a session had, if it has ended."""
        try:
            ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        if ended is None:
            return False
        if ended.si_code != os.CLD_EXITED and not child.killed:
            _log.error("a session crashed with signal %s", ended.si_status)
        # What the session itself has started; before its number may be another process's.
        _kill_group(child.pid)
        os.waitpid(child.pid, 0)
        del self._children[child.pid]
        if child.limit is not None:
            child.limit.cancel()
        if child.exit is not None:
            self._loop.forget(child.exit)
            os.close(child.exit)
        self._loop.forget(child.connection.fileno())
        child.connection.close()
        child.folder.delete()
        self._on_end()
        return True

    def close(self) -> None:
        """Ends every session."""
        for child in list(self._children.values()):
            _kill_group(child.pid)
            os.waitpid(child.pid, 0)
            child.folder.delete()
        self._children.clear()


def run_session(channel: Channel, folder: Folder, label: str, seconds: int) -> None:
    """Serves a client that was let in."""
    service = Service(folder)
    try:
        channel.write(frame(Kind.OK, open_answer(label, seconds)))
        serve(channel, service)
    finally:
        service.close()
        channel.close()


def _exit_descriptor(pid: int) -> int | None:
    """A descriptor that can be read when a process has ended; None where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _kill_group(pid: int) -> None:
    """Kills a child that was not waited for yet, and what it has started."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _end_with(parent: int) -> None:
    """Has the system kill this process when its parent ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
