"""Sends mutated and hostile messages to an RPC server and checks that it stays up and lets nobody in.

Run it:  python tools/rpc_fuzz.py HOST PORT --key-file FILE [--count 100000] [--seed 0] [--guard FOLDER ...]

Three kinds of connections alternate: bytes before the handshake (no key is known), a valid handshake whose records are
damaged, and a valid session with hostile requests, each of which must be answered, and at last a frame that is not
valid. Several connections are open at once. Every so often a client with the key opens a session and calls a function,
so that a server that died, or that no longer lets the right key in, is found out. Nothing may have changed in the
folders that are guarded.
"""

from __future__ import annotations

import argparse
import random
import socket
import struct
import threading
from collections.abc import Sequence
from pathlib import Path

from tilewright.rpc.channel import Channel
from tilewright.rpc.client import connect
from tilewright.rpc.failures import ChannelError
from tilewright.rpc.frames import Kind, read_frame
from tilewright.rpc.handshake import open_channel
from tilewright.rpc.keys import read_key
from tilewright.rpc.noise import Handshake
from tilewright.rpc.streams import SocketStream

PREAMBLE = b"TWRPC\x01\x01\x00"
CHECK_EVERY = 1000
_AT_ONCE = 20
_ANSWERED = tuple(range(Kind.GET_FUNCTION, Kind.CLOSE))
_TYPES = (*range(0x18), 0x20, 0x24, 0x80, 0x81, 0xFF)
_FUNCTIONS = (
    b"testing.echo",
    b"tvm.graph_executor.create",
    b"tvm.rpc.server.upload",
    b"tvm.rpc.server.download",
    b"tvm.rpc.server.remove",
    b"tvm.rpc.server.load_module",
    b"tilewright.vm.create",
)


def frame(kind: int, head: bytes, bulk: bytes = b"", *, bulk_size: int | None = None) -> bytes:
    """A frame, whose header may say something else about the bulk."""
    size = len(bulk) if bulk_size is None else bulk_size
    return struct.pack("<B3xIQ", kind, len(head), size) + head + bulk


def text(content: bytes) -> bytes:
    """A string."""
    return struct.pack("<I", len(content)) + content


def open_frame(label: bytes = b"") -> bytes:
    """A valid OPEN."""
    return frame(0x01, struct.pack("<I", 1) + text(label) + struct.pack("<I", 0))


class Hostile:
    """Makes messages that a server must survive."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def value(self, depth: int = 0) -> bytes:
        """A value, often a wrong one."""
        chance = self.chance
        kind = chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x11, 0x12, 0x55, 0xFF))
        if kind == 4:
            return b"\x04" + text(chance.randbytes(chance.randrange(20)))
        if kind == 5:
            return b"\x05" + struct.pack("<Q", chance.choice((0, 1, 100, 1 << 40, (1 << 64) - 1)))
        if kind == 8:
            return b"\x08" + struct.pack("<Q", chance.choice((0, 1, 2, 3, 4, 1 << 40)))
        if kind == 9:
            count = chance.choice((0, 1, 3, 5000, (1 << 32) - 1))
            inside = b"".join(self.value(depth + 1) for _ in range(min(count, 3))) if depth < 12 else b""
            return b"\x09" + struct.pack("<I", count) + inside
        return bytes([kind]) + chance.randbytes({1: 8, 2: 8, 3: 1, 6: 4, 7: 8}.get(kind, 12))

    def path(self) -> bytes:
        """A path, most often one that leads out of the folder."""
        parts = (b"..", b".", b"", b"a", b"/", b"etc", b"passwd", b"\\", b"c:", b"\0", b"\xff", b"x" * 300)
        return b"/".join(self.chance.choice(parts) for _ in range(self.chance.randrange(1, 20)))

    def handle(self) -> bytes:
        """A handle, often one that was given out."""
        return struct.pack("<Q", self.chance.choice((0, *range(1, 12), 1 << 63)))

    def shape(self) -> bytes:
        """A number of dimensions and extents."""
        chance = self.chance
        count = chance.choice((0, 1, 2, 2, 40, 1 << 31))
        extents = (chance.choice((0, 1, 3, 7, -1, 1 << 20, 1 << 62)) for _ in range(min(count, 8)))
        return struct.pack("<I", count) + b"".join(struct.pack("<q", extent) for extent in extents)

    def head(self, kind: int) -> bytes:
        """The head of a request, of its own kind or of another."""
        chance = self.chance
        if kind == Kind.TIME:  # its numbers are a client's to choose, and to wait for
            numbers = struct.pack("<iiIII", 1, 0, *(chance.randrange(3) for _ in range(3)))
            return self.handle() + numbers + text(b"") + struct.pack("<I", 1) + self.value()
        if kind == Kind.GET_FUNCTION and chance.random() < 0.7:
            return text(chance.choice(_FUNCTIONS))
        if kind == Kind.ARRAY_NEW and chance.random() < 0.5:
            return b"\x02\x20\x01\x00" + struct.pack("<iiI2q", 1, 0, 2, 3, chance.randrange(9))
        place = struct.pack("<ii", 1, 0)
        choices = (
            lambda: chance.randbytes(chance.randrange(64)),
            lambda: text(self.path()),
            lambda: text(chance.choice((b"a", b"a/b", b"m.tar", b"lib.so"))),
            lambda: (
                self.handle()
                + struct.pack("<I", chance.choice((0, 1, 2, 5000)))
                + self.value()
                + self.value()
            ),
            lambda: chance.randbytes(4) + place + self.shape(),
            lambda: b"\x02\x20\x01\x00" + place + self.shape(),
            lambda: (
                self.handle()
                + struct.pack("<QQ", chance.choice((0, 1, 1 << 63)), chance.choice((0, 4, 1 << 63)))
            ),
            lambda: self.handle() + text(self.path()) + b"\x01",
            lambda: self.handle() + self.handle(),
        )
        made = bytearray(chance.choice(choices)())
        if made and chance.random() < 0.3:
            for _ in range(chance.randrange(1, 4)):
                made[chance.randrange(len(made))] = chance.randrange(256)
        return bytes(made)

    def request(self) -> tuple[int, bytes]:
        """A hostile request in a valid frame, which is answered with an error at worst: its kind, and the frame."""
        kind = self.chance.choice(_ANSWERED)
        bulk = self.chance.randbytes(self.chance.choice((0, 0, 1, 16, 1000)))
        return kind, frame(kind, self.head(kind), bulk)

    def last_words(self) -> bytes:
        """A frame after which nobody knows where the next one begins."""
        chance = self.chance
        kind = chance.choice(_TYPES)
        bulk = chance.randbytes(chance.choice((0, 1, 16, 1000)))
        lie = chance.choice((None, 1 << 62, len(bulk) + 1))
        made = bytearray(frame(kind, chance.randbytes(chance.randrange(64)), bulk, bulk_size=lie))
        for _ in range(chance.randrange(4)):
            made[chance.randrange(16)] = chance.randrange(256)
        return bytes(made)

    def before_the_handshake(self) -> bytes:
        """What a stranger sends."""
        chance = self.chance
        made = bytearray(
            PREAMBLE + b"\x00\x30" + chance.randbytes(48) + chance.randbytes(chance.randrange(200))
        )
        if chance.random() < 0.7:
            made[chance.randrange(12)] = chance.randrange(256)
        return bytes(made[: chance.randrange(len(made) + 1)] if chance.random() < 0.3 else made)


def attack(address: tuple[str, int], key: bytes | None, hostile: Hostile, messages: int) -> int:
    """One connection with some hostile messages; how many were sent. An error if one of a session was not answered."""
    chance = hostile.chance
    with socket.create_connection(address, timeout=20) as connection:
        kind = chance.random()
        if key is not None and kind < 0.1:
            return _end(connection, hostile.before_the_handshake())
        if key is not None and kind < 0.2:
            return _attack_with_damage(connection, key, hostile, messages)
        if kind < 0.3:
            return _end(connection, b"TWRPC\x01\x00\x00" + hostile.last_words())
        channel = open_channel(SocketStream(connection), key)
        channel.write([open_frame()])
        if read_frame(channel)[0] != Kind.OK:
            return 1  # more sessions than it has room for
        for at in range(0, messages - 1, _AT_ONCE):
            _ask(channel, [hostile.request() for _ in range(min(_AT_ONCE, messages - 1 - at))])
        channel.write([hostile.last_words()])
        return messages - 1 + _end(connection, b"")


def _ask(channel: Channel, requests: list[tuple[int, bytes]]) -> None:
    """Sends requests and reads all their answers."""
    channel.write([b"".join(content for _, content in requests)])
    for kind, content in requests:
        if kind == Kind.FREE:
            continue
        try:
            _, _, size = read_frame(channel)
            channel.read(size)
        except ChannelError as error:
            raise SystemExit(
                f"the session ended at the request {content.hex()[:2000]}: {error.message}"
            ) from error


def _end(connection: socket.socket, content: bytes) -> int:
    """Sends the last message of a connection, and reads until the server closes it."""
    try:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    except OSError:
        pass  # the server closed the connection, as it should
    return 1


def _attack_with_damage(connection: socket.socket, key: bytes, hostile: Hostile, messages: int) -> int:
    chance = hostile.chance
    handshake = Handshake(key, PREAMBLE)
    sent = 0
    try:
        connection.sendall(PREAMBLE + b"\x00\x30" + handshake.first())
        answer = _exactly(connection, 8 + 2 + 48)
        handshake.finish(answer[10:])
        content = open_frame() if chance.random() < 0.9 else hostile.last_words()
        for _ in range(min(messages, _AT_ONCE)):
            record = bytearray(handshake.sends.encrypt(content))
            if chance.random() < 0.2:
                record[chance.randrange(len(record))] ^= 1 << chance.randrange(8)
            size = len(record) if chance.random() < 0.95 else chance.choice((0, 1, 16, 65535))
            connection.sendall(struct.pack(">H", size) + record)
            sent += 1
            content = hostile.request()[1]
    except (OSError, EOFError):
        return sent  # the server closed the connection, as it should
    return sent + _end(connection, b"")


def _exactly(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        more = connection.recv(size - len(content))
        if not more:
            raise EOFError
        content += more
    return content


def check_alive(host: str, port: int, key_file: str | None) -> None:
    """A client with the key gets in and gets an answer."""
    session = connect(host, port, key_file=key_file)
    try:
        assert session.get_function("testing.echo")(7) == 7
    finally:
        session.close()


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with its size and the time of its last change."""
    found = {}
    for path in folder.rglob("*"):
        stat = path.lstat()
        if not path.is_dir():
            found[str(path)] = (stat.st_size, stat.st_mtime_ns)
    return found


class Run:
    """Several connections at once, until so many messages are sent."""

    def __init__(self, host: str, port: int, key_file: str | None, count: int, seed: int) -> None:
        self._host, self._port, self._key_file, self._count, self._seed = host, port, key_file, count, seed
        self._key = read_key(Path(key_file)) if key_file else None
        self._lock = threading.Lock()
        self.sent = self.checked = 0
        self.failure: BaseException | None = None

    def _work(self, number: int) -> None:
        hostile = Hostile(self._seed + 1000 * number)
        try:
            while self.failure is None and self.sent < self._count:
                sent = attack((self._host, self._port), self._key, hostile, hostile.chance.randrange(1, 120))
                with self._lock:
                    before, self.sent = self.sent, self.sent + sent
                    is_due = before // CHECK_EVERY != self.sent // CHECK_EVERY
                    self.checked += is_due
                if is_due:
                    check_alive(self._host, self._port, self._key_file)
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            self.failure = error

    def run(self, at_once: int) -> None:
        """Sends them all; raises what went wrong."""
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure is not None:
            raise self.failure
        check_alive(self._host, self._port, self._key_file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Send hostile messages to a server."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("HOST")
    parser.add_argument("PORT", type=int)
    parser.add_argument("--key-file", help="the key that the server has; without one, plain connections")
    parser.add_argument("--count", type=int, default=100_000, help="how many messages")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=4, help="how many connections at once")
    parser.add_argument(
        "--guard", type=Path, action="append", default=[], help="a folder in which nothing may change"
    )
    parsed = parser.parse_args(arguments)
    before = [tree(folder) for folder in parsed.guard]
    run = Run(parsed.HOST, parsed.PORT, parsed.key_file, parsed.count, parsed.seed)
    run.run(parsed.at_once)
    for folder, files in zip(parsed.guard, before, strict=True):
        changed = dict(tree(folder).items() ^ files.items())
        if changed:
            print(f"changed in {folder}: {sorted(changed)[:20]}")
            return 1
    print(f"{run.sent} messages; the right key was let in {run.checked + 1} times, and the server answers")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
