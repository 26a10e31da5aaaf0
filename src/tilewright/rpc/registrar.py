"""How a server keeps itself known to a tracker."""

from __future__ import annotations

import hmac
import logging
import secrets
import socket
import time

from tilewright.rpc.frames import Kind, Reader, text
from tilewright.rpc.handshake import initiate, is_loopback
from tilewright.rpc.loop import Loop
from tilewright.rpc.values import BOOL, U8, U32
from tilewright.rpc.wire import Wire
from tilewright.support.errors import RPCError

CHECK_SECONDS = 2.0
UNCLAIMED_SECONDS = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0

_log = logging.getLogger(__name__)


class Registrar:
    """Offers a server's device at a tracker, each time under a new match key, and connects again when that is lost."""

    def __init__(
        self, loop: Loop, tracker: tuple[str, int], key: bytes | None, label: str, host: str, port: int
    ) -> None:
        """``host`` is where clients find the server, empty for wherever the tracker sees it."""
        if not label:
            raise RPCError(
                "a server at a tracker needs a key, by which clients ask for the kind of device: --key"
            )
        self._loop, self._tracker, self._key = loop, tracker, key
        self._label, self._host, self._port = label, host, port
        self._wire: Wire | None = None
        self._is_open = False
        self._match: str | None = None
        self._asked: list[str] = []
        self._given_since: float | None = None
        self._pause = _FIRST_PAUSE
        self._closed = False
        self._connect()
        loop.later(CHECK_SECONDS, self._check)

    # ---- the connection ----

    def _connect(self) -> None:
        if self._closed:
            return
        host, port = self._tracker
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            if self._key is None and not is_loopback(str(address[0])):
                raise RPCError(f"the tracker {host} is on another machine, which needs a key: --key-file")
            connection = socket.socket(family, kind, protocol)
            connection.setblocking(False)
            connection.connect_ex(address)
        except OSError as error:
            self._lost(None, str(error))
            return
        key = self._key
        self._wire = Wire(
            self._loop, connection, lambda write: initiate(write, key), self._told, self._lost, self._opened
        )

    def _opened(self, wire: Wire) -> None:
        self._is_open = True
        self._pause = _FIRST_PAUSE
        self._register()

    def _lost(self, wire: Wire | None, reason: str) -> None:
        if self._wire is not wire or self._closed:
            return
        _log.warning("no connection to the tracker %s:%s: %s", *self._tracker, reason)
        self._wire, self._is_open, self._asked = None, False, []
        self._loop.later(self._pause, self._connect)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    # ---- the offer ----

    def offer(self) -> None:
        """Offers the device under a new match key."""
        self._match = f"{self._label}:{secrets.token_hex(16)}"
        self._given_since = None
        self._register()

    def withdraw(self) -> None:
        """The device is in use: its match key is good no more."""
        self._match = None

    def accepts(self, label: str) -> bool:
        """True for the current match key."""
        return self._match is not None and hmac.compare_digest(self._match.encode(), label.encode())

    def _register(self) -> None:
        if self._match is not None and self._is_open and self._wire is not None:
            self._asked.append("")
            head = text(self._label) + text(self._match) + text(self._host) + U32.pack(self._port)
            self._wire.send(Kind.REGISTER, head)

    def _check(self) -> None:
        """Asks whether the device was given to a client that never came."""
        if self._closed:
            return
        if self._match is not None and self._is_open and self._wire is not None:
            self._asked.append(self._match)
            self._wire.send(Kind.WAITING, text(self._match))
        self._loop.later(CHECK_SECONDS, self._check)

    def _told(self, wire: Wire, kind: int, head: bytes) -> None:
        about = self._asked.pop(0) if self._asked else ""
        reader = Reader(head)
        if kind == Kind.ERROR:
            wire.end(f"{reader.text()}: {reader.text()}")
            return
        if not about or about != self._match or reader.number(U8) != BOOL:
            return
        if reader.number(U8):
            self._given_since = None
        elif self._given_since is None:
            self._given_since = time.monotonic()
        elif time.monotonic() - self._given_since >= UNCLAIMED_SECONDS:
            _log.info("a client that was given this device did not come; it is offered again")
            self.offer()

    def close(self) -> None:
        """Leaves the tracker."""
        self._closed = True
        if self._wire is not None:
            self._wire.close()

    def close_copies(self) -> None:
        """In a forked process: closes this process's copy of the connection."""
        if self._wire is not None:
            self._wire.socket.close()
