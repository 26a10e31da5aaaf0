"""Lookups in tables of 256 bytes: permutations of bytes in registers where the CPU has them, else loads.

AVX512-VBMI permutes 128 bytes by a vector. Older x86 CPUs shuffle 16 bytes (``pshufb``), and give zero where the
highest bit of an index is set. Of a half of the table, eight such shuffles are combined: the index is lowered by 16
from one to the next, until it is negative, and the tables hold the differences (exclusive or) from one row of 16
entries to the next, so that all rows before the wanted one cancel. AArch64 looks up in 64 bytes (``tbl``), and leaves
what it had (``tbx``) where an index is beyond them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.writer import escape
from tilewright.ir.expr import Call, StringImm
from tilewright.support.errors import CodegenError
from tilewright.tir.byte_table import ENTRIES

WIDEST: Final = 64
"""Bytes of the largest register."""
ROW: Final = 16
"""Entries that ``pshufb`` chooses from."""
HALF: Final = ENTRIES // 2
SHUFFLES: Final = {
    16: ("ssse3", "llvm.x86.ssse3.pshuf.b.128"),
    32: ("avx2", "llvm.x86.avx2.pshuf.b"),
    64: ("avx512bw", "llvm.x86.avx512.pshuf.b.512"),
}
"""By the bytes of a register: the feature that has the shuffle, and its name."""


def lookup_byte(emitter: Emitter, node: Call) -> str:
    """The entries for a vector of indices."""
    index, table = node.args
    if not isinstance(table, StringImm):
        raise CodegenError("a table of bytes is a constant", span=node.span)
    content = bytes.fromhex(table.value)
    operand, lanes = emitter.visit(index), node.dtype.lanes
    if lanes > 1 and emitter.machine.family == "x86":
        if "avx512vbmi" in emitter.machine.features:
            name = _global(emitter, content)
            return _by_registers(
                emitter, operand, lanes, WIDEST, lambda places: _permuted(emitter, name, places)
            )
        register = _register(emitter.machine.features, lanes)
        if register:
            name = _global(emitter, _differences(content, register))
            return _by_registers(
                emitter, operand, lanes, register, lambda places: _shuffled(emitter, name, places, register)
            )
    name = _global(emitter, content)
    if lanes > 1 and emitter.machine.family == "aarch64" and "neon" in emitter.machine.features:
        return _by_registers(emitter, operand, lanes, ROW, lambda places: _found(emitter, name, places))
    made = []
    for lane in range(lanes):
        place = emitter.lane(operand, index.dtype, lane) if lanes > 1 else operand
        wide = emitter.function.value(f"zext i8 {place} to i64")
        address = emitter.function.value(f"getelementptr inbounds i8, ptr {name}, i64 {wide}")
        made.append(emitter.function.value(f"load i8, ptr {address}, align 1"))
    return emitter.assemble(made, node.dtype) if lanes > 1 else made[0]


def _register(features: Collection[str], lanes: int) -> int:
    """Bytes of the register that is shuffled: the smallest that holds all lanes, or the largest there is; 0 if none."""
    sizes = [size for size, (feature, _) in SHUFFLES.items() if feature in features]
    return next((size for size in sizes if size >= lanes), sizes[-1] if sizes else 0)


def _global(emitter: Emitter, data: bytes) -> str:
    name = emitter.module.text.unique("bytes")
    emitter.module.text.add_global(
        f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{escape(data)}", align {WIDEST}'
    )
    return f"@{name}"


def _differences(table: bytes, register: int) -> bytes:
    """The first row of each half, and what changes from row to row, each in all 16-byte parts of a register."""
    rows = [table[start : start + ROW] for start in range(0, ENTRIES, ROW)]
    made = bytearray()
    for number, row in enumerate(rows):
        before = bytes(ROW) if number % (HALF // ROW) == 0 else rows[number - 1]
        made += bytes(a ^ b for a, b in zip(row, before, strict=True)) * (register // ROW)
    return bytes(made)


def _shuffled(emitter: Emitter, name: str, places: str, register: int) -> str:
    """The entries for a register of indices: the lower half of the table for those below 128, then the upper half."""
    value, whole = emitter.function.value, f"<{register} x i8>"
    shuffle = SHUFFLES[register][1]
    total: str | None = None
    for half in range(2):
        left = places if half == 0 else value(f"xor {whole} {places}, splat (i8 -128)")
        for row in range(HALF // ROW):
            if row:
                # Saturating, so that an index of the other half stays negative.
                left = emitter.call_llvm(
                    f"llvm.ssub.sat.v{register}i8", whole, [(whole, left), (whole, f"splat (i8 {ROW})")]
                )
            start = (half * (HALF // ROW) + row) * register
            address = value(f"getelementptr inbounds i8, ptr {name}, i64 {start}")
            entries = value(f"load {whole}, ptr {address}, align {register}")
            found = emitter.call_llvm(shuffle, whole, [(whole, entries), (whole, left)])
            total = found if total is None else value(f"xor {whole} {total}, {found}")
    assert total is not None
    return total


def _found(emitter: Emitter, name: str, places: str) -> str:
    """The entries for a register of indices, quarter by quarter of the table."""
    value, whole = emitter.function.value, f"<{ROW} x i8>"
    total: str | None = None
    for start in range(0, ENTRIES, WIDEST):
        rows = []
        for row in range(start, start + WIDEST, ROW):
            address = value(f"getelementptr inbounds i8, ptr {name}, i64 {row}")
            rows.append((whole, value(f"load {whole}, ptr {address}, align {ROW}")))
        lowest = start if start < HALF else start - ENTRIES  # as a signed number
        lowered = places if start == 0 else value(f"sub {whole} {places}, splat (i8 {lowest})")
        before = [] if total is None else [(whole, total)]
        lookup = f"llvm.aarch64.neon.{'tbl4' if total is None else 'tbx4'}.v{ROW}i8"
        total = emitter.call_llvm(lookup, whole, [*before, *rows, (whole, lowered)])
    assert total is not None
    return total


def _permuted(emitter: Emitter, name: str, places: str) -> str:
    """Both halves of the table by the lower seven bits, and the one that the highest bit says."""
    value, whole = emitter.function.value, f"<{WIDEST} x i8>"
    quarters = []
    for start in range(0, ENTRIES, WIDEST):
        address = value(f"getelementptr inbounds i8, ptr {name}, i64 {start}")
        quarters.append(value(f"load {whole}, ptr {address}, align {WIDEST}"))
    halves = [
        emitter.call_llvm(
            "llvm.x86.avx512.vpermi2var.qi.512", whole, [(whole, low), (whole, places), (whole, high)]
        )
        for low, high in (quarters[:2], quarters[2:])
    ]
    upper = value(f"icmp slt {whole} {places}, zeroinitializer")
    return value(f"select <{WIDEST} x i1> {upper}, {whole} {halves[1]}, {whole} {halves[0]}")


def _by_registers(
    emitter: Emitter, operand: str, lanes: int, register: int, lookup: Callable[[str], str]
) -> str:
    """Looks up a vector of any number of lanes, register by register."""
    value = emitter.function.value
    kind, whole = f"<{lanes} x i8>", f"<{register} x i8>"
    pieces = []
    for first in range(0, lanes, register):
        count = min(register, lanes - first)
        picks = _picks([first + lane if lane < count else None for lane in range(register)])
        places = value(f"shufflevector {kind} {operand}, {kind} poison, <{register} x i32> <{picks}>")
        chosen = lookup(places)
        narrow = _picks(list(range(count)))
        pieces.append(
            (
                chosen
                if count == register
                else value(f"shufflevector {whole} {chosen}, {whole} poison, <{count} x i32> <{narrow}>"),
                count,
            )
        )
    made, total = pieces[0]
    for piece, count in pieces[1:]:
        other = piece
        if count != total:
            padded = _picks([lane if lane < count else None for lane in range(total)])
            other = value(
                f"shufflevector <{count} x i8> {piece}, <{count} x i8> poison, <{total} x i32> <{padded}>"
            )
        joined = _picks(list(range(total + count)))
        made = value(
            f"shufflevector <{total} x i8> {made}, <{total} x i8> {other}, <{total + count} x i32> <{joined}>"
        )
        total += count
    return made


def _picks(places: list[int | None]) -> str:
    return ", ".join("i32 poison" if place is None else f"i32 {place}" for place in places)
