"""A relocatable object of LLVM in memory: its sections, symbols and relocations."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from tilewright.runtime.elf import check_elf
from tilewright.runtime.failure import failure

_SYMBOLS, _RELOCATIONS, _ZEROS, _CONSTRUCTORS = 2, 4, 8, (14, 15, 16)
_WRITTEN, _LOADED, _RUN, _THREAD = 1, 2, 4, 0x400
_FIRST_RESERVED = 0xFF00
_FILE_SYMBOL = 4


class Place(NamedTuple):
    """A symbol; ``section`` is 0 for one that is defined elsewhere."""

    name: str
    is_global: bool
    is_weak: bool
    is_exported: bool
    kind: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    """A place in a section that an address is to be written to."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass
class Section:
    """A part that is loaded. ``use`` is read, run, written or zero."""

    index: int
    use: str
    size: int
    alignment: int
    content: bytes
    relocations: list[Relocation] = field(default_factory=list)


class RelocatableObject:
    """An object for one kind of machine; an error for what cannot be linked without a C compiler."""

    def __init__(self, content: bytes, machine: int) -> None:
        check_elf(content, "the object", any_machine=True)
        self.content = content
        if content[:5] != b"\x7fELF\x02" or struct.unpack_from("<HH", content, 16) != (1, machine):
            raise failure("ValueError", "the object cannot be linked here: it is code for another machine")
        headers = self._headers()
        self.sections = [
            section
            for index, header in enumerate(headers)
            if (section := self._section(index, header, self._text(headers, header[0]))) is not None
        ]
        self.symbols = [
            place for header in headers if header[1] == _SYMBOLS for place in self._places(headers, header)
        ]
        by_index = {section.index: section for section in self.sections}
        for header in headers:
            target = by_index.get(header[7])
            if header[1] == _RELOCATIONS and target is not None:
                target.relocations += [
                    Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)
                    for offset, info, addend in struct.iter_unpack(
                        "<QQq", content[header[4] : header[4] + header[5]]
                    )
                ]

    def _headers(self) -> list[tuple[int, ...]]:
        """Name, type, flags, address, offset, size, link, info, alignment and entry size of every section."""
        (start,) = struct.unpack_from("<Q", self.content, 40)
        (count,) = struct.unpack_from("<H", self.content, 60)
        return [struct.unpack_from("<IIQQQQIIQQ", self.content, start + 64 * index) for index in range(count)]

    def _text(self, headers: list[tuple[int, ...]], place: int, table: int | None = None) -> str:
        """A name in a table of names, by default in that of the sections."""
        if table is None:
            (table,) = struct.unpack_from("<H", self.content, 62)
        start = headers[table][4] + place
        return self.content[start : self.content.index(b"\0", start)].decode()

    def _section(self, index: int, header: tuple[int, ...], name: str) -> Section | None:
        _, kind, flags, _, offset, size, _, _, alignment, _ = header
        if not flags & _LOADED or name == ".eh_frame":  # which only exceptions need
            return None
        if flags & _THREAD or kind in _CONSTRUCTORS:
            raise failure(
                "ValueError",
                f"the object has a section {name}, which needs a C compiler to link",
            )
        if kind == _ZEROS:
            return Section(index, "zero", size, max(alignment, 1), b"")
        use = "run" if flags & _RUN else "written" if flags & _WRITTEN else "read"
        return Section(index, use, size, max(alignment, 1), self.content[offset : offset + size])

    def _places(self, headers: list[tuple[int, ...]], header: tuple[int, ...]) -> list[Place]:
        found = []
        for name, info, other, section, value, size in struct.iter_unpack(
            "<IBBHQQ", self.content[header[4] : header[4] + header[5]]
        ):
            binding, kind = info >> 4, info & 15
            text = self._text(headers, name, header[6])
            if section >= _FIRST_RESERVED:
                if kind != _FILE_SYMBOL:
                    raise failure(
                        "ValueError", f"the symbol {text} is in no section; link it with a C compiler"
                    )
                section = 0
            is_global = binding != 0
            found.append(
                Place(text, is_global, binding == 2, is_global and not other & 3, kind, section, value, size)
            )
        return found
