"""Accepts connections for a loop, and keeps those who have not proved themselves few and short-lived."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

from tilewright.rpc.addresses import keep_alive
from tilewright.rpc.handshake import is_loopback, respond
from tilewright.rpc.loop import READ, Loop, Timer
from tilewright.rpc.wire import Wire

MOST_PENDING = 64
SECONDS_TO_PROVE = 10.0
_AT_ONCE = 32
_PAUSE_SECONDS = 0.1

_log = logging.getLogger(__name__)


class Acceptor:
    """Hands over each connection with its first frame, which is the first proof that the other side has the key."""

    def __init__(
        self,
        loop: Loop,
        listening: socket.socket,
        key: bytes | None,
        on_first: Callable[[Wire, int, bytes], None],
    ) -> None:
        self._loop, self._listening, self._key, self._on_first = loop, listening, key, on_first
        self._pending: dict[Wire, Timer] = {}  # in the order in which they came
        self.refused = 0
        loop.watch(listening.fileno(), READ, self._accept)

    def _accept(self, events: int) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:  # no descriptors left: wait until some are closed
                _log.warning("cannot accept a connection: %s", error)
                self._loop.forget(self._listening.fileno())
                self._loop.later(_PAUSE_SECONDS, self._resume)
                return
            self._begin(connection, str(address[0]))

    def _resume(self) -> None:
        self._loop.watch(self._listening.fileno(), READ, self._accept)

    def _begin(self, connection: socket.socket, host: str) -> None:
        while len(self._pending) >= MOST_PENDING:
            next(iter(self._pending)).end("too many connections that have proved nothing")
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_alive(connection)
        except OSError:  # it is gone already
            connection.close()
            return
        local = is_loopback(host)
        wire = Wire(
            self._loop,
            connection,
            lambda write: respond(write, self._key, local),
            self._proved,
            self._failed,
        )
        self._pending[wire] = self._loop.later(SECONDS_TO_PROVE, lambda: wire.end("no proof in time"))

    def _failed(self, wire: Wire, reason: str) -> None:
        timer = self._pending.pop(wire, None)
        if timer is not None:
            timer.cancel()
            self.refused += 1
            _log.debug("refused a connection: %s", reason)

    def _proved(self, wire: Wire, kind: int, head: bytes) -> None:
        timer = self._pending.pop(wire, None)
        if timer is not None:
            timer.cancel()
        self._on_first(wire, kind, head)

    def close(self) -> None:
        """Stops listening, and drops who is not in."""
        self._loop.forget(self._listening.fileno())
        self._listening.close()
        for wire in list(self._pending):
            wire.close()
        self._pending.clear()

    def close_copies(self) -> None:
        """In a forked process: closes this process's copies of all sockets."""
        self._listening.close()
        for wire in self._pending:
            wire.socket.close()
