"""The encrypted channel's handshake and ciphers: ``Noise_NNpsk0_25519_ChaChaPoly_SHA256``.

Follows the Noise Protocol Framework, revision 34, name for name: ``SymmetricState`` and ``CipherState`` are its
objects, and the comments give its words. The primitives come from the package ``cryptography`` and from the standard
library. See ``docs/rpc-protocol.md``.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Any

from tilewright.rpc.failures import ChannelError
from tilewright.support.errors import RPCError

PROTOCOL_NAME = b"Noise_NNpsk0_25519_ChaChaPoly_SHA256"
KEY_BYTES = 32
TAG_BYTES = 16
HANDSHAKE_BYTES = KEY_BYTES + TAG_BYTES
MOST_RECORD = 65535
MOST_PLAINTEXT = MOST_RECORD - TAG_BYTES
_REFUSED = "the connection was refused: another key, or data that was changed on its way"
_LAST_NONCE = (1 << 64) - 2

_nonce = struct.Struct("<4xQ").pack


def _primitives() -> tuple[Any, Any, Any]:
    """X25519's two classes and ChaCha20-Poly1305, from the optional package."""
    try:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError:
        raise RPCError(
            "an encrypted connection needs the package cryptography: pip install tilewright[rpc]"
        ) from None
    return X25519PrivateKey, X25519PublicKey, ChaCha20Poly1305


def _hkdf(chaining_key: bytes, material: bytes, outputs: int) -> list[bytes]:
    """HKDF(chaining_key, input_key_material, num_outputs)."""
    secret = hmac.digest(chaining_key, material, "sha256")
    made: list[bytes] = []
    last = b""
    for number in range(1, outputs + 1):
        last = hmac.digest(secret, last + bytes([number]), "sha256")
        made.append(last)
    return made


class CipherState:
    """A key and the counter that is its nonce."""

    __slots__ = ("_decrypt", "_decrypt_into", "_encrypt", "_encrypt_into", "_nonce")

    def __init__(self, key: bytes) -> None:
        cipher = _primitives()[2](key)
        self._encrypt, self._decrypt = cipher.encrypt, cipher.decrypt
        # Not in every version of the package.
        self._encrypt_into = getattr(cipher, "encrypt_into", None)
        self._decrypt_into = getattr(cipher, "decrypt_into", None)
        self._nonce = 0

    def _next(self) -> bytes:
        number = self._nonce
        if number > _LAST_NONCE:
            raise ChannelError("the encrypted channel has used all its nonces; open a new one")
        self._nonce = number + 1
        return _nonce(number)

    def encrypt(self, plaintext: Any, associated: bytes = b"") -> bytes:
        """EncryptWithAd(ad, plaintext)."""
        sealed: bytes = self._encrypt(self._next(), plaintext, associated)
        return sealed

    def decrypt(self, sealed: Any, associated: bytes = b"") -> bytes:
        """DecryptWithAd(ad, ciphertext); an error for anything but the next thing that the other side encrypted."""
        try:
            plaintext: bytes = self._decrypt(self._next(), sealed, associated)
        except Exception as error:
            raise ChannelError(_REFUSED) from error
        return plaintext

    def encrypt_into(self, plaintext: Any, target: memoryview) -> None:
        """Encrypts to a buffer of the right size; without a copy where the package can."""
        if self._encrypt_into is not None:
            self._encrypt_into(self._next(), plaintext, b"", target)
        else:
            target[:] = self.encrypt(plaintext)

    def decrypt_into(self, sealed: Any, target: memoryview) -> None:
        """Decrypts to a buffer of the right size; without a copy where the package can."""
        if self._decrypt_into is None:
            target[:] = self.decrypt(sealed)
            return
        try:
            self._decrypt_into(self._next(), sealed, b"", target)
        except Exception as error:
            raise ChannelError(_REFUSED) from error


class _SymmetricState:
    """Noise's SymmetricState with its CipherState."""

    def __init__(self, prologue: bytes) -> None:
        self.hash = hashlib.sha256(PROTOCOL_NAME).digest()  # the name is longer than a hash
        self.chaining_key = self.hash
        self.cipher: CipherState | None = None
        self.mix_hash(prologue)

    def mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.sha256(self.hash + data).digest()

    def mix_key(self, material: bytes) -> None:
        self.chaining_key, key = _hkdf(self.chaining_key, material, 2)
        self.cipher = CipherState(key)

    def mix_key_and_hash(self, material: bytes) -> None:
        self.chaining_key, mixed, key = _hkdf(self.chaining_key, material, 3)
        self.mix_hash(mixed)
        self.cipher = CipherState(key)

    def seal(self, payload: bytes) -> bytes:
        """EncryptAndHash(plaintext)."""
        assert self.cipher is not None
        sealed = self.cipher.encrypt(payload, self.hash)
        self.mix_hash(sealed)
        return sealed

    def open(self, sealed: bytes) -> bytes:
        """DecryptAndHash(ciphertext)."""
        assert self.cipher is not None
        payload = self.cipher.decrypt(sealed, self.hash)
        self.mix_hash(sealed)
        return payload

    def split(self) -> tuple[CipherState, CipherState]:
        first, second = _hkdf(self.chaining_key, b"", 2)
        return CipherState(first), CipherState(second)


class Handshake:
    """One side of the handshake. The initiator calls ``first``, the responder ``answer`` with what it said, and the
    initiator ``finish`` with the answer; both then have the ciphers ``sends`` and ``receives``."""

    sends: CipherState
    receives: CipherState

    def __init__(self, key: bytes, prologue: bytes, ephemeral: bytes | None = None) -> None:
        """``ephemeral`` is the private key of this one handshake, a random one unless a test gives it."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"a pre-shared key has {KEY_BYTES} bytes, not {len(key)}")
        private, self._public, _ = _primitives()
        self._key = key
        self._state = _SymmetricState(prologue)
        self._ephemeral = private.from_private_bytes(ephemeral) if ephemeral else private.generate()

    def _own_public(self) -> bytes:
        public: bytes = self._ephemeral.public_key().public_bytes_raw()
        return public

    def _mix_public(self, public: bytes) -> None:
        """The token e, in a pattern with a pre-shared key."""
        self._state.mix_hash(public)
        self._state.mix_key(public)

    def _mix_shared(self, other: bytes) -> None:
        """The token ee."""
        try:
            shared = self._ephemeral.exchange(self._public.from_public_bytes(other))
        except ValueError as error:  # the result is all zero
            raise ChannelError("the other side sent a public key that is not usable") from error
        self._state.mix_key(shared)

    def first(self) -> bytes:
        """-> psk, e"""
        self._state.mix_key_and_hash(self._key)
        public = self._own_public()
        self._mix_public(public)
        return public + self._state.seal(b"")

    def answer(self, message: bytes) -> bytes:
        """<- e, ee; an error before any Diffie-Hellman operation if the initiator has another key."""
        _require_length(message)
        self._state.mix_key_and_hash(self._key)
        other = message[:KEY_BYTES]
        self._mix_public(other)
        self._state.open(message[KEY_BYTES:])
        public = self._own_public()
        self._mix_public(public)
        self._mix_shared(other)
        reply = public + self._state.seal(b"")
        self.receives, self.sends = self._state.split()
        return reply

    def finish(self, message: bytes) -> None:
        """Reads the responder's answer, which proves that it has the key."""
        _require_length(message)
        other = message[:KEY_BYTES]
        self._mix_public(other)
        self._mix_shared(other)
        self._state.open(message[KEY_BYTES:])
        self.sends, self.receives = self._state.split()


def _require_length(message: bytes) -> None:
    if len(message) != HANDSHAKE_BYTES:
        raise ChannelError(f"a handshake message has {HANDSHAKE_BYTES} bytes, not {len(message)}")
