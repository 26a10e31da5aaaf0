"""Data of a shared library by symbol, read from the file: none of its code runs, and it may be for any machine."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tilewright.runtime.failure import failure

_DYNAMIC_SYMBOLS = 11
_LOADED = 1


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int


class ElfSymbols:
    """The dynamic symbols of a 64-bit ELF file; ``check_elf`` has looked at the file's tables before."""

    def __init__(self, content: bytes | memoryview, what: str) -> None:
        self._content = memoryview(content)
        self._what = what
        try:
            self._places = dict(self._symbols())
        except struct.error as error:
            raise failure("ValueError", f"{what} is damaged: its symbols are not readable") from error

    def bytes_of(self, name: str, size: int | None = None) -> memoryview | None:
        """The bytes at a symbol: as many as the symbol has, or ``size``; None if there is no such symbol."""
        found = self._places.get(name)
        if found is None:
            return None
        address, own_size = found
        length = own_size if size is None else size
        if length > len(self._content):
            raise failure("ValueError", f"{self._what} is damaged: {name} is larger than the file")
        for start, offset, stored in self._segments():
            if start <= address and address + length <= start + stored:
                return self._content[offset + address - start :][:length]
        raise failure("ValueError", f"{self._what} is damaged: {name} lies outside the file")

    def text_of(self, name: str) -> str:
        """The zero-terminated text at a symbol; empty if there is no such symbol."""
        found = self.bytes_of(name)
        return "" if found is None else bytes(found).split(b"\0", 1)[0].decode(errors="replace")

    def _sections(self) -> list[_Section]:
        (start,) = struct.unpack_from("<Q", self._content, 40)
        entry, count = struct.unpack_from("<HH", self._content, 58)
        return [
            _Section(*struct.unpack_from("<4xI16xQQI", self._content, start + index * entry))
            for index in range(count)
        ]

    def _segments(self) -> Iterator[tuple[int, int, int]]:
        """Address, place in the file and stored bytes of each part that is loaded."""
        (start,) = struct.unpack_from("<Q", self._content, 32)
        entry, count = struct.unpack_from("<HH", self._content, 54)
        for index in range(count):
            kind, offset, address, size = struct.unpack_from(
                "<I4xQQ8xQ", self._content, start + index * entry
            )
            if kind == _LOADED and offset + size <= len(self._content):
                yield address, offset, size

    def _symbols(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Name, address and size of every symbol that is defined."""
        sections = self._sections()
        for section in sections:
            if section.kind != _DYNAMIC_SYMBOLS or section.link >= len(sections):
                continue
            names = sections[section.link]
            text = bytes(self._content[names.offset : names.offset + names.size])
            for at in range(section.offset, section.offset + section.size - 23, 24):
                name, defined_in, address, size = struct.unpack_from("<I2xHQQ", self._content, at)
                if defined_in and name < len(text):
                    yield text[name : text.find(b"\0", name)].decode(errors="replace"), (address, size)
