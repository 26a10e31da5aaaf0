"""A compiled unit: code as bytes, with what is needed to link it, describe it and show its origin."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.support.errors import TilewrightError

_MAGIC = b"TWUNIT02"


@dataclass(frozen=True)
class CompiledUnit:
    """The code of some functions. ``declared`` are the symbols that it expects to find; ``bitcode`` is the optimised
    LLVM IR, ``text`` the IR before that, and ``loop_program`` prints the loops."""

    function_names: tuple[str, ...]
    features: tuple[str, ...]
    declared: tuple[str, ...]
    object_code: bytes
    bitcode: bytes
    text: str
    loop_program: Callable[[], str]

    def to_bytes(self) -> bytes:
        """The unit as one block, with a checksum."""
        head = json.dumps(
            {"functions": self.function_names, "features": self.features, "declared": self.declared}
        ).encode()
        sources = zlib.compress(json.dumps([self.text, self.loop_program()]).encode(), 1)
        parts = (head, self.object_code, zlib.compress(self.bitcode, 1), sources)
        body = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
        return _MAGIC + struct.pack("<I", zlib.crc32(body)) + body

    @staticmethod
    def from_bytes(block: bytes) -> CompiledUnit:
        """The reverse; an error where the block is damaged."""
        start = len(_MAGIC) + 4
        if block[: len(_MAGIC)] != _MAGIC or len(block) < start:
            raise TilewrightError("not compiled code")
        body = block[start:]
        if zlib.crc32(body) != struct.unpack_from("<I", block, len(_MAGIC))[0]:
            raise TilewrightError("the compiled code is damaged")
        parts: list[bytes] = []
        at = 0
        while at < len(body):
            (size,) = struct.unpack_from("<Q", body, at)
            parts.append(body[at + 8 : at + 8 + size])
            at += 8 + size
        head = json.loads(parts[0])
        return _StoredUnit(
            tuple(head["functions"]),
            tuple(head["features"]),
            tuple(head["declared"]),
            parts[1],
            parts[2],
            parts[3],
        ).unit()


@dataclass(frozen=True)
class _StoredUnit:
    """The parts of a block; sources are unpacked on demand."""

    function_names: tuple[str, ...]
    features: tuple[str, ...]
    declared: tuple[str, ...]
    object_code: bytes
    bitcode: bytes
    sources: bytes

    def unit(self) -> CompiledUnit:
        text, loops = json.loads(zlib.decompress(self.sources))
        return CompiledUnit(
            self.function_names,
            self.features,
            self.declared,
            self.object_code,
            zlib.decompress(self.bitcode),
            text,
            lambda: str(loops),
        )
