"""Files as the content of messages: sent and received without a copy in this process where the system can.

A socket's bytes go to a file through a pipe that is moved by reference (``splice``), and a file's bytes to a socket
with ``sendfile``. The one copy that is left is the one into the file's own pages.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from typing import BinaryIO

from tilewright.rpc.failures import ChannelClosed

try:
    import fcntl
except ImportError:  # Windows, which has no splice either
    fcntl = None  # type: ignore[assignment]

PIECE_BYTES = 1 << 20
"""How much is moved at once where bytes have to be copied, and what a pipe is asked to hold: the most Linux allows."""

RESERVED_BYTES = 64 << 20
"""How much of a file gets its place on the disk before it arrives. To place it page by page costs half as much again as
the copy; to place all of what is announced would let a message of a few bytes fill the disk."""

_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which has a name in Python since 3.10 on some systems only


@dataclass(frozen=True)
class FileContent:
    """An open file that is sent as it is, from its beginning."""

    file: BinaryIO
    size: int

    def __len__(self) -> int:
        return self.size

    def shortened(self) -> OSError:
        """The error for a file that has lost bytes since its size was announced."""
        return OSError(f"{self.file.name} became shorter while it was sent")


class FileTarget:
    """A file of an announced size that is being received.

    Its first error is kept, so that the rest of the message is still read.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size
        self._written = 0
        self._reserved = 0
        self._error: OSError | None = None

    def write(self, content: memoryview | bytes) -> None:
        """Appends bytes."""
        try:
            self._reserve(len(content))
            while content and self._error is None:
                count = os.write(self._descriptor, content)
                self._written += count
                content = content[count:]
        except OSError as error:
            self._error = error

    def _reserve(self, count: int) -> None:
        """Has the file system place the bytes that come next, where it can do so at once."""
        if self._written + count <= self._reserved or self._size < PIECE_BYTES or self._error is not None:
            return
        begin = max(self._written, self._reserved)
        self._reserved = min(max(self._written + count, begin + RESERVED_BYTES), self._size)
        try:
            os.posix_fallocate(self._descriptor, begin, self._reserved - begin)
        except AttributeError:  # not on this system
            self._reserved = self._size
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                raise
            self._reserved = self._size  # a file system that cannot

    def take(self, pipe: int, count: int) -> None:
        """Appends what is in a pipe."""
        while count and self._error is None:
            try:
                self._reserve(count)
                moved = os.splice(pipe, self._descriptor, count)
                self._written += moved
                count -= moved
            except OSError as error:
                if error.errno != errno.EINVAL:  # a file system without splice
                    self._error = error
                break
        while count:
            content = os.read(pipe, count)
            self.write(content)
            count -= len(content)

    def finish(self) -> None:
        """Raises the error of the file, if there was one."""
        if self._error is not None:
            raise self._error


def splice_socket(descriptor: int, target: FileTarget, size: int) -> int:
    """Moves bytes of a socket to a file: all of them, or none (0) where the system cannot."""
    if not hasattr(os, "splice") or fcntl is None:
        return 0
    reads, writes = os.pipe()
    try:
        with contextlib.suppress(OSError):  # a smaller pipe is slower, nothing else
            fcntl.fcntl(writes, _SET_PIPE_SIZE, PIECE_BYTES)
        done = 0
        while done < size:
            try:
                count = os.splice(descriptor, writes, size - done)
            except OSError as error:
                if error.errno == errno.EINVAL and done == 0:
                    return 0
                raise ChannelClosed(f"the connection is lost: {error}") from error
            if count == 0:
                raise ChannelClosed("the other side has closed the connection")
            done += count
            target.take(reads, count)
        return done
    finally:
        os.close(reads)
        os.close(writes)
