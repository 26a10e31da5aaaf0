"""Sends mutated and hostile messages to a server and sees what becomes of it.

    python tests/rpc/fuzz.py --count 100000 [--seed N] [--command PROGRAM ARGUMENT ...]

Two kinds: to a server with a key, bytes of somebody who does not have it, among them changed and repeated handshakes;
and in sessions of somebody who is in, messages with wrong content. It fails if a session ends that should have gone on,
if a server does not answer any more, if somebody without the key gets an answer to OPEN, or if anything changes outside
of the folders of sessions. ``--command`` attacks a server over pipes instead, such as the one in C.
"""

import argparse
import contextlib
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tilewright import rpc
from tilewright.rpc.channel import PlainChannel
from tilewright.rpc.failures import ChannelError
from tilewright.rpc.frames import VERSION, Kind, frame, read_frame, text
from tilewright.rpc.handshake import open_channel, preamble
from tilewright.rpc.keys import generate_key
from tilewright.rpc.noise import Handshake
from tilewright.rpc.streams import PipeStream, SocketStream

KNOWN = [kind for kind in Kind if Kind.GET_FUNCTION <= kind <= Kind.PING]
MESSAGES_OF_A_SESSION = 2000
INTERESTING = [
    0,
    1,
    2,
    3,
    7,
    8,
    255,
    256,
    65535,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 62,
    (1 << 64) - 1,
]
SERVER = "tvm.rpc.server."
NAMES = [
    "testing.echo",
    "rpc.test.addone",
    "rpc.test.add_to_lhs",
    "tvm.graph_executor.create",
    "tilewright.vm.create",
    "",
    "\0",
    "x" * 5000,
]
NAMES += [SERVER + name for name in ("upload", "download", "remove", "load_module")]
PATHS = [
    "a",
    "a/b",
    "../x",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a//b",
    "a\0b",
    "~",
    "C:\\x",
    "x" * 5000,
    "a/" * 40,
    "lib.so",
    "m.tar",
]


@dataclass
class Report:
    """What happened."""

    sent: int = 0
    answered: int = 0
    refused: int = 0
    sessions: int = 0
    intruders: int = 0
    crashes: list = field(default_factory=list)
    outside: list = field(default_factory=list)


class Maker:
    """Makes messages: valid ones with wrong values in them, and then changes bytes of some."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, layout):
        value = self.random.choice([*INTERESTING, self.random.getrandbits(64), self.random.randrange(1, 40)])
        return struct.pack(layout, value & ((1 << 8 * struct.calcsize(layout)) - 1))

    def handle(self):
        return struct.pack(
            "<Q", self.random.choice([self.random.randrange(1, 60), self.random.getrandbits(64), 0])
        )

    def string(self, choices):
        value = self.random.choice(choices)
        if self.random.random() < 0.2:
            value = "".join(chr(self.random.randrange(1, 0x250)) for _ in range(self.random.randrange(30)))
        return text(value)

    def value(self, depth=0):
        """One value and what of it is in the bulk."""
        tag = self.random.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 9, 16, 17, 18, self.random.randrange(256)])
        made, bulk = bytes([tag]), b""
        if tag in (1, 2):
            made += self.number("<Q")
        elif tag == 3:
            made += self.number("<B")
        elif tag == 4:
            made += self.string(NAMES + PATHS)
        elif tag == 5:
            bulk = self.random.randbytes(self.random.randrange(50))
            made += struct.pack("<Q", len(bulk)) if self.random.random() < 0.8 else self.number("<Q")
        elif tag == 6:
            made += self.random.randbytes(4)
        elif tag == 7:
            made += self.random.choice([struct.pack("<ii", 1, 0), self.random.randbytes(8)])
        elif tag == 8:
            made += self.handle()
        elif tag == 9 and depth < 10:
            parts = [self.value(depth + 1) for _ in range(self.random.randrange(4))]
            made += struct.pack("<I", len(parts)) + b"".join(part for part, _ in parts)
            bulk = b"".join(extra for _, extra in parts)
        return made, bulk

    def values(self):
        parts = [self.value() for _ in range(self.random.randrange(5))]
        count = len(parts) if self.random.random() < 0.9 else self.random.choice(INTERESTING) & 0xFFFFFFFF
        return struct.pack("<I", count) + b"".join(part for part, _ in parts), b"".join(
            bulk for _, bulk in parts
        )

    def place(self):
        return self.random.choice([struct.pack("<ii", 1, 0)] * 4 + [self.random.randbytes(8)])

    def shape(self):
        dtype = self.random.choice([b"\x02\x20\x01\0", b"\0\x08\x01\0", self.random.randbytes(4)])
        small = self.random.random() < 0.8
        extents = [
            self.random.randrange(9) if small else self.random.choice(INTERESTING)
            for _ in range(self.random.randrange(5))
        ]
        count = len(extents) if self.random.random() < 0.9 else self.random.choice(INTERESTING) & 0xFFFFFFFF
        packed = b"".join(struct.pack("<Q", extent) for extent in extents)
        return dtype + self.place() + struct.pack("<I", count) + packed

    def message(self):
        """Type, head and bulk of a message that a server has to survive."""
        kind = self.random.choice(KNOWN)
        head, bulk = b"", b""
        if kind in (
            Kind.GET_FUNCTION,
            Kind.FILE_READ,
            Kind.FILE_REMOVE,
            Kind.FILE_LIST,
            Kind.MODULE_LOAD,
            Kind.FILE_WRITE,
        ):
            head = self.string(NAMES if kind == Kind.GET_FUNCTION else PATHS)
        if kind == Kind.CALL:
            head, bulk = self.values()
            head = self.handle() + head
        elif kind == Kind.FREE:
            count = self.random.randrange(3)
            head = struct.pack("<I", count) + b"".join(self.handle() for _ in range(count))
        elif kind == Kind.ARRAY_NEW:
            head = self.shape()
        elif kind in (Kind.ARRAY_WRITE, Kind.ARRAY_COPY):
            head = self.handle() + (self.number("<Q") if self.random.random() < 0.7 else bytes(8))
        elif kind == Kind.ARRAY_READ:
            head = self.handle() + self.number("<Q") + self.number("<Q")
        elif kind == Kind.MODULE_FUNCTION:
            head = self.handle() + self.string(NAMES) + self.number("<B")
        elif kind == Kind.MODULE_IMPORT:
            head = self.handle() + self.handle()
        elif kind == Kind.TIME:
            arguments, bulk = self.values()
            counts = struct.pack("<III", *(self.random.randrange(3) for _ in range(3)))
            head = self.handle() + self.place() + counts + self.string(NAMES) + arguments
        elif kind in (Kind.DEVICE_ATTRIBUTE, Kind.DEVICE_SYNC):
            head = self.place() + (self.number("<I") if kind == Kind.DEVICE_ATTRIBUTE else b"")
        if kind in (Kind.FILE_WRITE, Kind.ARRAY_WRITE):
            bulk = self.random.randbytes(self.random.randrange(200))
        # TIME has numbers that a client may choose freely, and wait for: those are not changed.
        if kind != Kind.TIME and self.random.random() < 0.3:
            head = self.changed(head)
        if self.random.random() < 0.05:
            bulk = self.random.randbytes(self.random.randrange(300))
        return kind, head, bulk

    def changed(self, data):
        """Bytes flipped, inserted or cut off."""
        made = bytearray(data)
        for _ in range(self.random.randrange(1, 4)):
            how = self.random.randrange(3)
            if how == 0 and made:
                made[self.random.randrange(len(made))] = self.random.randrange(256)
            elif how == 1:
                at = self.random.randrange(len(made) + 1)
                made[at:at] = self.random.randbytes(self.random.randrange(1, 9))
            elif made:
                del made[self.random.randrange(len(made)) :]
        return bytes(made)


def opening():
    return frame(Kind.OPEN, struct.pack("<I", VERSION) + text("") + struct.pack("<I", 0))


def in_session(count, connect, maker, report):
    """Messages of somebody who is in; each is answered, or has no answer."""
    channel, left = None, 0
    for _ in range(count):
        if channel is None or left == 0:
            if channel is not None:
                channel.close()
            channel, left = connect(), MESSAGES_OF_A_SESSION
            channel.write(opening())
            read_frame(channel)
            report.sessions += 1
        kind, head, bulk = maker.message()
        left -= 1
        report.sent += 1
        try:
            channel.write(frame(kind, head, [bulk] if bulk else []))
            if kind == Kind.FREE:
                continue
            answer, _, size = read_frame(channel)
            channel.read(size)
            report.answered += answer == Kind.OK
            report.refused += answer == Kind.ERROR
        except ChannelError as error:
            report.crashes.append((kind.name, head.hex()[:400], bulk.hex()[:100], error.message))
            channel = None
    if channel is not None:
        channel.close()


def broken_frames(count, connect, maker, report):
    """Bytes that are no frames, from somebody who is in: the session ends with an error, and the server goes on."""
    for _ in range(count):
        channel = connect()
        channel.write(opening())
        read_frame(channel)
        report.sessions += 1
        report.sent += 1
        kind, head, bulk = maker.message()
        data = bytearray(b"".join(frame(kind, head, [bulk] if bulk else [])))
        for _ in range(3):
            data[maker.random.randrange(16)] = maker.random.randrange(256)
        with contextlib.suppress(ChannelError):
            channel.write([bytes(data)])
        channel.close()


def outsiders(count, port, key, maker, report):
    """What somebody says who does not have the key; the server must not answer what only it and clients can know."""
    recorded = None
    for _ in range(count):
        report.sent += 1
        how = maker.random.randrange(5)
        stranger = Handshake(maker.random.randbytes(32), preamble(1))
        first = stranger.first()
        data = preamble(1) + struct.pack(">H", len(first)) + first
        if how == 0:
            data = maker.random.randbytes(maker.random.randrange(200))
        elif how == 1:
            data = maker.changed(data)
        elif how == 2:
            data = preamble(0) + opening()[0]
        elif how == 3 and recorded is None:
            recorded = record(port, key)
        if how == 3:
            data = recorded if maker.random.random() < 0.5 else maker.changed(recorded)
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                said = b""
                while piece := connection.recv(4096):
                    said += piece
        except OSError:
            continue
        # At most the answer to a repeated handshake, which is of no use without the key.
        report.intruders += len(said) > 58


def record(port, key):
    """All that a real client sends until it is in."""
    client = Handshake(key, preamble(1))
    first = client.first()
    data = preamble(1) + struct.pack(">H", len(first)) + first
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        client.finish(connection.recv(58, socket.MSG_WAITALL)[10:])
        sealed = client.sends.encrypt(opening()[0])
        connection.sendall(struct.pack(">H", len(sealed)) + sealed)
        assert connection.recv(1), "a client with the key is not let in"
    return data + struct.pack(">H", len(sealed)) + sealed


def attack(count, port, keyed_port, key, seed=0):
    """Sends so many messages to a server on this machine without a key, and to one with it."""
    report, maker = Report(), Maker(seed)
    before = guarded()

    def connect():
        return open_channel(SocketStream(socket.create_connection(("127.0.0.1", port), timeout=60)), None)

    raw = max(10, count // 50)
    outsiders(count // 5, keyed_port, key, maker, report)
    broken_frames(raw, connect, maker, report)
    in_session(count - count // 5 - raw, connect, maker, report)
    for where, secret in ((port, None), (keyed_port, key)):
        stream = SocketStream(socket.create_connection(("127.0.0.1", where), timeout=60))
        channel = open_channel(stream, secret)
        channel.write(opening())
        if read_frame(channel)[0] != Kind.OK:
            report.crashes.append(("the server", "", "", "does not open sessions any more"))
        channel.close()
    report.outside = sorted(guarded() ^ before)
    return report


def guarded():
    """Names that appear where sessions must not write: beside their folders, in the working and the home folder."""
    places = [Path(tempfile.gettempdir()), Path.cwd(), Path("/"), Path.home()]
    return {
        str(path)
        for place in places
        if place.is_dir()
        for path in place.iterdir()
        if path.name in ("x", "a", "lib.so", "m.tar")
    }


def attack_command(count, command, seed):
    """The same in sessions of a server that is started for each, over pipes."""
    report, maker = Report(), Maker(seed)
    started = []

    def connect():
        theirs, ours = os.pipe(), os.pipe()
        started.append(
            subprocess.Popen(
                [*command, str(theirs[0]), str(ours[1])],
                pass_fds=(theirs[0], ours[1]),
                stdin=subprocess.DEVNULL,
            )
        )
        os.close(theirs[0])
        os.close(ours[1])
        channel = open_channel(PipeStream(ours[0], theirs[1]), None)
        assert isinstance(channel, PlainChannel)
        return channel

    raw = max(10, count // 200)
    broken_frames(raw, connect, maker, report)
    in_session(count - raw, connect, maker, report)
    for process in started:
        code = process.wait(60)
        if code < 0 or code > 1:
            report.crashes.append(("the server", "", "", f"ended with {code}"))
    return report


@contextlib.contextmanager
def logged(path):
    """What processes that are started here say about themselves goes to a file."""
    os.environ.update(PYTHONFAULTHANDLER="1", TILEWRIGHT_GUARD_PAGES="1")
    kept = os.dup(2)
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    begin = time.monotonic()
    if given.command:
        report = attack_command(given.count, given.command, given.seed)
    else:
        with tempfile.TemporaryDirectory() as folder:
            key_file = Path(folder) / "key"
            digits = generate_key()
            key_file.write_text(digits)
            key_file.chmod(0o600)
            with logged(Path(folder) / "log"):
                plain = rpc.Server(port=0, port_end=0)
                keyed = rpc.Server(port=0, port_end=0, key_file=key_file)
            report = attack(given.count, plain.port, keyed.port, bytes.fromhex(digits), given.seed)
            plain.terminate()
            keyed.terminate()
            said = (Path(folder) / "log").read_text(errors="replace")
            if "crashed" in said or "Traceback" in said or "Fatal" in said:
                report.crashes.append(("the server", "", "", said[-5000:]))
    print(
        f"{report.sent} messages in {time.monotonic() - begin:.0f} s: {report.answered} answered, "
        f"{report.refused} refused, {report.sessions} sessions; crashes: {len(report.crashes)}, "
        f"let in without the key: {report.intruders}, outside of sessions: {report.outside}"
    )
    for crash in report.crashes[:10]:
        print(*crash)
    return 1 if report.crashes or report.intruders or report.outside else 0


if __name__ == "__main__":
    sys.exit(main())
