"""Streams of bytes: a connected socket, or a pair of pipes, with the same operations."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Sequence
from typing import Protocol

from tilewright.rpc.failures import ChannelClosed, ChannelError
from tilewright.rpc.file_content import FileContent, FileTarget, splice_socket

Buffer = bytes | bytearray | memoryview

_MOST_VECTORS = 64  # well below the system's limit


class Stream(Protocol):
    """What a channel needs of a connection."""

    def read_some(self, target: memoryview) -> int:
        """Reads at least one byte into a buffer; the number, 0 at the end."""

    def write_all(self, buffers: Sequence[Buffer]) -> None:
        """Writes every byte of the buffers, in order."""

    def move_to_file(self, target: FileTarget, size: int) -> int:
        """Moves the next bytes to a file without reading them: all, or none (0) where that cannot be done."""

    def write_file(self, content: FileContent) -> bool:
        """Writes a file's bytes without reading them; false, and nothing written, where that cannot be done."""

    def close(self) -> None:
        """Closes both directions."""


def _rest(buffers: list[memoryview], written: int) -> list[memoryview]:
    """What is left of buffers after so many bytes."""
    at = 0
    while at < len(buffers) and written >= len(buffers[at]):
        written -= len(buffers[at])
        at += 1
    rest = buffers[at:]
    if rest and written:
        rest[0] = rest[0][written:]
    return rest


class SocketStream:
    """A connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read_some(self, target: memoryview) -> int:
        try:
            return self.socket.recv_into(target)
        except TimeoutError as error:
            raise ChannelError("the other side did not answer in time") from error
        except OSError as error:
            raise ChannelClosed(f"the connection is lost: {error}") from error

    def write_all(self, buffers: Sequence[Buffer]) -> None:
        try:
            if len(buffers) == 1:
                self.socket.sendall(buffers[0])
                return
            rest = [memoryview(one).cast("B") for one in buffers if len(one)]
            while rest:
                rest = _rest(rest, self.socket.sendmsg(rest[:_MOST_VECTORS]))
        except TimeoutError as error:
            raise ChannelError("the other side did not read in time") from error
        except OSError as error:
            raise ChannelClosed(f"the connection is lost: {error}") from error

    def move_to_file(self, target: FileTarget, size: int) -> int:
        if self.socket.gettimeout() is not None:
            return 0
        return splice_socket(self.socket.fileno(), target, size)

    def write_file(self, content: FileContent) -> bool:
        try:
            sent = self.socket.sendfile(content.file, 0, content.size) if content.size else 0
        except TimeoutError as error:
            raise ChannelError("the other side did not read in time") from error
        except OSError as error:
            raise ChannelClosed(f"the connection is lost: {error}") from error
        if sent != content.size:
            raise content.shortened()
        return True

    def close(self) -> None:
        self.socket.close()


class PipeStream:
    """Two pipes, by their file descriptors, which it owns."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self.seconds: float | None = None
        """How long a read may wait; None for ever."""

    def read_some(self, target: memoryview) -> int:
        if self.seconds is not None and not select.select([self._read], [], [], self.seconds)[0]:
            raise ChannelError("the other side did not answer in time")
        try:
            return os.readv(self._read, [target])
        except OSError as error:
            raise ChannelClosed(f"the pipe is lost: {error}") from error

    def write_all(self, buffers: Sequence[Buffer]) -> None:
        rest = [memoryview(one).cast("B") for one in buffers if len(one)]
        try:
            while rest:
                rest = _rest(rest, os.writev(self._write, rest[:_MOST_VECTORS]))
        except OSError as error:
            raise ChannelClosed(f"the pipe is lost: {error}") from error

    def move_to_file(self, target: FileTarget, size: int) -> int:
        return 0

    def write_file(self, content: FileContent) -> bool:
        return False

    def close(self) -> None:
        for number in {self._read, self._write} - {-1}:
            os.close(number)
        self._read = self._write = -1

    def __del__(self) -> None:
        self.close()
