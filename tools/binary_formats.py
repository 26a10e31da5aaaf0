"""What a shared library needs: its machine, the libraries and the versions of the system that it asks for.

Read from the file itself, for ELF, Mach-O and PE, so that a library can be checked on a machine that cannot load it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Binary:
    """A shared library: its format, its machine, the libraries that it loads, the versions of symbols that it needs
    (``GLIBC_2.17``), the oldest system that it is for, and whether it is signed."""

    format: str
    machine: str
    needed: tuple[str, ...]
    versions: tuple[str, ...] = ()
    oldest_system: tuple[int, int] | None = None
    is_signed: bool = False
    exports: tuple[str, ...] = field(default=(), repr=False)


def read_binary(content: bytes) -> Binary:
    """The needs of a library; ``ValueError`` for what is none."""
    if content[:4] == b"\x7fELF":
        return _read_elf(content)
    if content[:4] == b"\xcf\xfa\xed\xfe":
        return _read_macho(content)
    if content[:2] == b"MZ":
        return _read_pe(content)
    raise ValueError("not an ELF, Mach-O or PE file")


def _text(content: bytes, at: int) -> str:
    return content[at : content.index(b"\0", at)].decode()


_ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
_DYNAMIC, _VERSION_NEEDS, _DYNAMIC_SYMBOLS = 6, 0x6FFFFFFE, 11


def _read_elf(content: bytes) -> Binary:
    machine = struct.unpack_from("<H", content, 18)[0]
    table, (size, count) = (
        struct.unpack_from("<Q", content, 40)[0],
        struct.unpack_from("<HH", content, 58),
    )
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, table + size * number) for number in range(count)]
    needed: list[str] = []
    versions: list[str] = []
    exports: list[str] = []
    for _, kind, _, _, offset, length, link, info, _, _ in sections:
        strings = sections[link][4] if link < count else 0
        if kind == _DYNAMIC:
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<QQ", content, at)
                if tag == 1:
                    needed.append(_text(content, strings + value))
        elif kind == _VERSION_NEEDS:
            at = offset
            for _ in range(info):
                _, parts, _, first, following = struct.unpack_from("<HHIII", content, at)
                part = at + first
                for _ in range(parts):
                    _, _, _, name, after = struct.unpack_from("<IHHII", content, part)
                    versions.append(_text(content, strings + name))
                    part += after
                at += following
        elif kind == _DYNAMIC_SYMBOLS:
            for at in range(offset, offset + length, 24):
                name, binding, _, section = struct.unpack_from("<IBBH", content, at)
                if section and binding >> 4 == 1:
                    exports.append(_text(content, strings + name))
    return Binary(
        "ELF",
        _ELF_MACHINES.get(machine, str(machine)),
        tuple(needed),
        tuple(versions),
        exports=tuple(exports),
    )


_MACHO_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_LINKER_NAMES = ("_mh_dylib_header", "__dso_handle")
"""The linker defines them in every library."""
_LOAD_DYLIB, _SYMBOLS, _BUILD_VERSION, _MIN_MACOS, _SIGNATURE = 0xC, 0x2, 0x32, 0x24, 0x1D


def _read_macho(content: bytes) -> Binary:
    machine, _, _, count = struct.unpack_from("<IIII", content, 4)
    needed: list[str] = []
    exports: list[str] = []
    oldest = None
    is_signed = False
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", content, at)
        if command & 0x7FFFFFFF == _LOAD_DYLIB:
            needed.append(_text(content, at + struct.unpack_from("<I", content, at + 8)[0]))
        elif command in (_BUILD_VERSION, _MIN_MACOS):
            packed = struct.unpack_from("<I", content, at + (12 if command == _BUILD_VERSION else 8))[0]
            oldest = (packed >> 16, packed >> 8 & 0xFF)
        elif command == _SIGNATURE:
            is_signed = True
        elif command == _SYMBOLS:
            symbols, number, strings, _ = struct.unpack_from("<IIII", content, at + 8)
            for place in range(symbols, symbols + 16 * number, 16):
                name, kind, _, _, _ = struct.unpack_from("<IBBHQ", content, place)
                if kind & 0x0F == 0x0F:  # external, and in a section of this file
                    exports.append(_text(content, strings + name).removeprefix("_"))
        at += size
    return Binary(
        "Mach-O",
        _MACHO_MACHINES.get(machine, hex(machine)),
        tuple(needed),
        oldest_system=oldest,
        is_signed=is_signed,
        exports=tuple(one for one in exports if one not in _LINKER_NAMES),
    )


_PE_MACHINES = {0x8664: "x86_64", 0xAA64: "arm64"}


def _read_pe(content: bytes) -> Binary:
    header = struct.unpack_from("<I", content, 0x3C)[0]
    machine, count = struct.unpack_from("<HH", content, header + 4)
    optional = header + 24
    sections_at = optional + struct.unpack_from("<H", content, header + 20)[0]
    oldest = struct.unpack_from("<HH", content, optional + 48)
    sections = [struct.unpack_from("<8sIIII", content, sections_at + 40 * number) for number in range(count)]

    def offset(address: int) -> int:
        for _, size, start, stored, place in sections:
            if start <= address < start + max(size, stored):
                return int(address - start + place)
        raise ValueError(f"address {address:#x} is in no section")

    exports_at, _, imports_at, _ = struct.unpack_from("<IIII", content, optional + 112)
    needed, exports = [], []
    at = offset(imports_at) if imports_at else 0
    while at and any(content[at : at + 20]):
        needed.append(_text(content, offset(struct.unpack_from("<I", content, at + 12)[0])))
        at += 20
    if exports_at:
        at = offset(exports_at)
        number, names_at = (
            struct.unpack_from("<I", content, at + 24)[0],
            struct.unpack_from("<I", content, at + 32)[0],
        )
        names = offset(names_at)
        exports = [
            _text(content, offset(struct.unpack_from("<I", content, names + 4 * one)[0]))
            for one in range(number)
        ]
    return Binary(
        "PE",
        _PE_MACHINES.get(machine, hex(machine)),
        tuple(needed),
        oldest_system=(oldest[0], oldest[1]),
        exports=tuple(exports),
    )
