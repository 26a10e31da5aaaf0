"""A proxy, and the server that waits at one: for devices that can connect to others but not be connected to."""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass

from tilewright.rpc.acceptor import Acceptor
from tilewright.rpc.addresses import keep_alive
from tilewright.rpc.failures import ProtocolError
from tilewright.rpc.frames import Kind, Reader, frame, text
from tilewright.rpc.handshake import initiate, is_loopback
from tilewright.rpc.listener import load_once
from tilewright.rpc.loop import Loop, Timer
from tilewright.rpc.registrar import Registrar
from tilewright.rpc.service import describe_error
from tilewright.rpc.serving import OpenRequest
from tilewright.rpc.sessions import Sessions
from tilewright.rpc.wire import Wire
from tilewright.support.errors import RPCError

SECONDS_FOR_A_SERVER = 60.0
_PAUSE_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Waiting:
    """A server without a client."""

    wire: Wire
    label: str
    registrar: Registrar | None


@dataclass(eq=False)
class _Client:
    """A client without a server."""

    wire: Wire
    label: str
    opening: bytes
    timer: Timer


class ProxyService:
    """Pairs clients with the servers that wait here, and passes on what they say."""

    def __init__(
        self,
        loop: Loop,
        listening: socket.socket,
        key: bytes | None,
        tracker: tuple[str, int] | None = None,
        host: str = "",
    ) -> None:
        self._loop, self._key, self._tracker, self._host = loop, key, tracker, host
        self._port = int(listening.getsockname()[1])
        self._servers: list[_Waiting] = []
        self._clients: list[_Client] = []
        self._pairs: dict[Wire, Wire] = {}
        self._acceptor = Acceptor(loop, listening, key, self._first)

    def _first(self, wire: Wire, kind: int, head: bytes) -> None:
        try:
            if kind == Kind.SERVE:
                self._server(wire, head)
            elif kind == Kind.OPEN:
                self._client(wire, head)
            else:
                raise ProtocolError("the first message to a proxy is neither SERVE nor OPEN")
        except ProtocolError as error:
            wire.send(Kind.ERROR, describe_error(error))
            wire.close()

    def _server(self, wire: Wire, head: bytes) -> None:
        reader = Reader(head)
        label = reader.text()
        reader.end()
        registrar = None
        if self._tracker is not None and label:
            registrar = Registrar(self._loop, self._tracker, self._key, label, self._host, self._port)
            registrar.offer()
        waiting = _Waiting(wire, label, registrar)
        wire.on_frame = lambda at, kind, content: at.end("a server that waits has nothing to say")
        wire.on_end = lambda at, reason: self._forget_server(waiting)
        self._servers.append(waiting)
        self._pair()

    def _forget_server(self, waiting: _Waiting) -> None:
        if waiting in self._servers:
            self._servers.remove(waiting)
            if waiting.registrar is not None:
                waiting.registrar.close()

    def _client(self, wire: Wire, head: bytes) -> None:
        label = OpenRequest(head).label
        opening = bytes(frame(Kind.OPEN, head)[0])
        timer = self._loop.later(SECONDS_FOR_A_SERVER, lambda: self._give_up(client))
        client = _Client(wire, label, opening, timer)
        self._clients.append(client)
        # What comes before there is a server is not read: the client waits for the answer to OPEN.
        wire.on_frame = lambda at, kind, content: at.end("a message before the answer to OPEN")
        wire.on_end = lambda at, reason: self._forget_client(client)
        self._pair()

    def _forget_client(self, client: _Client) -> None:
        if client in self._clients:
            self._clients.remove(client)
            client.timer.cancel()

    def _give_up(self, client: _Client) -> None:
        self._forget_client(client)
        client.wire.send(
            Kind.ERROR, describe_error(TimeoutError(f"no server {client.label!r} waits at the proxy"))
        )
        client.wire.close()

    def _pair(self) -> None:
        for client in list(self._clients):
            found = next((one for one in self._servers if _fits(one, client.label)), None)
            if found is not None:
                self._forget_client(client)
                self._forget_server(found)
                self._join(client, found.wire)

    def _join(self, client: _Client, server: Wire) -> None:
        self._pairs[client.wire], self._pairs[server] = server, client.wire
        for wire in (client.wire, server):
            wire.on_end = self._ended
        server.send(Kind.OK)
        server.send_bytes(client.opening)
        client.wire.relay(server)
        server.relay(client.wire)

    def _ended(self, wire: Wire, reason: str) -> None:
        other = self._pairs.pop(wire, None)
        if other is not None:
            self._pairs.pop(other, None)
            other.close()

    def close(self) -> None:
        """Ends the proxy and every connection through it."""
        self._acceptor.close()
        for wire in list(self._pairs):
            wire.close()
        for waiting in list(self._servers):
            self._forget_server(waiting)
            waiting.wire.close()
        for client in list(self._clients):
            client.wire.close()


def _fits(server: _Waiting, label: str) -> bool:
    if server.registrar is not None:
        return server.registrar.accepts(label)
    return label in ("", server.label)


class ReverseServer:
    """A server that connects to a proxy and waits there for one client after the other."""

    def __init__(self, loop: Loop, proxy: tuple[str, int], key: bytes | None, label: str) -> None:
        self._loop, self._proxy, self._key, self._label = loop, proxy, key, label
        self._wire: Wire | None = None
        self._paired = self._closed = False
        self._sessions = Sessions(loop, self._connect, lambda: None)
        load_once()
        self._connect()

    def _connect(self) -> None:
        if self._closed:
            return
        host, port = self._proxy
        self._paired = False
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            if self._key is None and not is_loopback(str(address[0])):
                raise RPCError(f"the proxy {host} is on another machine, which needs a key: --key-file")
            connection = socket.socket(family, kind, protocol)
            connection.setblocking(False)
            keep_alive(connection)
            connection.connect_ex(address)
        except OSError as error:
            self._lost(None, str(error))
            return
        key = self._key
        self._wire = Wire(
            self._loop, connection, lambda write: initiate(write, key), self._told, self._lost, self._opened
        )

    def _opened(self, wire: Wire) -> None:
        wire.send(Kind.SERVE, text(self._label))

    def _lost(self, wire: Wire | None, reason: str) -> None:
        _log.warning("no connection to the proxy %s:%s: %s", *self._proxy, reason)
        self._wire = None
        self._loop.later(_PAUSE_SECONDS, self._connect)

    def _told(self, wire: Wire, kind: int, head: bytes) -> None:
        if not self._paired and kind == Kind.OK:
            self._paired = True
        elif self._paired and kind == Kind.OPEN:
            asked = OpenRequest(head)
            self._wire = None
            self._sessions.start(wire, asked.label, asked.seconds)
        else:
            wire.end("the proxy did not follow the protocol")

    def close(self) -> None:
        """Ends the session, and the server."""
        self._closed = True
        if self._wire is not None:
            self._wire.close()
        self._sessions.close()
