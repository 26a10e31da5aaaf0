"""Files that go from and to a connection without passing through this process's memory."""

import errno
import itertools
import os
import socket
import threading

import pytest

from tilewright import rpc
from tilewright.rpc import file_content
from tilewright.rpc.channel import PlainChannel
from tilewright.rpc.file_content import FileContent
from tilewright.rpc.streams import SocketStream

CONTENT = bytes(range(256)) * 4099  # more than a pipe holds, and no multiple of anything


@pytest.fixture
def ends():
    """A channel, and a function that writes to the other end of it."""
    here, there = socket.socketpair()
    threads = []

    def write(content):
        threads.append(threading.Thread(target=there.sendall, args=(content,)))
        threads[-1].start()

    yield PlainChannel(SocketStream(here)), write
    for thread in threads:
        thread.join(10)
    here.close()
    there.close()


def test_bytes_become_a_file(ends, tmp_path):
    channel, write = ends
    write(b"head" + CONTENT + b"next")
    assert channel.read(4) == b"head"  # which leaves a part of the content in the buffer
    with open(tmp_path / "file", "wb", buffering=0) as file:
        channel.read_to_file(file.fileno(), len(CONTENT))
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert channel.read(4) == b"next"


def test_a_file_that_cannot_be_written_leaves_the_connection_usable(ends, tmp_path):
    channel, write = ends
    write(CONTENT + b"next")
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(OSError, match="[Bb]ad file descriptor"):
        channel.read_to_file(descriptor, len(CONTENT))
    os.close(descriptor)
    assert channel.read(4) == b"next"


def test_a_file_gets_its_place_in_steps(ends, tmp_path, monkeypatch):
    """No more than a step ahead of what has arrived, and never beyond the announced size."""
    monkeypatch.setattr(file_content, "RESERVED_BYTES", 300_000)
    steps = []

    def reserve(descriptor, begin, count):
        steps.append((begin, begin + count))
        os.ftruncate(descriptor, begin + count)

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    test_bytes_become_a_file(ends, tmp_path)
    assert len(steps) > 1 and steps[0][0] == 0 and steps[-1][1] == len(CONTENT)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(steps))


@pytest.mark.parametrize(("number", "is_told"), [(errno.ENOSPC, True), (errno.EOPNOTSUPP, False)])
def test_a_disk_without_room_is_told_before_it_is_full(ends, tmp_path, monkeypatch, number, is_told):
    """A file system that cannot reserve is no error."""

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    channel, write = ends
    write(CONTENT + b"next")
    with open(tmp_path / "file", "wb", buffering=0) as file:
        if is_told:
            with pytest.raises(OSError, match="No space left"):
                channel.read_to_file(file.fileno(), len(CONTENT))
        else:
            channel.read_to_file(file.fileno(), len(CONTENT))
    assert len((tmp_path / "file").read_bytes()) == (0 if is_told else len(CONTENT))
    assert channel.read(4) == b"next"


def test_a_file_that_became_shorter_is_told(ends, tmp_path):
    channel, _ = ends
    (tmp_path / "file").write_bytes(b"short")
    with (
        open(tmp_path / "file", "rb") as file,
        pytest.raises(OSError, match="became shorter while it was sent"),
    ):
        channel.write_file(FileContent(file, 100))


@pytest.mark.parametrize("which", ["server", "keyed_server"])
def test_a_file_there_and_back(which, request, key_file, tmp_path):
    server = request.getfixturevalue(which)
    (tmp_path / "file").write_bytes(CONTENT)
    with rpc.connect(
        "127.0.0.1", server.port, key_file=key_file if which == "keyed_server" else None
    ) as session:
        session.upload(tmp_path / "file")
        session.upload(b"", "empty")
        assert bytes(session.download("file")) == CONTENT
        assert session.download("empty") == b""


def test_too_much_at_once_is_refused_before_it_is_sent(server):
    with rpc.connect("127.0.0.1", server.port) as session:
        session._sess.requester.most_bulk = 10
        with pytest.raises(ValueError, match="11 bytes in one request; the server accepts 10"):
            session.upload(b"x" * 11, "file")
        session.upload(b"x" * 10, "file")
