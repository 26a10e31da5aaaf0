"""Checks of an object file or shared library before anything maps or links it.

The system's loader and LLVM trust what they read; a file that was cut short or belongs to another machine must be
refused before they see it. Files that are not ELF are not checked.
"""

from __future__ import annotations

import platform
import struct

from tilewright.runtime.failure import failure

_MAGIC = b"\x7fELF"
_MACHINES = {
    3: "x86",
    8: "MIPS",
    21: "PowerPC64",
    40: "ARM",
    62: "x86_64",
    164: "Hexagon",
    183: "aarch64",
    243: "RISC-V",
}
_HOST_MACHINES = {
    "x86_64": 62,
    "amd64": 62,
    "aarch64": 183,
    "arm64": 183,
    "i686": 3,
    "i386": 3,
    "armv7l": 40,
    "riscv64": 243,
}
_NO_BITS = 8  # a section type without content in the file


def machine_of(content: bytes | memoryview) -> str | None:
    """The kind of processor that an ELF file is for; None for a file that is something else."""
    if content[:4] != _MAGIC or len(content) < 20:
        return None
    number = struct.unpack_from("<H", content, 18)[0]
    return _MACHINES.get(number, f"machine {number}")


def check_elf(content: bytes | memoryview, what: str, any_machine: bool = False) -> None:
    """An error for an ELF file that is cut short, inconsistent or for another machine (unless any is accepted);
    ``what`` names it."""
    if content[:4] != _MAGIC:
        return
    if len(content) < 64 or content[4] not in (1, 2) or content[5] != 1:
        raise failure(
            "ValueError", f"{what} is damaged: its ELF header is not complete, or not little-endian"
        )
    wide = content[4] == 2
    machine = struct.unpack_from("<H", content, 18)[0]
    host = _HOST_MACHINES.get(platform.machine().lower())
    if not any_machine and host is not None and machine != host:
        made_for = _MACHINES.get(machine, f"machine {machine}")
        raise failure("ValueError", f"{what} is code for {made_for}; this machine is {_MACHINES[host]}")
    head = struct.unpack_from("<QQIHHHHHH" if wide else "<IIIHHHHHH", content, 32 if wide else 28)
    program_offset, section_offset, _, _, program_size, programs, section_size, sections, _ = head
    _check_table(content, program_offset, program_size, programs, 56 if wide else 32, what)
    _check_table(content, section_offset, section_size, sections, 64 if wide else 40, what)
    for index in range(sections):
        at = section_offset + index * section_size
        kind = struct.unpack_from("<I", content, at + 4)[0]
        offset, size = (
            struct.unpack_from("<QQ", content, at + 24)
            if wide
            else struct.unpack_from("<II", content, at + 16)
        )
        if kind not in (0, _NO_BITS) and offset + size > len(content):
            raise failure("ValueError", f"{what} is damaged: section {index} ends outside the file")


def _check_table(
    content: bytes | memoryview, offset: int, entry: int, count: int, expected: int, what: str
) -> None:
    """A table of headers must lie within the file and have entries of the standard size."""
    if count and (entry != expected or offset < 52 or offset + entry * count > len(content)):
        raise failure("ValueError", f"{what} is damaged: a table of its ELF header lies outside the file")
