"""A server: lets clients in, and starts a session for each."""

from __future__ import annotations

import importlib.util
import logging
import socket

from tilewright.rpc.acceptor import Acceptor
from tilewright.rpc.failures import ProtocolError
from tilewright.rpc.frames import Kind
from tilewright.rpc.loop import Loop
from tilewright.rpc.registrar import Registrar
from tilewright.rpc.service import describe_error
from tilewright.rpc.serving import OpenRequest
from tilewright.rpc.sessions import Sessions
from tilewright.rpc.wire import Wire

MOST_SESSIONS = 64

_log = logging.getLogger(__name__)


def load_once() -> None:
    """Loads what sessions need here, and not again in each of their processes."""
    if importlib.util.find_spec("llvmlite") is not None:
        import llvmlite.binding

        assert llvmlite.binding


class Listener:
    """The listening process of a server."""

    def __init__(
        self,
        loop: Loop,
        listening: socket.socket,
        key: bytes | None,
        label: str = "",
        registrar: Registrar | None = None,
        most_seconds: int = 0,
    ) -> None:
        """``most_seconds`` limits every session, 0 not; with a registrar, a tracker lends the device to one client at a
        time."""
        self._label, self._registrar = label, registrar
        self._sessions = Sessions(loop, self._session_ended, self._close_copies, most_seconds)
        self._acceptor = Acceptor(loop, listening, key, self._first)
        load_once()
        if registrar is not None:
            registrar.offer()

    # ---- clients ----

    def _first(self, wire: Wire, kind: int, head: bytes) -> None:
        try:
            asked = self._admit(kind, head)
        except (ProtocolError, PermissionError, RuntimeError) as error:
            wire.send(Kind.ERROR, describe_error(error))
            wire.close()
            return
        try:
            self._sessions.start(wire, asked.label, asked.seconds)
        except OSError as error:  # no process, or no room for its folder
            _log.warning("cannot start a session: %s", error)
            wire.socket.close()
            return
        if self._registrar is not None:
            self._registrar.withdraw()

    def _admit(self, kind: int, head: bytes) -> OpenRequest:
        """What a client asks for; an error if it may not have it."""
        if kind != Kind.OPEN:
            raise ProtocolError("the first message of a session is not OPEN")
        asked = OpenRequest(head)
        if self._registrar is not None:
            if not self._registrar.accepts(asked.label):
                raise PermissionError("this server is lent by its tracker: ask that for the device")
        elif asked.label not in ("", self._label):
            raise PermissionError(f"this server is {self._label!r}, not {asked.label!r}")
        if len(self._sessions) >= MOST_SESSIONS:
            raise RuntimeError(f"the server has {MOST_SESSIONS} sessions, the most it runs at once")
        return asked

    def _session_ended(self) -> None:
        if self._registrar is not None:
            self._registrar.offer()

    def _close_copies(self) -> None:
        self._acceptor.close_copies()
        if self._registrar is not None:
            self._registrar.close_copies()

    def close(self) -> None:
        """Ends every session, and the server."""
        self._acceptor.close()
        if self._registrar is not None:
            self._registrar.close()
            self._registrar = None
        self._sessions.close()
