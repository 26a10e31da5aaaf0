"""Where the CPUID instructions of a program or library are: ``python bench/cpuid_sites.py FILE LIST``.

Writes their virtual addresses to LIST, one in each line. The two bytes of the instruction are also found within
others, as in constants, so objdump decides. It sees only the surroundings of each place: a whole library of 400 MB
would take it minutes. Decoding that starts anywhere in code finds the true instructions again after a few; so it is
started at several bytes in a row, and nearly all must come to the same result.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CPUID = b"\x0f\xa2"
STARTS = 8
LEAST_STARTS = 7
AHEAD = 192
"""Bytes between the first start and the place."""
BESIDE = 32
"""Bytes before and after the place in which everything must be instructions: it is in a table of constants if not."""
STOP = b"\x90" * 16
"""Instructions of one byte, by which decoding comes to the end of one piece before it begins the next."""
LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)")
ALLOCATED, EXECUTABLE = 2, 4


def code_sections(content: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """The virtual address, the offset and the size of each section of instructions of an ELF file of 64 bits."""
    if content[:5] != b"\x7fELF\x02":
        raise SystemExit("not an ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", content, 0x28)
    size, number = struct.unpack_from("<HH", content, 0x3A)
    if not table or not number:
        raise SystemExit("it has no section headers, so that code and constants cannot be told apart")
    for index in range(number):
        _, kind, flags, address, offset, length = struct.unpack_from("<IIQQQQ", content, table + index * size)
        if kind == 1 and flags & ALLOCATED and flags & EXECUTABLE:
            yield address, offset, length


def places(content: mmap.mmap, offset: int, length: int) -> Iterator[int]:
    """The offsets of the two bytes in a part of the file."""
    place = content.find(CPUID, offset, offset + length)
    while place >= 0:
        yield place
        place = content.find(CPUID, place + 1, offset + length)


def decoded(code: bytes) -> dict[int, str]:
    """The name of the instruction at each offset where one begins."""
    with tempfile.NamedTemporaryFile(prefix="tilewright-cpuid-") as file:
        file.write(code)
        file.flush()
        command = [
            "objdump",
            "-D",
            "-z",
            "-b",
            "binary",
            "-m",
            "i386:x86-64",
            "--no-show-raw-insn",
            file.name,
        ]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = map(LINE.match, listing.splitlines())
    return {int(match[1], 16): match[2] for match in found if match}


def sites(content: mmap.mmap) -> list[int]:
    """The virtual addresses of all CPUID instructions."""
    code = bytearray()
    starts: dict[int, list[int]] = {}
    for address, offset, length in code_sections(content):
        for place in places(content, offset, length):
            first, end = max(offset, place - AHEAD), min(offset + length, place + 2 + BESIDE)
            for start in range(first, min(first + STARTS, place + 1)):
                starts.setdefault(place - offset + address, []).append(len(code) + place - start)
                code += content[start:end] + STOP
    names = decoded(bytes(code)) if code else {}

    def is_cpuid(place: int) -> bool:
        beside = range(place - BESIDE, place + BESIDE)
        return names.get(place) == "cpuid" and not any(names.get(near) == "(bad)" for near in beside)

    return [
        address
        for address, pieces in starts.items()
        if sum(map(is_cpuid, pieces)) >= min(LEAST_STARTS, len(pieces))
    ]


def main() -> None:
    source, result = map(Path, sys.argv[1:])
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = sites(content)
    draft = result.with_name(f"{result.name}-{os.getpid()}.draft")
    draft.write_text("".join(f"{address:x}\n" for address in found))
    draft.replace(result)


if __name__ == "__main__":
    main()
