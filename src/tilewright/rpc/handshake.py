"""The start of a connection: preamble, and in mode 1 the Noise handshake.

Each side is a generator that yields how many bytes it needs next and is sent them, so that a client may wait for them
while a server handles many connections at once.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Generator

from tilewright.rpc.channel import Channel, EncryptedChannel, PlainChannel
from tilewright.rpc.failures import ChannelClosed, ChannelError
from tilewright.rpc.noise import HANDSHAKE_BYTES, Handshake
from tilewright.rpc.streams import Stream

MAGIC = b"TWRPC"
VERSION = 1
PLAIN, ENCRYPTED = 0, 1
PREAMBLE_BYTES = 8

ACCEPTED, WRONG_PROTOCOL, KEY_REQUIRED, NO_KEY, TOO_MANY = range(5)

_WHY = {
    WRONG_PROTOCOL: "the server speaks another version of the protocol",
    KEY_REQUIRED: "the server requires a key; set TILEWRIGHT_RPC_KEY_FILE to the file that has it, or pass key_file",
    NO_KEY: "the server has no key and cannot prove who it is; start it with the key, or connect without one",
    TOO_MANY: "the server has too many connections",
}

_length = struct.Struct(">H")
Steps = Generator[int, bytes, "Handshake | None"]


def preamble(mode: int, status: int = 0) -> bytes:
    """The 8 bytes that each side begins with."""
    return MAGIC + bytes([VERSION, mode, status])


def is_loopback(host: str) -> bool:
    """True for addresses that only this machine has: 127.0.0.0/8 and ::1, also written as IPv4 in IPv6."""
    try:
        address = ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def respond(write: Callable[[bytes], None], key: bytes | None, local: bool) -> Steps:
    """The server's side. ``local`` is true for a peer on this machine, or a pipe."""
    told = yield PREAMBLE_BYTES
    if told[:5] != MAGIC or told[5] != VERSION or told[6] > ENCRYPTED or told[7] != 0:
        write(preamble(PLAIN, WRONG_PROTOCOL))
        raise ChannelError("the connection did not begin with the preamble of this protocol")
    if told[6] == PLAIN:
        if key is not None or not local:
            write(preamble(PLAIN, KEY_REQUIRED))
            raise ChannelError("a connection without the key was refused")
        write(preamble(PLAIN))
        return None
    if key is None:
        write(preamble(ENCRYPTED, NO_KEY))
        raise ChannelError("an encrypted connection was refused: this server has no key")
    (size,) = _length.unpack((yield _length.size))
    if size != HANDSHAKE_BYTES:
        raise ChannelError(f"a handshake message of {size} bytes")
    handshake = Handshake(key, told)
    reply = handshake.answer((yield HANDSHAKE_BYTES))
    write(preamble(ENCRYPTED) + _length.pack(len(reply)) + reply)
    return handshake


def initiate(write: Callable[[bytes], None], key: bytes | None) -> Steps:
    """The client's side."""
    handshake = None
    if key is None:
        write(preamble(PLAIN))
    else:
        own = preamble(ENCRYPTED)
        handshake = Handshake(key, own)
        first = handshake.first()
        write(own + _length.pack(len(first)) + first)
    told = yield PREAMBLE_BYTES
    if told[:5] != MAGIC:
        raise ChannelError("what answers there is not a Tilewright RPC server or tracker")
    if told[7] != ACCEPTED:
        raise ChannelError(_WHY.get(told[7], f"the server refused the connection with status {told[7]}"))
    if handshake is not None:
        (size,) = _length.unpack((yield _length.size))
        if size != HANDSHAKE_BYTES:
            raise ChannelError(f"a handshake message of {size} bytes")
        handshake.finish((yield HANDSHAKE_BYTES))
    return handshake


def _drive(stream: Stream, steps: Steps) -> Channel:
    """Runs one side to its end, waiting for each byte."""
    try:
        size = next(steps)
        while True:
            data = bytearray(size)
            at = 0
            while at < size:
                count = stream.read_some(memoryview(data)[at:])
                if count == 0:
                    raise ChannelClosed(
                        "the other side closed the connection in the handshake: it has another key, or is ending"
                    )
                at += count
            size = steps.send(bytes(data))
    except StopIteration as end:
        handshake: Handshake | None = end.value
    if handshake is None:
        return PlainChannel(stream)
    return EncryptedChannel(stream, handshake.sends, handshake.receives)


def open_channel(stream: Stream, key: bytes | None) -> Channel:
    """A channel over a new connection, as its client."""
    return _drive(stream, initiate(lambda data: stream.write_all([data]), key))


def accept_channel(stream: Stream, key: bytes | None, local: bool) -> Channel:
    """A channel over a connection that somebody else opened, as its server; waits for each byte."""
    return _drive(stream, respond(lambda data: stream.write_all([data]), key, local))
