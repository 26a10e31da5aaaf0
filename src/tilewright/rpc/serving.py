"""The loop of a session on the server's side: read a request, answer it, until the client is gone."""

from __future__ import annotations

import contextlib
import struct

from tilewright.rpc.channel import Channel
from tilewright.rpc.failures import ChannelClosed, ChannelError, ProtocolError
from tilewright.rpc.frames import (
    HEADER_BYTES,
    MOST_BULK,
    MOST_HEAD,
    VERSION,
    Kind,
    Reader,
    frame,
    parse_header,
    text,
)
from tilewright.rpc.service import HANDLED, NO_REPLY, Service, describe_error
from tilewright.rpc.values import U32

_LIMITS = struct.Struct("<QQI")
_DRAIN_BYTES = 1 << 20


class ChannelBulk:
    """What is still to be read of a frame's bulk."""

    __slots__ = ("_channel", "size")

    def __init__(self, channel: Channel, size: int) -> None:
        self._channel, self.size = channel, size

    def read_into(self, target: memoryview) -> None:
        """The next bytes, as many as the buffer takes."""
        if len(target) > self.size:
            raise ProtocolError(f"{len(target)} bytes are needed where {self.size} were sent")
        self.size -= len(target)
        if len(target):
            self._channel.read_into(target)

    def read_to_file(self, descriptor: int) -> None:
        """Writes all that is left to a file; it is read also if the file cannot take it."""
        size, self.size = self.size, 0
        self._channel.read_to_file(descriptor, size)

    def drain(self) -> None:
        """Reads what nobody wanted."""
        if not self.size:
            return
        buffer = memoryview(bytearray(min(self.size, _DRAIN_BYTES)))
        while self.size:
            self.read_into(buffer[: min(len(buffer), self.size)])


class OpenRequest:
    """What the first frame of a session asks for."""

    def __init__(self, head: bytes) -> None:
        reader = Reader(head)
        version = reader.number(U32)
        if version != VERSION:
            raise ProtocolError(f"version {version} of the protocol; this server speaks {VERSION}")
        self.label = reader.text()
        self.seconds: int = reader.number(U32)
        reader.end()


def open_answer(label: str, seconds: int) -> bytes:
    """The head of the answer to OPEN."""
    return text("tilewright python") + text(label) + _LIMITS.pack(MOST_HEAD, MOST_BULK, seconds)


def refuse(channel: Channel, error: BaseException) -> None:
    """Tells the client why, if it still listens."""
    with contextlib.suppress(ChannelError):
        channel.write(frame(Kind.ERROR, describe_error(error)))


def serve(channel: Channel, service: Service) -> None:
    """Answers requests until the client closes the session or is gone."""
    try:
        while _serve_one(channel, service):
            pass
    except ChannelClosed:
        pass


def _serve_one(channel: Channel, service: Service) -> bool:
    """Handles the next request; false if it was the last."""
    try:
        kind, head_size, bulk_size = parse_header(channel.read(HEADER_BYTES))
        head = channel.read(head_size) if head_size else b""
        if kind == Kind.CLOSE:
            return False
        if kind not in HANDLED:
            raise ProtocolError(f"a message of the unknown type {kind:#x}")
    except ProtocolError as error:
        refuse(channel, error)
        return False
    bulk = ChannelBulk(channel, bulk_size)
    try:
        answered = service.handle(kind, head, bulk)
    except ChannelError:
        raise
    except Exception as error:  # noqa: BLE001 - it is the client's
        bulk.drain()
        if kind not in NO_REPLY:
            channel.write(frame(Kind.ERROR, describe_error(error)))
        return True
    bulk.drain()
    if answered is not None:
        channel.write(frame(Kind.OK, *answered))
    return True
