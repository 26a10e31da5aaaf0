"""The C server's cryptography: the vectors of the RFCs and of the protocol, and random cases against a library."""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import random
import shutil
import subprocess

import pytest

from tilewright.support.cbuild import SOURCES

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The four files as a library."""
    output = tmp_path_factory.mktemp("primitives") / "primitives.so"
    names = ("sha256", "chacha20_poly1305", "x25519", "noise")
    sources = [str(SOURCES / "rpc" / f"{name}.c") for name in names]
    subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", *sources, "-o", str(output)], check=True)
    return ctypes.CDLL(str(output))


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", "").replace("\n", ""))


def x25519(library: ctypes.CDLL, scalar: bytes, point: bytes) -> bytes:
    out = ctypes.create_string_buffer(32)
    library.x25519(out, scalar, point)
    return out.raw


@pytest.mark.parametrize(
    ("scalar", "point", "result"),
    [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ],
)
def test_x25519_of_rfc_7748(library: ctypes.CDLL, scalar: str, point: str, result: str) -> None:
    """Section 5.2: two vectors; the second has a point whose top bit is to be ignored."""
    assert x25519(library, unhex(scalar), unhex(point)).hex() == result


def test_x25519_iterated(library: ctypes.CDLL) -> None:
    """Section 5.2: the result of one step, and of a hundred, each of which has the last result as its key."""
    exchange = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.x25519")
    key = point = b"\x09" + bytes(31)
    for step in range(100):
        key, point = x25519(library, key, point), key
        if step == 0:
            assert key.hex() == "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
    wanted = point_there = b"\x09" + bytes(31)
    for _ in range(100):
        private = exchange.X25519PrivateKey.from_private_bytes(wanted)
        made = private.exchange(exchange.X25519PublicKey.from_public_bytes(point_there))
        wanted, point_there = made, wanted
    assert key == wanted


def seal(library: ctypes.CDLL, key: bytes, nonce: bytes, associated: bytes, plain: bytes) -> bytes:
    data = ctypes.create_string_buffer(plain, len(plain) + 1)
    tag = ctypes.create_string_buffer(16)
    size = ctypes.c_size_t
    library.cipher_seal(key, nonce, associated, size(len(associated)), data, size(len(plain)), tag)
    return data.raw[: len(plain)] + tag.raw


def open_sealed(
    library: ctypes.CDLL, key: bytes, nonce: bytes, associated: bytes, sealed: bytes
) -> bytes | None:
    data = ctypes.create_string_buffer(sealed[:-16], len(sealed))
    size = ctypes.c_size_t
    good = library.cipher_open(
        key, nonce, associated, size(len(associated)), data, size(len(sealed) - 16), sealed[-16:]
    )
    return data.raw[: len(sealed) - 16] if good else None


def test_cipher_of_rfc_8439(library: ctypes.CDLL) -> None:
    """Section 2.8.2: the sunscreen."""
    key = bytes(range(0x80, 0xA0))
    nonce = unhex("070000004041424344454647")
    associated = unhex("50515253c0c1c2c3c4c5c6c7")
    plain = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it."
    )
    sealed = seal(library, key, nonce, associated, plain)
    assert sealed[:16].hex() == "d31a8d34648e60db7b86afbc53ef7ec2"
    assert sealed[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691"
    assert open_sealed(library, key, nonce, associated, sealed) == plain


def test_poly1305_of_rfc_8439(library: ctypes.CDLL) -> None:
    """Section 2.5.2."""
    key = unhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b")
    text = b"Cryptographic Forum Research Group"
    tag = ctypes.create_string_buffer(16)
    library.poly1305(key, text, ctypes.c_size_t(len(text)), tag)
    assert tag.raw.hex() == "a8061dc1305136c6c22b8baf0c0127a9"


def test_cipher_against_a_library(library: ctypes.CDLL) -> None:
    """All sizes around blocks; one changed bit anywhere is refused and leaves the data as it was."""
    ciphers = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    chance = random.Random(0)
    for size in [*range(70), 127, 128, 255, 256, 257, 1000, 65519]:
        key, nonce, associated, plain = (chance.randbytes(count) for count in (32, 12, size % 40, size))
        sealed = seal(library, key, nonce, associated, plain)
        assert sealed == ciphers.ChaCha20Poly1305(key).encrypt(nonce, plain, associated), size
        assert open_sealed(library, key, nonce, associated, sealed) == plain
        changed = bytearray(sealed)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        assert open_sealed(library, key, nonce, associated, bytes(changed)) is None
    # The authenticator's carries: keys and blocks of ones.
    for key in (b"\xff" * 32, b"\x00" * 32):
        sealed = seal(library, key, b"\xff" * 12, b"\xff" * 48, b"\xff" * 96)
        assert sealed == ciphers.ChaCha20Poly1305(key).encrypt(b"\xff" * 12, b"\xff" * 96, b"\xff" * 48)


def test_hashes(library: ctypes.CDLL) -> None:
    """SHA-256 by way of HMAC, for all sizes around blocks and keys longer than one."""
    chance = random.Random(1)
    for size in [*range(130), 1000]:
        key, data = chance.randbytes(1 + size % 100), chance.randbytes(size)
        out = ctypes.create_string_buffer(32)
        library.hmac_sha256(key, ctypes.c_size_t(len(key)), data, ctypes.c_size_t(size), out)
        assert out.raw == hmac.digest(key, data, hashlib.sha256)


class NoiseCipher(ctypes.Structure):
    """As in noise.h."""

    _fields_ = (("key", ctypes.c_uint8 * 32), ("counter", ctypes.c_uint64))


def respond(
    library: ctypes.CDLL, key: bytes, message: bytes
) -> tuple[bytes, NoiseCipher, NoiseCipher] | None:
    prologue, ephemeral = unhex("5457525043010100"), b"\x02" * 32
    answer, receives, sends = ctypes.create_string_buffer(48), NoiseCipher(), NoiseCipher()
    library.noise_respond.restype = ctypes.c_bool
    good = library.noise_respond(
        key,
        prologue,
        ctypes.c_size_t(8),
        ephemeral,
        message,
        answer,
        ctypes.byref(receives),
        ctypes.byref(sends),
    )
    return (answer.raw, receives, sends) if good else None


FIRST = unhex(
    "a4e09292b651c278b9772c569f5fa9bb13d906b46ab68c9df9dc2b4409f8a209d1055858d84393af478f1ef470777cde"
)


def test_handshake_of_the_protocol(library: ctypes.CDLL) -> None:
    """The vectors of docs/rpc-protocol.md, section 6: the answer, and the first record of each side."""
    made = respond(library, b"\x03" * 32, FIRST)
    assert made is not None
    answer, receives, sends = made
    assert answer.hex() == (
        "ce8d3ad1ccb633ec7b70c17814a5c76ecd029685050d344745ba05870e587d59a50a19029cab3d6614eb3aeba391fee0"
    )
    nonce = bytes(12)
    assert open_sealed(
        library, bytes(receives.key), nonce, b"", unhex("892f719e02231f28f33086bbb6fb5fd754b97500ab")
    ) == (b"hello")
    assert (
        seal(library, bytes(sends.key), nonce, b"", b"hello").hex()
        == "9403f4edaaf34e6bf847aadf9d038f736dd43bb079"
    )


def test_handshake_refuses(library: ctypes.CDLL) -> None:
    """Another key, any changed byte, and a public key of small order."""
    assert respond(library, b"\x04" * 32, FIRST) is None
    for place in range(0, 48, 5):
        changed = bytearray(FIRST)
        changed[place] ^= 1
        assert respond(library, b"\x03" * 32, bytes(changed)) is None


class NoiseInitiator(ctypes.Structure):
    """What the initiator keeps until the answer."""

    _fields_ = [("bytes", ctypes.c_uint8 * 96)]


def test_the_initiator_of_the_protocol(library: ctypes.CDLL) -> None:
    """The same vectors from the other side: the first message, what it makes of the answer, and of a changed one."""
    prologue, size = unhex("5457525043010100"), ctypes.c_size_t(8)
    library.noise_initiate.restype = library.noise_finish.restype = ctypes.c_bool
    made = respond(library, b"\x03" * 32, FIRST)
    assert made is not None
    answer, receives, sends = made
    for changes in (False, True):
        initiator, message = NoiseInitiator(), ctypes.create_string_buffer(48)
        assert library.noise_initiate(
            ctypes.byref(initiator), b"\x03" * 32, prologue, size, b"\x01" * 32, message
        )
        assert message.raw == FIRST
        told = bytes([answer[0] ^ changes]) + answer[1:]
        mine, theirs = NoiseCipher(), NoiseCipher()
        good = library.noise_finish(ctypes.byref(initiator), told, ctypes.byref(mine), ctypes.byref(theirs))
        assert good is not changes
        assert bytes(initiator.bytes) == bytes(96)
        if good:
            assert bytes(mine.key) == bytes(receives.key) and bytes(theirs.key) == bytes(sends.key)
