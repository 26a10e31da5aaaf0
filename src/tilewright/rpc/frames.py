"""Frames: a type, a small head and a large bulk; and reading what is in a head."""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from typing import Any

from tilewright.rpc.channel import Channel
from tilewright.rpc.failures import ProtocolError
from tilewright.rpc.streams import Buffer

VERSION = 1
MOST_HEAD = 1 << 20
MOST_BULK = 16 << 30
MOST_TEXT = MOST_HEAD

_header = struct.Struct("<B3sIQ")
HEADER_BYTES = _header.size
_ZERO = b"\0\0\0"
_COPY_BELOW = 1 << 14


class Kind(enum.IntEnum):
    """The types of frames."""

    OPEN = 0x01
    GET_FUNCTION = 0x02
    CALL = 0x03
    FREE = 0x04
    ARRAY_NEW = 0x05
    ARRAY_WRITE = 0x06
    ARRAY_READ = 0x07
    ARRAY_COPY = 0x08
    FILE_WRITE = 0x09
    FILE_READ = 0x0A
    FILE_REMOVE = 0x0B
    FILE_LIST = 0x0C
    MODULE_LOAD = 0x0D
    MODULE_FUNCTION = 0x0E
    MODULE_IMPORT = 0x0F
    TIME = 0x10
    DEVICE_ATTRIBUTE = 0x11
    DEVICE_SYNC = 0x12
    SYSTEM_LIB = 0x13
    PING = 0x14
    CLOSE = 0x15
    REGISTER = 0x20
    WAITING = 0x21
    REQUEST = 0x22
    SUMMARY = 0x23
    SERVE = 0x24
    OK = 0x80
    ERROR = 0x81


def frame_start(kind: int, head: bytes, size: int) -> bytes:
    """Header and head of a frame whose bulk, of so many bytes, follows."""
    return _header.pack(kind, _ZERO, len(head), size) + head


def frame(kind: int, head: bytes = b"", bulk: Sequence[Buffer] = ()) -> list[Buffer]:
    """A frame as buffers to write; one buffer where it is small."""
    size = sum(map(len, bulk))
    start = frame_start(kind, head, size)
    if size < _COPY_BELOW:
        return [start + b"".join(bulk)] if size else [start]
    return [start, *bulk]


def parse_header(data: bytes, most_bulk: int = MOST_BULK) -> tuple[int, int, int]:
    """The type and the lengths of head and bulk."""
    kind, zero, head, bulk = _header.unpack(data)
    if zero != _ZERO:
        raise ProtocolError("bytes 1 to 3 of a frame's header are not zero")
    if head > MOST_HEAD:
        raise ProtocolError(f"a frame's head of {head} bytes; at most {MOST_HEAD} are accepted")
    if bulk > most_bulk:
        raise ProtocolError(f"a frame's bulk of {bulk} bytes; at most {most_bulk} are accepted")
    return kind, head, bulk


def read_frame(channel: Channel, most_bulk: int = MOST_BULK) -> tuple[int, bytes, int]:
    """The type and the head of the next frame, and how many bytes of bulk follow."""
    kind, head, bulk = parse_header(channel.read(HEADER_BYTES), most_bulk)
    return kind, channel.read(head) if head else b"", bulk


def text(value: str) -> bytes:
    """A string in a head."""
    encoded = value.encode()
    return _u32.pack(len(encoded)) + encoded


_u32 = struct.Struct("<I")


class Reader:
    """Takes one field after the other from a head, and complains about those that are not there."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The fields of a structure."""
        at = self._at
        if at + layout.size > len(self._data):
            raise ProtocolError("a message ends too early")
        self._at = at + layout.size
        return layout.unpack_from(self._data, at)

    def number(self, layout: struct.Struct) -> Any:
        """The one field of a structure."""
        at = self._at
        self._at = end = at + layout.size
        if end > len(self._data):
            raise ProtocolError("a message ends too early")
        return layout.unpack_from(self._data, at)[0]

    def text(self) -> str:
        """A string."""
        size = self.number(_u32)
        at = self._at
        if at + size > len(self._data):
            raise ProtocolError("a message ends in the middle of a string")
        self._at = at + size
        try:
            return self._data[at : self._at].decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("a string of a message is not UTF-8") from error

    def end(self) -> None:
        """Complains about bytes that are left."""
        if self._at != len(self._data):
            raise ProtocolError(f"a message has {len(self._data) - self._at} bytes too many")
