"""A model's bytes without its weights.

Parsing a whole model copies every weight, and protobuf rejects more than two gigabytes. This module walks the outer
layers of the encoding (model, graph, initializers), skips the raw data of large initializers, and records their
offsets; the small rest is parsed as usual. Nothing else is decoded, and every length is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tilewright.support.errors import ModelError

GRAPH_OF_MODEL = 7
INITIALIZER_OF_GRAPH = 5
RAW_DATA_OF_TENSOR = 9
LARGE = 1 << 12
"""Bytes: raw data from so many on are left where they are."""
WINDOW = 1 << 16


@dataclass(frozen=True)
class Place:
    """Where the raw data of an initializer are in the model's bytes."""

    offset: int
    length: int


class Bytes:
    """A model in memory."""

    def __init__(self, content: bytes | bytearray | memoryview) -> None:
        self.content = memoryview(content)
        self.size = len(self.content)

    def read(self, offset: int, length: int) -> bytes:
        """A copy of some bytes."""
        return bytes(self.content[offset : offset + length])

    def read_into(self, offset: int, target: memoryview) -> None:
        """Copy bytes to a target."""
        target[:] = self.content[offset : offset + len(target)]


class File:
    """A model in a file, read through a small window."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file = file
        self.size = size
        self._start = 0
        self._window = b""

    def read(self, offset: int, length: int) -> bytes:
        """Some bytes."""
        inside = offset - self._start
        if inside < 0 or inside + length > len(self._window):
            self.file.seek(offset)
            self._window = self.file.read(max(length, WINDOW))
            self._start, inside = offset, 0
        found = self._window[inside : inside + length]
        if len(found) < length:
            raise ModelError("the file became shorter while it was read")
        return found

    def read_into(self, offset: int, target: memoryview) -> None:
        """Read bytes straight into a target."""
        self.file.seek(offset)
        done = 0
        while done < len(target):
            count = self.file.readinto(target[done:])  # type: ignore[attr-defined]
            if not count:
                raise ModelError("the file became shorter while it was read")
            done += count


Source = Bytes | File


@dataclass(frozen=True)
class _Field:
    """One field of a message: its number, its kind, where it begins, and where its payload lies."""

    number: int
    kind: int
    begin: int
    payload: int
    end: int


def without_weights(source: Source) -> tuple[bytes, dict[int, Place]]:
    """The bytes of the model without large initializers, and where those are, by their number in the graph."""
    places: dict[int, Place] = {}
    made: list[bytes] = []
    count = 0
    for field in _fields(source, 0, source.size):
        if field.number == GRAPH_OF_MODEL and field.kind == 2:
            graph, count = _graph(source, field, places, count)
            made.append(_tagged(GRAPH_OF_MODEL, graph))
        else:
            made.append(source.read(field.begin, field.end - field.begin))
    return b"".join(made), places


def _graph(source: Source, outer: _Field, places: dict[int, Place], count: int) -> tuple[bytes, int]:
    made: list[bytes] = []
    for field in _fields(source, outer.payload, outer.end):
        if field.number == INITIALIZER_OF_GRAPH and field.kind == 2:
            made.append(_tagged(INITIALIZER_OF_GRAPH, _tensor(source, field, places, count)))
            count += 1
        else:
            made.append(source.read(field.begin, field.end - field.begin))
    return b"".join(made), count


def _tensor(source: Source, outer: _Field, places: dict[int, Place], number: int) -> bytes:
    made: list[bytes] = []
    for field in _fields(source, outer.payload, outer.end):
        length = field.end - field.payload
        if field.number == RAW_DATA_OF_TENSOR and field.kind == 2 and length >= LARGE:
            # Of a field that is given twice the last one counts.
            places[number] = Place(field.payload, length)
        else:
            if field.number == RAW_DATA_OF_TENSOR:
                places.pop(number, None)
            made.append(source.read(field.begin, field.end - field.begin))
    return b"".join(made)


def _fields(source: Source, begin: int, end: int) -> Iterator[_Field]:
    """The fields of a message between two offsets."""
    at = begin
    while at < end:
        tag, payload = _number(source, at, end)
        kind, number = tag & 7, tag >> 3
        if kind == 0:
            _, after = _number(source, payload, end)
        elif kind == 1:
            after = payload + 8
        elif kind == 2:
            length, payload = _number(source, payload, end)
            after = payload + length
        elif kind == 5:
            after = payload + 4
        else:
            raise ModelError(f"the encoding is damaged at byte {at}: there is no field kind {kind}")
        if number == 0 or after > end:
            raise ModelError(f"the encoding is damaged at byte {at}: a field exceeds its container")
        yield _Field(number, kind, at, payload, after)
        at = after


def _number(source: Source, at: int, end: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    content = source.read(at, min(10, end - at))
    value = 0
    for place, byte in enumerate(content):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ModelError(f"the encoding is damaged at byte {at}: a number does not end")


def _tagged(number: int, payload: bytes) -> bytes:
    """A field that holds bytes."""
    made = bytearray([number << 3 | 2])
    length = len(payload)
    while length >= 0x80:
        made.append(length & 0x7F | 0x80)
        length >>= 7
    made.append(length)
    return bytes(made) + payload
