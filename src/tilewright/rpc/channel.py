"""Channels: a stream of bytes as it is, or encrypted in records.

Reading is buffered, because most messages are small; what is large is read to its place directly.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from tilewright.rpc.failures import ChannelClosed, ChannelError
from tilewright.rpc.file_content import PIECE_BYTES, FileContent, FileTarget
from tilewright.rpc.noise import MOST_PLAINTEXT, MOST_RECORD, TAG_BYTES, CipherState
from tilewright.rpc.streams import Buffer, Stream

_BUFFER_BYTES = 1 << 16
_RECORDS_AT_ONCE = 8
_PIECE_BYTES = 1 << 24
_SMALL_BYTES = 1 << 12
_READ_BYTES = 1 << 16
"""The most that is read at once: what is copied in small steps is copied while it is in the processor's cache."""

_length = struct.Struct(">H")
_LENGTH_BYTES = _length.size


class Channel(Protocol):
    """Bytes in both directions, in order and whole or not at all."""

    def read(self, size: int) -> bytes:
        """Exactly so many bytes."""

    def read_into(self, target: memoryview) -> None:
        """Fills a buffer."""

    def read_to_file(self, descriptor: int, size: int) -> None:
        """Writes the next bytes to a file. All of them are read, also if the file cannot take them."""

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Sends the buffers, so that the other side can read all of them."""

    def write_file(self, content: FileContent) -> None:
        """Sends a file's bytes."""

    def close(self) -> None:
        """Ends the connection."""


class _Buffered:
    """What both kinds of channel have in common: a buffer of bytes that have arrived and were not read."""

    def __init__(self, stream: Stream, ready: bytes = b"") -> None:
        self._stream = stream
        self._buffer = memoryview(bytearray(max(_BUFFER_BYTES, len(ready))))
        self._buffer[: len(ready)] = ready
        self._at, self._end = 0, len(ready)

    def read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        at = self._at
        if self._end - at >= size:
            self._at = at + size
            return bytes(self._buffer[at : self._at])
        if at == self._end and size <= _SMALL_BYTES:
            self._refill()
            if self._end >= size:
                self._at = size
                return bytes(self._buffer[:size])
        made = bytearray()
        while len(made) < size:  # memory for what has arrived, not for what was announced
            piece = bytearray(min(size - len(made), _PIECE_BYTES))
            self.read_into(memoryview(piece))
            made += piece
        return bytes(made)

    def _refill(self) -> None:
        """Fills the buffer, which is empty, with what comes next; at least a byte."""
        raise NotImplementedError

    def _take(self, target: memoryview) -> int:
        """Moves what is in the buffer to its place; the number of bytes."""
        count = min(self._end - self._at, len(target))
        if count:
            target[:count] = self._buffer[self._at : self._at + count]
            self._at += count
        return count

    def read_into(self, target: memoryview) -> None:
        """Fills a buffer."""
        raise NotImplementedError

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Sends the buffers."""
        raise NotImplementedError

    def read_to_file(self, descriptor: int, size: int) -> None:
        """Writes the next bytes to a file."""
        target = FileTarget(descriptor, size)
        self._read_to(target, size)
        target.finish()

    def _read_to(self, target: FileTarget, size: int) -> None:
        buffer = memoryview(bytearray(min(size, PIECE_BYTES)))
        while size:
            piece = buffer[: min(size, len(buffer))]
            self.read_into(piece)
            target.write(piece)
            size -= len(piece)

    def write_file(self, content: FileContent) -> None:
        """Sends a file's bytes."""
        left, buffer = (
            content.size,
            memoryview(bytearray(min(content.size, _RECORDS_AT_ONCE * MOST_PLAINTEXT))),
        )
        while left:
            count = content.file.readinto(buffer[: min(left, len(buffer))])  # type: ignore[attr-defined]
            if not count:
                raise content.shortened()
            self.write([buffer[:count]])
            left -= count

    def close(self) -> None:
        """Ends the connection."""
        self._stream.close()


def _some(stream: Stream, target: memoryview) -> int:
    count = stream.read_some(target)
    if count == 0:
        raise ChannelClosed("the other side has closed the connection")
    return count


class PlainChannel(_Buffered):
    """Bytes as they are: between processes of one machine."""

    def read_into(self, target: memoryview) -> None:
        done = self._take(target)
        while done < len(target):
            rest = target[done:]
            if len(rest) >= _BUFFER_BYTES:
                done += _some(self._stream, rest[:_READ_BYTES])
                continue
            self._refill()
            done += self._take(rest)

    def _refill(self) -> None:
        self._at, self._end = 0, _some(self._stream, self._buffer)

    def _read_to(self, target: FileTarget, size: int) -> None:
        ready = min(self._end - self._at, size)
        target.write(self._buffer[self._at : self._at + ready])
        self._at += ready
        size -= ready
        if size >= _BUFFER_BYTES:
            size -= self._stream.move_to_file(target, size)
        super()._read_to(target, size)

    def write(self, buffers: Sequence[Buffer]) -> None:
        self._stream.write_all(buffers)

    def write_file(self, content: FileContent) -> None:
        if not self._stream.write_file(content):
            super().write_file(content)


class EncryptedChannel(_Buffered):
    """Records of a Noise channel. A record that is changed, repeated, left out or out of order ends it."""

    def __init__(
        self, stream: Stream, sends: CipherState, receives: CipherState, ready: bytes = b"", raw: bytes = b""
    ) -> None:
        """``ready`` is what was decrypted and not read yet, ``raw`` what was received and not decrypted."""
        super().__init__(stream, ready)
        self._sends, self._receives = sends, receives
        self._out = memoryview(bytearray(_RECORDS_AT_ONCE * (MOST_RECORD + _LENGTH_BYTES)))
        self._raw = memoryview(bytearray(_RECORDS_AT_ONCE * (MOST_RECORD + _LENGTH_BYTES)))
        self._raw[: len(raw)] = raw
        self._raw_at, self._raw_end = 0, len(raw)

    def _require_raw(self, size: int) -> None:
        """Waits until so many bytes that were not decrypted are there."""
        if self._raw_at + size > len(self._raw):
            rest = bytes(self._raw[self._raw_at : self._raw_end])
            self._raw[: len(rest)] = rest
            self._raw_at, self._raw_end = 0, len(rest)
        while self._raw_end - self._raw_at < size:
            self._raw_end += _some(self._stream, self._raw[self._raw_end :])

    def _next_record(self) -> memoryview:
        """The next record, as it is received."""
        if self._raw_end - self._raw_at < _LENGTH_BYTES:
            self._require_raw(_LENGTH_BYTES)
        (size,) = _length.unpack_from(self._raw, self._raw_at)
        if size <= TAG_BYTES:
            raise ChannelError(f"a record of {size} bytes, which is empty or has no tag")
        if self._raw_end - self._raw_at < _LENGTH_BYTES + size:
            self._require_raw(_LENGTH_BYTES + size)
        start = self._raw_at + _LENGTH_BYTES
        self._raw_at = end = start + size
        if end == self._raw_end:
            self._raw_at = self._raw_end = 0
        return self._raw[start:end]

    def _refill(self) -> None:
        self._store(self._next_record())

    def _store(self, record: memoryview) -> None:
        """Decrypts a record to the buffer, which is empty."""
        size = len(record) - TAG_BYTES
        self._receives.decrypt_into(record, self._buffer[:size])
        self._at, self._end = 0, size

    def read_into(self, target: memoryview) -> None:
        done = self._take(target)
        while done < len(target):
            record = self._next_record()
            size = len(record) - TAG_BYTES
            if size <= len(target) - done:
                self._receives.decrypt_into(record, target[done : done + size])
                done += size
            else:
                self._store(record)
                done += self._take(target[done:])

    def write(self, buffers: Sequence[Buffer]) -> None:
        if len(buffers) == 1 and len(buffers[0]) <= _SMALL_BYTES:  # most requests and answers
            record = self._sends.encrypt(buffers[0])
            self._stream.write_all([_length.pack(len(record)) + record])
            return
        out, at = self._out, 0
        for piece in _pieces(buffers):
            size = len(piece) + TAG_BYTES
            start = at + _LENGTH_BYTES
            _length.pack_into(out, at, size)
            self._sends.encrypt_into(piece, out[start : start + size])
            at = start + size
            if at + MOST_RECORD + _LENGTH_BYTES > len(out):
                self._stream.write_all([out[:at]])
                at = 0
        if at:
            self._stream.write_all([out[:at]])


def _pieces(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The bytes of buffers in pieces that fit in a record; small buffers go together."""
    if len(buffers) == 1 and len(buffers[0]) <= MOST_PLAINTEXT:
        return [buffers[0]]
    pieces: list[Buffer] = []
    small = bytearray()
    for buffer in buffers:
        if len(small) + len(buffer) <= MOST_PLAINTEXT:
            small += buffer
            continue
        view = memoryview(buffer).cast("B")
        space = MOST_PLAINTEXT - len(small)
        small += view[:space]
        pieces.append(bytes(small))
        whole = space + (len(view) - space) // MOST_PLAINTEXT * MOST_PLAINTEXT
        pieces += [view[at : at + MOST_PLAINTEXT] for at in range(space, whole, MOST_PLAINTEXT)]
        small = bytearray(view[whole:])
    if small:
        pieces.append(bytes(small))
    return pieces
