"""The handshake follows the Noise specification, and lets through nothing that was not said by the other side."""

import re
from pathlib import Path

import pytest

from tilewright.rpc.failures import ChannelError
from tilewright.rpc.handshake import preamble
from tilewright.rpc.noise import Handshake

pytest.importorskip("cryptography")

KEY = b"\3" * 32


def shake(client_key=KEY, server_key=KEY):
    client = Handshake(client_key, preamble(1), b"\1" * 32)
    server = Handshake(server_key, preamble(1), b"\2" * 32)
    first = client.first()
    second = server.answer(first)
    client.finish(second)
    return client, server, first, second


def test_vectors_of_the_specification():
    """The vectors in docs/rpc-protocol.md, which another implementation of Noise computes as well."""
    text = (Path(__file__).parents[2] / "docs" / "rpc-protocol.md").read_text()
    wanted = [bytes.fromhex(line) for line in re.findall(r"^  ([0-9a-f]+)$", text, re.M)]
    client, server, first, second = shake()
    records = [client.sends.encrypt(b"hello"), client.sends.encrypt(b"hello"), server.sends.encrypt(b"hello")]
    assert wanted == [preamble(1), first, second, *records]


def test_wrong_key_is_refused_by_the_server():
    with pytest.raises(ChannelError, match="another key"):
        shake(server_key=b"\4" * 32)


def test_a_server_without_the_key_cannot_answer():
    """The second message proves the key to the client."""
    client = Handshake(KEY, preamble(1))
    client.first()
    forger = Handshake(b"\4" * 32, preamble(1))
    stranger = Handshake(b"\4" * 32, preamble(1))
    with pytest.raises(ChannelError):
        client.finish(forger.answer(stranger.first()))


def test_each_bit_of_the_handshake_counts():
    client, _, first, _ = shake()
    for place in range(len(first)):
        changed = bytearray(first)
        changed[place] ^= 1
        with pytest.raises(ChannelError):
            Handshake(KEY, preamble(1)).answer(bytes(changed))


def test_another_preamble_is_another_handshake():
    """What was agreed before the handshake is part of it: nobody changes it on the way."""
    client = Handshake(KEY, preamble(1))
    with pytest.raises(ChannelError):
        Handshake(KEY, preamble(0)).answer(client.first())


def test_records_are_refused_when_repeated_or_out_of_order():
    client, server, *_ = shake()
    one, two = client.sends.encrypt(b"one"), client.sends.encrypt(b"two")
    assert server.receives.decrypt(one) == b"one"
    with pytest.raises(ChannelError):
        server.receives.decrypt(one)
    client, server, *_ = shake()
    with pytest.raises(ChannelError):
        server.receives.decrypt(two)


def test_directions_have_different_keys():
    client, _, *_ = shake()
    with pytest.raises(ChannelError):
        client.receives.decrypt(client.sends.encrypt(b"mirrored"))


def test_a_public_key_of_small_order_is_refused():
    """X25519 of such a key is zero for everybody."""
    client = Handshake(KEY, preamble(1))
    client.first()
    with pytest.raises(ChannelError, match="not usable"):
        client.finish(bytes(48))
