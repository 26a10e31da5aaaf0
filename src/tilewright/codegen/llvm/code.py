"""Machine code as data, with what is needed to link it, to describe it and to show where it came from."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass

from tilewright.codegen.llvm.machine import Machine, machine_for, parse_bitcode
from tilewright.codegen.program import LoopProgram
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target

_MAGIC = b"TWLLVM04"


@dataclass(frozen=True)
class LLVMCode:
    """The code of some functions. ``declared`` are the symbols that it expects to find, ``slots`` those through which
    it calls packed functions; ``bitcode`` is the optimised LLVM IR, ``text`` the IR before that, and ``program`` the
    loops that both were made from."""

    function_names: tuple[str, ...]
    features: tuple[str, ...]
    declared: tuple[str, ...]
    slots: tuple[str, ...]
    object_code: bytes
    bitcode: bytes
    text: str
    program: LoopProgram

    def to_bytes(self) -> bytes:
        """The code as one block, with a checksum."""
        head = json.dumps(
            {
                "functions": self.function_names,
                "features": self.features,
                "declared": self.declared,
                "slots": self.slots,
            }
        ).encode()
        sources = zlib.compress(json.dumps([self.text, self.program.json]).encode(), 1)
        parts = (head, self.object_code, zlib.compress(self.bitcode, 1), sources)
        body = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
        return _MAGIC + struct.pack("<I", zlib.crc32(body)) + body

    @staticmethod
    def from_bytes(block: bytes) -> LLVMCode:
        """The reverse; an error where the block is damaged."""
        start = len(_MAGIC) + 4
        if block[: len(_MAGIC)] != _MAGIC or len(block) < start:
            raise TilewrightError("not compiled code of this version")
        body = memoryview(block)[start:]
        if zlib.crc32(body) != struct.unpack_from("<I", block, len(_MAGIC))[0]:
            raise TilewrightError("the compiled code is damaged")
        parts: list[bytes] = []
        at = 0
        while at < len(body):
            (size,) = struct.unpack_from("<Q", body, at)
            parts.append(bytes(body[at + 8 : at + 8 + size]))
            at += 8 + size
        head = json.loads(parts[0])
        text, loops = json.loads(zlib.decompress(parts[3]))
        return LLVMCode(
            tuple(head["functions"]),
            tuple(head["features"]),
            tuple(head["declared"]),
            tuple(head["slots"]),
            parts[1],
            zlib.decompress(parts[2]),
            text,
            LoopProgram(json=loops),
        )

    def stages(self, target: Target) -> dict[str, str]:
        """The LLVM IR as it was written, after LLVM's optimisation, and the assembly."""
        return {
            "unoptimized.ll": self.text,
            "optimized.ll": self.llvm_ir(),
            "s": self.assembly(machine_for(target)),
        }

    def assembly(self, machine: Machine) -> str:
        """The machine code as text."""
        return str(machine.llvm_target_machine.emit_assembly(parse_bitcode(self.bitcode)))

    def llvm_ir(self) -> str:
        """The optimised LLVM IR."""
        return str(parse_bitcode(self.bitcode))
