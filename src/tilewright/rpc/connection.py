"""The client's end of a session: requests and their answers, from any thread, one after the other."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from tilewright.rpc.channel import Channel
from tilewright.rpc.failures import ChannelError, ProtocolError, remote_error
from tilewright.rpc.file_content import FileContent, FileTarget
from tilewright.rpc.frames import (
    MOST_BULK,
    MOST_HEAD,
    VERSION,
    Kind,
    Reader,
    frame,
    frame_start,
    read_frame,
    text,
)
from tilewright.rpc.service import Service, describe_error
from tilewright.rpc.streams import Buffer
from tilewright.rpc.values import U32, U64
from tilewright.support.errors import RPCError, RPCSessionTimeoutError

_MOST_FREED = 10_000
Content = Sequence[Buffer] | FileContent
"""The bulk of a request: buffers, or a file."""


class Requester(Protocol):
    """What remote objects need of a session."""

    def request(
        self, kind: int, head: bytes = b"", bulk: Content = (), into: memoryview | None = None
    ) -> tuple[bytes, bytes]:
        """Sends a request and waits; head and bulk of the answer. The bulk goes to ``into`` if that is given."""

    def free(self, handle: int) -> None:
        """Releases an object of the server, some time later; may be called anywhere, also while a request runs."""

    def close(self) -> None:
        """Ends the session."""


def _raise_error(head: bytes) -> None:
    reader = Reader(head)
    kind = reader.text()
    raise remote_error(kind, reader.text())


def _freed(handles: list[int]) -> bytes:
    """A request that releases all objects of a list, which is emptied."""
    count = min(len(handles), _MOST_FREED)
    taken = [handles.pop() for _ in range(count)]
    return frame(Kind.FREE, U32.pack(count) + b"".join(map(U64.pack, taken)))[0]  # type: ignore[return-value]


class Connection:
    """A session over a channel."""

    def __init__(self, channel: Channel, label: str = "", seconds: int = 0) -> None:
        """Opens a session for a kind of device, with a time limit in seconds; 0 for none."""
        self._channel = channel
        self._lock = threading.Lock()
        self._handles: list[int] = []
        self._broken: str | None = None
        self._seconds = 0
        self._most_head = MOST_HEAD
        self.most_bulk = MOST_BULK
        self._begin = time.monotonic()
        asked = U32.pack(VERSION) + text(label) + U32.pack(seconds)
        reader = Reader(self.request(Kind.OPEN, asked)[0])
        self.server = reader.text()
        self.label = reader.text()
        self._most_head = reader.number(U64)
        self.most_bulk = reader.number(U64)
        self._seconds = reader.number(U32)
        reader.end()

    def request(
        self, kind: int, head: bytes = b"", bulk: Content = (), into: memoryview | None = None
    ) -> tuple[bytes, bytes]:
        """Sends a request and waits for the answer."""
        if len(head) > self._most_head:
            raise ValueError(
                f"a request with {len(head)} bytes of arguments; the server accepts {self._most_head}: "
                "pass long texts as bytes, or as a file"
            )
        size = bulk.size if isinstance(bulk, FileContent) else sum(map(len, bulk))
        if size > self.most_bulk:
            raise ValueError(
                f"{size} bytes in one request; the server accepts {self.most_bulk}: send them in parts, or start it "
                "with a larger limit"
            )
        with self._lock:
            if self._broken is not None:
                raise RPCError(f"the session has ended: {self._broken}")
            try:
                self._send(kind, head, bulk)
                answer, content, size = read_frame(self._channel)
                data = self._bulk(size, into if answer == Kind.OK else None)
            except (ChannelError, ProtocolError) as error:
                self._end(error.message)
                raise self._explained(error) from error
            except BaseException:  # interrupted in the middle of an answer: what follows would be misread
                self._end("a request was interrupted")
                raise
        if answer == Kind.ERROR:
            _raise_error(content)
        return content, data

    def _send(self, kind: int, head: bytes, bulk: Content) -> None:
        released: list[Buffer] = [_freed(self._handles)] if self._handles else []
        if isinstance(bulk, FileContent):
            self._channel.write([*released, frame_start(kind, head, bulk.size)])
            self._channel.write_file(bulk)
        else:
            self._channel.write([*released, *frame(kind, head, bulk)])

    def _bulk(self, size: int, into: memoryview | None) -> bytes:
        if into is None:
            return self._channel.read(size) if size else b""
        if size != len(into):
            raise ProtocolError(f"the server answered with {size} bytes where {len(into)} were asked for")
        self._channel.read_into(into)
        return b""

    def _explained(self, error: RPCError) -> RPCError:
        if self._seconds and time.monotonic() - self._begin >= self._seconds:
            return RPCSessionTimeoutError(
                f"the session was ended at its time limit of {self._seconds} seconds; ask for more with session_timeout"
            )
        return error

    def free(self, handle: int) -> None:
        """Releases an object with the next request."""
        self._handles.append(handle)

    def _end(self, reason: str) -> None:
        if self._broken is None:
            self._broken = reason
            self._channel.close()

    def close(self) -> None:
        """Ends the session; the server frees all it had."""
        with self._lock:
            if self._broken is None:
                with contextlib.suppress(ChannelError):
                    self._channel.write(frame(Kind.CLOSE))
                self._end("it was closed")


class _Content:
    """The bulk of a request within one process."""

    def __init__(self, content: Content) -> None:
        if isinstance(content, FileContent):
            content = [content.file.read(content.size)]
        self._content = memoryview(b"".join(content))
        self.size = len(self._content)

    def read_into(self, target: memoryview) -> None:
        """The next bytes."""
        count = len(target)
        if count > self.size:
            raise ProtocolError(f"{count} bytes are needed where {self.size} were sent")
        target[:] = self._content[len(self._content) - self.size :][:count]
        self.size -= count

    def read_to_file(self, descriptor: int) -> None:
        """Writes all that is left to a file."""
        target = FileTarget(descriptor, self.size)
        target.write(self._content[len(self._content) - self.size :])
        self.size = 0
        target.finish()


class DirectConnection:
    """A session with this very process: the same requests, without a channel."""

    server = "this process"
    label = ""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.RLock()
        self._open = True

    def request(
        self, kind: int, head: bytes = b"", bulk: Content = (), into: memoryview | None = None
    ) -> tuple[bytes, bytes]:
        """Handles a request at once."""
        with self._lock:
            if not self._open:
                raise RPCError("the session has ended: it was closed")
            try:
                answer = self._service.handle(kind, head, _Content(bulk))
            except Exception as error:  # noqa: BLE001 - raised again, as from any other server
                _raise_error(describe_error(error))
        content, buffers = answer if answer is not None else (b"", ())
        if into is None:
            return content, b"".join(buffers)
        at = 0
        for buffer in buffers:
            into[at : at + len(buffer)] = buffer
            at += len(buffer)
        return content, b""

    def free(self, handle: int) -> None:
        """Releases an object."""
        if self._open:
            self._service.handle(Kind.FREE, U32.pack(1) + U64.pack(handle), _Content(()))

    def close(self) -> None:
        """Ends the session."""
        if self._open:
            self._open = False
            self._service.close()

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            self.close()
