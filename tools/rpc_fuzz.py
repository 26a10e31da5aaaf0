"""Sends mutated and hostile messages to an RPC server and checks that it stays up and lets nobody in.

Run it:  python tools/rpc_fuzz.py HOST PORT --key-file FILE [--count 100000] [--seed 0]

Three kinds of connections alternate: bytes before the handshake (no key is known), a valid handshake whose records are
damaged, and a valid session whose frames are random or mutated. Every hundred messages a client with the key opens a
session and calls a function, so that a server that died, or that no longer lets the right key in, is found out.
"""

from __future__ import annotations

import argparse
import random
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from tilewright.rpc.client import connect
from tilewright.rpc.keys import read_key
from tilewright.rpc.noise import Handshake

PREAMBLE = b"TWRPC\x01\x01\x00"
_TYPES = (*range(0x18), 0x20, 0x24, 0x80, 0x81, 0xFF)


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

    def request(self) -> bytes:
        """One frame."""
        chance = self.chance
        kind = chance.choice(_TYPES)
        handle = struct.pack("<Q", chance.choice((0, 1, 2, 3, 4, 5, 1 << 63)))
        shape = struct.pack("<I", count := chance.choice((0, 1, 2, 40, 1 << 31))) + b"".join(
            struct.pack("<q", chance.choice((0, 1, 7, -1, 1 << 20, 1 << 62))) for _ in range(min(count, 8))
        )
        heads = (
            lambda: chance.randbytes(chance.randrange(64)),
            lambda: text(self.path()),
            lambda: handle + struct.pack("<I", chance.choice((0, 1, 2, 5000))) + self.value() + self.value(),
            lambda: chance.randbytes(4) + struct.pack("<ii", 1, 0) + shape,
            lambda: b"\x02\x20\x01\x00" + struct.pack("<ii", 1, 0) + shape,
            lambda: (
                handle + struct.pack("<QQ", chance.choice((0, 1, 1 << 63)), chance.choice((0, 4, 1 << 63)))
            ),
            lambda: handle + text(self.path()) + b"\x01",
            lambda: handle + handle,
        )
        bulk = chance.randbytes(chance.choice((0, 0, 1, 16, 1000)))
        lie = chance.choice((None, None, None, None, 1 << 62, len(bulk) + 1))
        made = bytearray(frame(kind, chance.choice(heads)(), bulk, bulk_size=lie))
        if chance.random() < 0.3:
            for _ in range(chance.randrange(1, 4)):
                made[chance.randrange(len(made))] = chance.randrange(256)
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


def attack(address: tuple[str, int], key: bytes | None, hostile: Hostile, messages: int) -> None:
    """One connection with some hostile messages."""
    chance = hostile.chance
    with socket.create_connection(address, timeout=10) as connection:
        connection.settimeout(5)
        try:
            if key is None:
                preamble = b"TWRPC\x01\x00\x00"
                connection.sendall(preamble + (open_frame() if chance.random() < 0.9 else b""))
                for _ in range(messages):
                    connection.sendall(hostile.request())
            elif chance.random() < 0.3:
                connection.sendall(hostile.before_the_handshake())
            else:
                _attack_with_key(connection, key, hostile, messages)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except (OSError, EOFError):
            pass  # the server closed the connection, as it should


def _attack_with_key(connection: socket.socket, key: bytes, hostile: Hostile, messages: int) -> None:
    chance = hostile.chance
    handshake = Handshake(key, PREAMBLE)
    connection.sendall(PREAMBLE + b"\x00\x30" + handshake.first())
    answer = _exactly(connection, 8 + 2 + 48)
    handshake.finish(answer[10:])
    damaged = chance.random() < 0.3
    content = open_frame() if chance.random() < 0.9 else hostile.request()
    for _ in range(messages):
        record = bytearray(handshake.sends.encrypt(content))
        if damaged and chance.random() < 0.5:
            record[chance.randrange(len(record))] ^= 1 << chance.randrange(8)
        size = len(record) if chance.random() < 0.98 else chance.choice((0, 1, 16, 65535))
        connection.sendall(struct.pack(">H", size) + record)
        content = hostile.request()


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Send hostile messages to a server."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("HOST")
    parser.add_argument("PORT", type=int)
    parser.add_argument("--key-file", help="the key that the server has; without one, plain connections")
    parser.add_argument("--count", type=int, default=100_000, help="how many messages")
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args(arguments)
    key = read_key(Path(parsed.key_file)) if parsed.key_file else None
    hostile = Hostile(parsed.seed)
    sent = checked = 0
    while sent < parsed.count:
        messages = hostile.chance.randrange(1, 20)
        attack((parsed.HOST, parsed.PORT), key, hostile, messages)
        sent += messages
        if sent // 100 > checked:
            checked = sent // 100
            check_alive(parsed.HOST, parsed.PORT, parsed.key_file)
    check_alive(parsed.HOST, parsed.PORT, parsed.key_file)
    print(f"{sent} messages, and the server answers")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
