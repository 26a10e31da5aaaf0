"""The tracker itself: who offers a device, who waits for one, and which gets which."""

from __future__ import annotations

import heapq
import itertools
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.rpc.acceptor import Acceptor
from tilewright.rpc.failures import ProtocolError
from tilewright.rpc.frames import Kind, Reader, text
from tilewright.rpc.loop import Loop, Timer
from tilewright.rpc.service import describe_error
from tilewright.rpc.values import BOOL, I32, TEXT, U32
from tilewright.rpc.wire import Wire

MOST_LABEL = 1024
MOST_WAITING = 10_000
MOST_REMEMBERED = 1000


@dataclass(eq=False)
class _Offer:
    """A device that a server offers."""

    wire: Wire
    label: str
    match: str
    host: str
    port: int


@dataclass(order=True)
class _Request:
    """A client that waits; the one with the largest priority comes first, and of those the one that asked first."""

    rank: tuple[int, int]
    wire: Wire = field(compare=False)
    label: str = field(compare=False)
    timer: Timer | None = field(default=None, compare=False)
    is_open: bool = field(default=True, compare=False)


class TrackerService:
    """A tracker in a loop."""

    def __init__(self, loop: Loop, listening: socket.socket, key: bytes | None) -> None:
        self._loop = loop
        self._wires: set[Wire] = set()
        self._offers: dict[str, list[_Offer]] = {}
        self._server: dict[Wire, _Offer] = {}
        self._labels: set[str] = set()  # of devices that are there, or were
        self._requests: dict[str, list[_Request]] = {}
        self._numbers = itertools.count()
        self._acceptor = Acceptor(loop, listening, key, self._first)

    def _first(self, wire: Wire, kind: int, head: bytes) -> None:
        self._wires.add(wire)
        wire.on_frame, wire.on_end = self._told, self._ended
        self._told(wire, kind, head)

    def _told(self, wire: Wire, kind: int, head: bytes) -> None:
        handler = _HANDLERS.get(kind)
        try:
            if handler is None:
                raise ProtocolError(f"a tracker does not know messages of the type {kind:#x}")
            handler(self, wire, Reader(head))
        except ProtocolError as error:
            wire.send(Kind.ERROR, describe_error(error))
            wire.end(error.message)

    def _ended(self, wire: Wire, reason: str) -> None:
        self._wires.discard(wire)
        self._drop_offer(wire)
        for label, waiting in list(self._requests.items()):
            for request in waiting:
                if request.wire is wire:
                    self._finish(request)
            self._keep_open(label)

    def _keep_open(self, label: str) -> None:
        """Drops the requests of a label that nobody waits for any more."""
        left = [request for request in self._requests.get(label, ()) if request.is_open]
        if left:
            heapq.heapify(left)
            self._requests[label] = left
        else:
            self._requests.pop(label, None)

    # ---- servers ----

    def _register(self, wire: Wire, reader: Reader) -> None:
        label, match, host = _label(reader), reader.text(), reader.text()
        port = reader.number(U32)
        reader.end()
        if not 0 < port < 1 << 16:
            raise ProtocolError(f"{port} is not a port")
        self._drop_offer(wire)
        if not host:
            host = str(wire.socket.getpeername()[0])
        offer = _Offer(wire, label, match, host, port)
        self._server[wire] = offer
        if len(self._labels) < MOST_REMEMBERED:
            self._labels.add(label)
        self._offers.setdefault(label, []).append(offer)
        wire.send(Kind.OK)
        self._match(label)

    def _drop_offer(self, wire: Wire) -> None:
        old = self._server.pop(wire, None)
        if old is not None and old in self._offers.get(old.label, []):
            self._offers[old.label].remove(old)

    def _waiting(self, wire: Wire, reader: Reader) -> None:
        match = reader.text()
        reader.end()
        offer = self._server.get(wire)
        waits = offer is not None and offer.match == match and offer in self._offers.get(offer.label, [])
        wire.send(Kind.OK, bytes([BOOL, waits]))

    # ---- clients ----

    def _request(self, wire: Wire, reader: Reader) -> None:
        label, priority, seconds = _label(reader), reader.number(I32), reader.number(U32)
        reader.end()
        waiting = self._requests.setdefault(label, [])
        if len(waiting) >= MOST_WAITING:
            raise ProtocolError(f"{MOST_WAITING} clients wait for {label!r}, the most that may")
        request = _Request((-priority, next(self._numbers)), wire, label)
        if seconds:
            request.timer = self._loop.later(seconds, lambda: self._time_out(request, seconds))
        heapq.heappush(waiting, request)
        self._match(label)

    def _time_out(self, request: _Request, seconds: int) -> None:
        if request.is_open:
            self._finish(request)
            known = ", ".join(sorted({offer.label for offer in self._server.values()})) or "none"
            message = (
                f"no device {request.label!r} was free for {seconds} seconds; the tracker's devices: {known}"
            )
            request.wire.send(Kind.ERROR, describe_error(TimeoutError(message)))
            self._keep_open(request.label)

    def _finish(self, request: _Request) -> None:
        request.is_open = False
        if request.timer is not None:
            request.timer.cancel()

    def _match(self, label: str) -> None:
        """Gives devices to those who wait for them."""
        offers, waiting = self._offers.get(label, []), self._requests.get(label, [])
        while waiting and (offers or not waiting[0].is_open):
            request = heapq.heappop(waiting)
            if not request.is_open:
                continue
            offer = offers.pop(0)
            self._finish(request)
            request.wire.send(Kind.OK, text(offer.host) + U32.pack(offer.port) + text(offer.match))
        if not waiting:
            self._requests.pop(label, None)

    # ---- everybody ----

    def summary(self) -> dict[str, object]:
        """Free devices and waiting clients of each label, also of those whose last server is gone, and the servers."""
        labels = self._labels | {offer.label for offer in self._server.values()} | set(self._requests)
        return {
            "queue_info": {
                label: {
                    "free": len(self._offers.get(label, [])),
                    "pending": sum(request.is_open for request in self._requests.get(label, [])),
                }
                for label in sorted(labels)
            },
            "server_info": [
                {"addr": [offer.host, offer.port], "key": f"server:{offer.label}"}
                for offer in sorted(
                    self._server.values(), key=lambda offer: (offer.label, offer.host, offer.port)
                )
            ],
        }

    def _summary(self, wire: Wire, reader: Reader) -> None:
        reader.end()
        wire.send(Kind.OK, bytes([TEXT]) + text(json.dumps(self.summary())))

    def close(self) -> None:
        """Ends the tracker."""
        self._acceptor.close()
        for wire in list(self._wires):
            wire.close()


def _label(reader: Reader) -> str:
    label = reader.text()
    if not label or len(label) > MOST_LABEL:
        raise ProtocolError(f"a device's key is a name of 1 to {MOST_LABEL} characters")
    return label


_HANDLERS: dict[int, Callable[[TrackerService, Wire, Reader], None]] = {
    Kind.REGISTER: TrackerService._register,
    Kind.WAITING: TrackerService._waiting,
    Kind.REQUEST: TrackerService._request,
    Kind.SUMMARY: TrackerService._summary,
}
