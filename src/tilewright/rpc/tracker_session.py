"""A client of a tracker: asks for devices, and opens sessions on them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.rpc.channel import Channel
from tilewright.rpc.client import RPCSession, connect, connect_stream
from tilewright.rpc.failures import ChannelError, ProtocolError, RemoteError, remote_error
from tilewright.rpc.frames import Kind, Reader, frame, read_frame, text
from tilewright.rpc.handshake import open_channel
from tilewright.rpc.streams import SocketStream
from tilewright.rpc.values import I32, TEXT, U8, U32
from tilewright.runtime.failure import failure
from tilewright.support.errors import RPCError, TilewrightError

_Result = TypeVar("_Result")
_EXTRA_SECONDS = 10.0


class TrackerSession:
    """A connection to a tracker, opened when it is needed and again when it was lost; any thread may use it."""

    def __init__(self, addr: tuple[str, int], *, key_file: str | os.PathLike[str] | None = None) -> None:
        self._addr = addr
        self._key_file = key_file
        self._lock = threading.Lock()
        self._stream: SocketStream | None = None
        self._channel: Channel | None = None
        with self._lock:
            self._connect()

    def _connect(self) -> Channel:
        if self._channel is None:
            host, port = self._addr
            self._stream, key = connect_stream(host, port, self._key_file)
            try:
                self._channel = open_channel(self._stream, key)
            except BaseException as error:
                self._drop()
                if isinstance(error, ChannelError):
                    raise RPCError(f"the tracker {host}:{port}: {error.message}") from error
                raise
        return self._channel

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._channel = None

    def __enter__(self) -> TrackerSession:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            self._drop()

    def _ask(self, kind: int, head: bytes, seconds: float | None) -> bytes:
        """The head of the answer; one more try on a new connection if the old one was lost."""
        with self._lock:
            for attempt in (0, 1):
                fresh = self._channel is None
                channel = self._connect()
                assert self._stream is not None
                self._stream.socket.settimeout(seconds)
                try:
                    channel.write(frame(kind, head))
                    answer, content, _ = read_frame(channel, 0)
                    break
                except (ChannelError, ProtocolError) as error:
                    self._drop()
                    if fresh or attempt:
                        raise RPCError(
                            f"the tracker {self._addr[0]}:{self._addr[1]}: {error.message}"
                        ) from error
                except BaseException:  # interrupted: the answer would be taken for the next one's
                    self._drop()
                    raise
        if answer == Kind.ERROR:
            reader = Reader(content)
            kind_name = reader.text()
            raise remote_error(kind_name, reader.text())
        return content

    def summary(self) -> dict[str, Any]:
        """Free devices and waiting clients by label (``queue_info``), and the servers (``server_info``)."""
        reader = Reader(self._ask(Kind.SUMMARY, b"", _EXTRA_SECONDS))
        if reader.number(U8) != TEXT:
            raise ProtocolError("the tracker's summary is not a text")
        found: dict[str, Any] = json.loads(reader.text())
        return found

    def text_summary(self) -> str:
        """The summary as a table."""
        data = self.summary()
        lines = ["Server List", "-" * 28, "server-address           key", "-" * 28]
        for server in sorted(data["server_info"], key=lambda one: one["key"]):
            host, port = server["addr"]
            lines.append(f"{host + ':' + str(port):24s} {server['key']}")
        lines += ["-" * 28, "", "Queue Status"]
        width = max([len(label) for label in data["queue_info"]] + [0]) + 2
        rule = "-" * (26 + width)
        lines += [rule, f"{'key':{width}s} total  free  pending", rule]
        for label, queue in sorted(data["queue_info"].items()):
            total = sum(server["key"] == f"server:{label}" for server in data["server_info"])
            lines.append(f"{label:{width}s} {total:<7d}{queue['free']:<6d}{queue['pending']}")
        return "\n".join([*lines, rule, ""])

    def request(
        self,
        key: str,
        priority: int = 1,
        session_timeout: int = 0,
        max_retry: int = 5,
        session_constructor_args: list[Any] | None = None,
        *,
        wait_seconds: int = 0,
    ) -> RPCSession:
        """A session on the next free device with the label ``key``; who has a larger priority comes first.

        ``session_timeout`` limits the session in seconds, ``wait_seconds`` the waiting for it (0: for ever). A server
        that does not answer is passed over, at most ``max_retry`` times.
        """
        head = text(key) + I32.pack(priority) + U32.pack(wait_seconds)
        problem: TilewrightError | None = None
        for _ in range(max(1, max_retry)):
            try:
                # On a connection of its own: others may ask meanwhile, which may be what frees a device.
                with TrackerSession(self._addr, key_file=self._key_file) as waiting:
                    limit = wait_seconds + _EXTRA_SECONDS if wait_seconds else None
                    answer = waiting._ask(Kind.REQUEST, head, limit)
            except RemoteError as error:
                if error.kind == "TimeoutError":
                    raise
                problem = error
                continue
            reader = Reader(answer)
            host, port, match = reader.text(), reader.number(U32), reader.text()
            reader.end()
            try:
                return connect(
                    host, port, match, session_timeout, session_constructor_args, key_file=self._key_file
                )
            except RPCError as error:
                problem = error
        reason = problem.message if problem is not None else ""
        raise RPCError(f"cannot get the device {key!r} after {max_retry} tries: {reason}")

    def request_and_run(
        self,
        key: str,
        func: Callable[[RPCSession], _Result],
        priority: int = 1,
        session_timeout: int = 0,
        max_retry: int = 2,
    ) -> _Result:
        """What ``func`` returns for a session; where the device fails, with another one."""
        problem: Exception | None = None
        for _ in range(max(1, max_retry)):
            try:
                with self.request(key, priority, session_timeout) as session:
                    return func(session)
            except RemoteError:  # the function's own error, which would come again
                raise
            except RPCError as error:
                problem = error
        raise RPCError(f"running on the device {key!r} failed {max_retry} times: {problem}") from problem


def connect_tracker(url: str, port: int, *, key_file: str | os.PathLike[str] | None = None) -> TrackerSession:
    """A client of the tracker at an address; the key is found as by ``connect``."""
    if not isinstance(url, str):
        raise failure("TypeError", f"a tracker's address is a string, not {type(url).__name__}")
    return TrackerSession((url, int(port)), key_file=key_file)
