"""Links LLVM's objects into a shared library for x86-64 Linux, where there is no C compiler to do it.

It supports what those objects need and rejects the rest: code and data, calls and references between objects and to
symbols that the process provides (the runtime's and the C library's). Unlike a library that a C compiler linked, the
result has no runtime inside: whoever loads it has the runtime's symbols, as Python does, and programs that link the
runtime library.

The file is laid out as it is in memory, so that every address is also the place in the file::

    headers, dynamic symbols, relocations, read-only data      a segment that is read
    code, then a stub for each external function               a segment that is run
    data, addresses of external symbols, the dynamic section   a segment that is written
    the section headers, for tools
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.runtime.elf_object import Place, RelocatableObject, Relocation, Section
from tilewright.runtime.failure import failure

_PAGE = 0x1000
_X86_64 = 62

# The relocations of objects, by how the place is filled.
_ABSOLUTE, _RELATIVE_32, _CALL, _RELATIVE_64 = 1, 2, 4, 24
_THROUGH_TABLE = (9, 41, 42)
# The relocations of the result: a symbol's address, an address in the table of addresses, the library's own address.
_SYMBOL, _TABLE_ENTRY, _OWN_ADDRESS = 1, 6, 8

_READ, _WRITE, _RUN = 4, 2, 1
_STUB = struct.Struct("<HI10x")
"""A jump to the address in the table: ``jmp *distance(%rip)``, padded to 16 bytes."""
_JUMP, _JUMP_SIZE = 0x25FF, 6

_HEADERS = 64 + 5 * 56


@dataclass
class _Block:
    """Bytes with a place: a section of an object, or something that is made here."""

    size: int
    alignment: int = 8
    content: bytearray = field(default_factory=bytearray)
    address: int = 0


def links(machine: str, system: str) -> bool:
    """True for machines that this links for."""
    return (machine, system) == ("x86_64", "linux")


def link(objects: Sequence[bytes], data: Mapping[str, bytes]) -> bytes:
    """The shared library of some objects, with further data under their names."""
    return _Linker([RelocatableObject(code, _X86_64) for code in objects], data).run()


class _Linker:
    def __init__(self, objects: Sequence[RelocatableObject], data: Mapping[str, bytes]) -> None:
        self.objects = objects
        self.sections = {
            (number, section.index): _Block(section.size, section.alignment, bytearray(section.content))
            for number, one in enumerate(objects)
            for section in one.sections
        }
        self.data = {name: _Block(len(content), 64, bytearray(content)) for name, content in data.items()}
        self.defined = self._definitions()
        self.imports: dict[str, int] = {}
        self.stubs: dict[str, int] = {}
        self.table: dict[str, int] = {}
        self._scan()

    # ---- symbols ----

    def _definitions(self) -> dict[str, tuple[int, Place]]:
        """The object and the place of every global symbol; a weak one counts where there is no other."""
        found: dict[str, tuple[int, Place]] = {}
        for number, one in enumerate(self.objects):
            for place in one.symbols:
                if not place.is_global or not place.section or (place.is_weak and place.name in self.data):
                    continue
                known = found.get(place.name)
                if place.name in self.data or (known and not known[1].is_weak and not place.is_weak):
                    raise failure("ValueError", f"the symbol {place.name} is defined twice")
                if known is None or (known[1].is_weak and not place.is_weak):
                    found[place.name] = (number, place)
        return found

    def _is_import(self, place: Place) -> bool:
        return not place.section and place.name not in self.defined and place.name not in self.data

    def _scan(self) -> None:
        """Find the external symbols: which of them are called, and which are read from the table."""
        for _, _, _, place, relocation in self._relocations():
            is_import = self._is_import(place)
            if is_import:
                self.imports.setdefault(place.name, len(self.imports) + 1)
            if relocation.kind in _THROUGH_TABLE and not place.is_global:
                raise failure(
                    "ValueError", "the code reads a local address from a table; link it with a C compiler"
                )
            if relocation.kind in _THROUGH_TABLE or (is_import and relocation.kind == _CALL):
                self.table.setdefault(place.name, 8 * len(self.table))
            if is_import and relocation.kind == _CALL:
                self.stubs.setdefault(place.name, _STUB.size * len(self.stubs))
            elif is_import and relocation.kind in (_RELATIVE_32, _RELATIVE_64):
                raise failure(
                    "ValueError",
                    f"the code takes the address of {place.name}, which is not in it; link it with a C compiler",
                )

    def _relocations(self) -> list[tuple[int, Section, _Block, Place, Relocation]]:
        return [
            (
                number,
                section,
                self.sections[number, section.index],
                one.symbols[relocation.symbol],
                relocation,
            )
            for number, one in enumerate(self.objects)
            for section in one.sections
            for relocation in section.relocations
        ]

    def _address(self, number: int, place: Place) -> int:
        """Where a symbol that is defined here lies, which an object refers to."""
        if place.is_global:
            return self._global_address(place.name)
        return self.sections[number, place.section].address + place.value

    def _global_address(self, name: str) -> int:
        if name in self.data:
            return self.data[name].address
        number, place = self.defined[name]
        return self.sections[number, place.section].address + place.value

    # ---- the file ----

    def run(self) -> bytes:
        """Lay everything out, then fill in the addresses."""
        exported = {
            name: place.kind for name, (_, place) in self.defined.items() if place.is_exported
        } | dict.fromkeys(self.data, 1)
        names = [*self.imports, *exported]
        texts = _texts(names)
        symbols, hashes = _Block(24 * (len(names) + 1)), _Block(4 * (2 + 2 * (len(names) + 1)))
        strings = _Block(len(texts), 1, bytearray(texts))
        table, stubs = _Block(8 * len(self.table)), _Block(_STUB.size * len(self.stubs), 16)
        fixed = sum(relocation.kind == _ABSOLUTE for *_, relocation in self._relocations())
        moved, dynamic = _Block(24 * (len(self.table) + fixed)), _Block(16 * 11)

        read = [symbols, strings, hashes, moved, *self._blocks("read"), *self.data.values()]
        run = [*self._blocks("run"), stubs]
        written = [*self._blocks("written"), table, dynamic]
        at = _HEADERS
        segments = []
        for flags, blocks in ((_READ, read), (_READ | _RUN, run), (_READ | _WRITE, written)):
            start = 0 if flags == _READ else at
            at = _place(blocks, at)
            segments.append((flags, start, at - start))
            at = -(-at // _PAGE) * _PAGE
        end_of_file = segments[-1][1] + segments[-1][2]
        end_of_memory = _place(self._blocks("zero"), end_of_file)

        moved.content = bytearray(b"".join(self._fill(table, stubs)))
        symbols.content = bytearray(self._symbols(exported, texts))
        hashes.content = bytearray(_hash_table(names))
        dynamic.content = bytearray(_dynamic(symbols, strings, hashes, moved))
        image = bytearray(end_of_file)
        for block in (*read, *run, *written):
            image[block.address : block.address + len(block.content)] = block.content
        image[64:_HEADERS] = _program_headers(segments, end_of_memory - end_of_file, dynamic)
        sections, place = _section_headers(symbols, strings, dynamic, end_of_file)
        image[:64] = struct.pack(
            "<4sBBB9xHHIQQQIHHHHHH",
            *(b"\x7fELF", 2, 1, 1, 3, _X86_64, 1, 0, 64, place, 0, 64, 56, 5, 64, 5, 4),
        )
        return bytes(image) + sections

    def _blocks(self, use: str) -> list[_Block]:
        """The sections of all objects that go to one segment."""
        return [
            self.sections[number, section.index]
            for number, one in enumerate(self.objects)
            for section in one.sections
            if section.use == use
        ]

    def _fill(self, table: _Block, stubs: _Block) -> list[bytes]:
        """Fill in the addresses in objects; returns the relocations that are left for the loader."""
        left: list[bytes] = []
        table.content, stubs.content = bytearray(table.size), bytearray(stubs.size)
        for number, _, block, place, relocation in self._relocations():
            where = block.address + relocation.offset
            if relocation.kind == _ABSOLUTE:
                if self._is_import(place):
                    left.append(_relocation(where, _SYMBOL, self.imports[place.name], relocation.addend))
                else:
                    target = self._address(number, place) + relocation.addend
                    left.append(_relocation(where, _OWN_ADDRESS, 0, target))
                continue
            if relocation.kind in _THROUGH_TABLE:
                target = table.address + self.table[place.name]
            elif relocation.kind == _CALL and self._is_import(place):
                target = stubs.address + self.stubs[place.name]
            elif relocation.kind in (_CALL, _RELATIVE_32, _RELATIVE_64):
                target = self._address(number, place)
            else:
                raise failure(
                    "ValueError",
                    f"the code needs relocation {relocation.kind}, which needs a C compiler to link",
                )
            form = "<q" if relocation.kind == _RELATIVE_64 else "<i"
            struct.pack_into(form, block.content, relocation.offset, target + relocation.addend - where)
        for name, offset in self.stubs.items():
            distance = table.address + self.table[name] - (stubs.address + offset + _JUMP_SIZE)
            _STUB.pack_into(stubs.content, offset, _JUMP, distance)
        for name, offset in self.table.items():
            where = table.address + offset
            if name in self.imports:
                left.append(_relocation(where, _TABLE_ENTRY, self.imports[name], 0))
            else:
                left.append(_relocation(where, _OWN_ADDRESS, 0, self._global_address(name)))
        return left

    def _symbols(self, exported: Mapping[str, int], texts: bytes) -> bytes:
        """The dynamic symbols: external ones first, without an address."""
        rows = [bytes(24)]
        for name in self.imports:
            rows.append(struct.pack("<IBBHQQ", _place_of(texts, name), 1 << 4, 0, 0, 0, 0))
        for name, kind in exported.items():
            size = self.data[name].size if name in self.data else self.defined[name][1].size
            # Any defined section will do.
            head = (_place_of(texts, name), 1 << 4 | kind, 0, 1)
            rows.append(struct.pack("<IBBHQQ", *head, self._global_address(name), size))
        return b"".join(rows)


def _place(blocks: Sequence[_Block], at: int) -> int:
    """Put blocks one after another; returns the end."""
    for block in blocks:
        at = -(-at // block.alignment) * block.alignment
        block.address = at
        at += block.size
    return at


def _texts(names: Sequence[str]) -> bytes:
    return b"\0" + b"".join(name.encode() + b"\0" for name in names)


def _place_of(texts: bytes, name: str) -> int:
    return texts.index(b"\0" + name.encode() + b"\0") + 1


def _relocation(where: int, kind: int, symbol: int, addend: int) -> bytes:
    return struct.pack("<QQq", where, symbol << 32 | kind, addend)


def _hash_table(names: Sequence[str]) -> bytes:
    """How the loader finds a name: chains of symbols with the same hash."""
    count = len(names) + 1
    buckets, chains = [0] * count, [0] * count
    for number, name in enumerate(names, 1):
        value = 0
        for byte in name.encode():
            value = (value << 4) + byte
            high = value & 0xF0000000
            value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
        chains[number], buckets[value % count] = buckets[value % count], number
    return struct.pack(f"<II{2 * count}I", count, count, *buckets, *chains)


def _dynamic(symbols: _Block, strings: _Block, hashes: _Block, moved: _Block) -> bytes:
    rows = [
        *((4, hashes.address), (5, strings.address), (6, symbols.address), (10, strings.size), (11, 24)),
        *(((7, moved.address), (8, moved.size), (9, 24)) if moved.size else ()),
        (30, 8),  # every symbol is found when the library is loaded
        (0, 0),
    ]
    return b"".join(struct.pack("<QQ", *row) for row in rows)


def _program_headers(segments: Sequence[tuple[int, int, int]], zeros: int, dynamic: _Block) -> bytes:
    rows = [
        (1, flags, start, start, start, size, size + (zeros if flags & _WRITE else 0), _PAGE)
        for flags, start, size in segments
    ]
    place = dynamic.address
    rows.append((2, _READ | _WRITE, place, place, place, dynamic.size, dynamic.size, 8))
    rows.append((0x6474E551, _READ | _WRITE, 0, 0, 0, 0, 0, 16))  # the stack is not executable
    return b"".join(struct.pack("<IIQQQQQQ", *row) for row in rows)


def _section_headers(symbols: _Block, strings: _Block, dynamic: _Block, at: int) -> tuple[bytes, int]:
    """The headers that tools read, behind their names; and where in the file they begin."""
    names = b"\0.dynsym\0.dynstr\0.dynamic\0.shstrtab\0"
    gap = -(at + len(names)) % 8
    rows = [
        (0,) * 10,
        (1, 11, 2, symbols.address, symbols.address, symbols.size, 2, 1, 8, 24),
        (9, 3, 2, strings.address, strings.address, strings.size, 0, 0, 1, 0),
        (17, 6, 3, dynamic.address, dynamic.address, dynamic.size, 2, 0, 8, 16),
        (26, 3, 0, 0, at, len(names), 0, 0, 1, 0),
    ]
    headers = b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)
    return names + bytes(gap) + headers, at + len(names) + gap
