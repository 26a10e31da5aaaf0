"""A connection that never waits: handshake and small frames, for processes that have many of them in one thread."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable

from tilewright.rpc.channel import Channel, EncryptedChannel, PlainChannel
from tilewright.rpc.failures import ChannelClosed, ChannelError, ProtocolError
from tilewright.rpc.frames import HEADER_BYTES, frame, parse_header
from tilewright.rpc.handshake import Steps
from tilewright.rpc.loop import READ, WRITE, Loop
from tilewright.rpc.noise import MOST_PLAINTEXT, TAG_BYTES, Handshake
from tilewright.rpc.streams import SocketStream

MOST_SMALL_HEAD = 1 << 16
_MOST_UNSENT = 4 << 20
_MOST_RELAYED = 1 << 20
_RECEIVE_BYTES = 1 << 16
_length = struct.Struct(">H")

Frame = tuple[int, bytes]

_log = logging.getLogger(__name__)


class Wire:
    """One connection of a loop. ``on_frame`` gets each frame, ``on_end`` the reason when the connection ends."""

    def __init__(
        self,
        loop: Loop,
        connection: socket.socket,
        steps: Callable[[Callable[[bytes], None]], Steps],
        on_frame: Callable[[Wire, int, bytes], None],
        on_end: Callable[[Wire, str], None],
        on_open: Callable[[Wire], None] | None = None,
    ) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.on_frame, self.on_end, self._on_open = on_frame, on_end, on_open
        self._loop = loop
        self._raw, self._plain, self._unsent = bytearray(), bytearray(), bytearray()
        self._handshake: Handshake | None = None
        self._open = False
        self._alive = True
        self._relay: Wire | None = None
        self._paused = False
        self._steps = steps(self._write)
        self._need = next(self._steps)
        if self._alive:
            self._watch()

    # ---- receiving ----

    def _watch(self) -> None:
        if self._alive:
            events = (0 if self._paused else READ) | (WRITE if self._unsent else 0)
            self._loop.watch(self.socket.fileno(), events, self._ready)

    def _ready(self, events: int) -> None:
        try:
            if events & WRITE:
                self._flush()
            if events & ~WRITE:
                self._receive()
        except (ChannelError, ProtocolError) as error:
            self.end(error.message)
        except Exception as error:  # noqa: BLE001 - whatever one connection does, the others go on
            _log.exception("a connection is closed")
            self.end(f"{type(error).__name__}: {error}")

    def _receive(self) -> None:
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise ChannelClosed(f"the connection is lost: {error}") from error
        if not data:
            raise ChannelClosed("the other side has closed the connection")
        self._raw += data
        self._advance()

    def _advance(self) -> None:
        """Uses what has arrived."""
        while self._alive and not self._open:
            if len(self._raw) < self._need:
                return
            told = bytes(self._raw[: self._need])
            del self._raw[: self._need]
            try:
                self._need = self._steps.send(told)
            except StopIteration as end:
                self._handshake, self._open = end.value, True
                if self._on_open is not None:
                    self._on_open(self)
        while self._alive and self._relay is None:
            found = self._next_frame()
            if found is None:
                return
            self.on_frame(self, *found)
        if self._relay is not None:
            self._pass_on(self._relay)

    def _next_frame(self) -> Frame | None:
        while True:
            if len(self._plain) >= HEADER_BYTES:
                kind, head, _ = parse_header(bytes(self._plain[:HEADER_BYTES]), most_bulk=0)
                if head > MOST_SMALL_HEAD:
                    raise ProtocolError(
                        f"a message of {head} bytes; at most {MOST_SMALL_HEAD} are accepted here"
                    )
                size = HEADER_BYTES + head
                if len(self._plain) >= size:
                    content = bytes(self._plain[HEADER_BYTES:size])
                    del self._plain[:size]
                    return kind, content
            if not self._decrypt():
                return None

    def _decrypt(self) -> bool:
        """Moves bytes from what was received to what can be read; false if there are not enough."""
        if self._handshake is None:
            moved, self._raw = self._raw, bytearray()
            self._plain += moved
            return bool(moved)
        if len(self._raw) < _length.size:
            return False
        (size,) = _length.unpack_from(self._raw)
        if size <= TAG_BYTES:
            raise ChannelError(f"a record of {size} bytes, which is empty or has no tag")
        end = _length.size + size
        if len(self._raw) < end:
            return False
        self._plain += self._handshake.receives.decrypt(bytes(self._raw[_length.size : end]))
        del self._raw[:end]
        return True

    # ---- passing on ----

    def relay(self, other: Wire) -> None:
        """Passes every byte that comes from now on to another connection, which takes it as it can."""
        self._relay = other
        if self._alive:
            self._pass_on(other)

    def _pass_on(self, other: Wire) -> None:
        while self._decrypt():
            pass
        content, self._plain = bytes(self._plain), bytearray()
        other.send_bytes(content)
        if len(other._unsent) > _MOST_RELAYED:  # until the other has taken them
            self._paused = True
            self._watch()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._watch()

    # ---- sending ----

    def send(self, kind: int, head: bytes = b"") -> None:
        """Sends a frame, now or when the other side reads."""
        self.send_bytes(bytes(frame(kind, head)[0]))

    def send_bytes(self, content: bytes) -> None:
        """Sends bytes of frames."""
        if self._handshake is None:
            self._write(content)
            return
        for at in range(0, len(content), MOST_PLAINTEXT):
            record = self._handshake.sends.encrypt(content[at : at + MOST_PLAINTEXT])
            self._write(_length.pack(len(record)) + record)

    def _write(self, data: bytes) -> None:
        if not self._alive:
            return
        self._unsent += data
        try:
            self._flush()
        except ChannelError as error:
            self.end(error.message)

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            if len(self._unsent) > _MOST_UNSENT and self._relay is None:
                raise ChannelError("the other side does not read what it asked for") from None
        except OSError as error:
            raise ChannelClosed(f"the connection is lost: {error}") from error
        if self._relay is not None and not self._unsent:
            self._relay._resume()
        self._watch()

    # ---- the end ----

    def end(self, reason: str) -> None:
        """Closes the connection, and tells whoever waits for that."""
        if self._alive:
            self.close()
            self.on_end(self, reason)

    def close(self) -> None:
        """Closes the connection."""
        if self._alive:
            self._alive = False
            self._loop.forget(self.socket.fileno())
            self.socket.close()

    def detach(self) -> socket.socket:
        """The socket, which the loop watches no longer; ``channel`` makes use of it."""
        self._alive = False
        self._loop.forget(self.socket.fileno())
        return self.socket

    def channel(self) -> Channel:
        """A waiting channel over the connection, with what has arrived and was not used."""
        self.socket.setblocking(True)
        stream = SocketStream(self.socket)
        if self._unsent:
            stream.write_all([bytes(self._unsent)])
        if self._handshake is None:
            return PlainChannel(stream, bytes(self._plain + self._raw))
        ciphers = self._handshake.sends, self._handshake.receives
        return EncryptedChannel(stream, *ciphers, ready=bytes(self._plain), raw=bytes(self._raw))
