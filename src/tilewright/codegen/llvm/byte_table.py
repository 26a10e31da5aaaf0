"""Lookups in tables of 256 bytes: permutations of bytes in registers where the CPU has them, else loads."""

from __future__ import annotations

from typing import Final

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.writer import escape
from tilewright.ir.expr import Call, StringImm
from tilewright.support.errors import CodegenError
from tilewright.tir.byte_table import ENTRIES

REGISTER: Final = 64
"""Bytes that one instruction of AVX512-VBMI permutes, from two registers."""


def lookup_byte(emitter: Emitter, node: Call) -> str:
    """The entries for a vector of indices."""
    index, table = node.args
    if not isinstance(table, StringImm):
        raise CodegenError("a table of bytes is a constant", span=node.span)
    name = _global(emitter, table.value)
    operand, lanes = emitter.visit(index), node.dtype.lanes
    if lanes > 1 and emitter.machine.family == "x86" and "avx512vbmi" in emitter.machine.features:
        return _permuted(emitter, name, operand, lanes)
    made = []
    for lane in range(lanes):
        place = emitter.lane(operand, index.dtype, lane) if lanes > 1 else operand
        wide = emitter.function.value(f"zext i8 {place} to i64")
        address = emitter.function.value(f"getelementptr inbounds i8, ptr {name}, i64 {wide}")
        made.append(emitter.function.value(f"load i8, ptr {address}, align 1"))
    return emitter.assemble(made, node.dtype) if lanes > 1 else made[0]


def _global(emitter: Emitter, table: str) -> str:
    name = emitter.module.text.unique("bytes")
    data = escape(bytes.fromhex(table))
    emitter.module.text.add_global(
        f'@{name} = private unnamed_addr constant [{ENTRIES} x i8] c"{data}", align {REGISTER}'
    )
    return f"@{name}"


def _permuted(emitter: Emitter, name: str, operand: str, lanes: int) -> str:
    """Both halves of the table by the lower seven bits, and the one that the highest bit says."""
    value = emitter.function.value
    kind, whole = f"<{lanes} x i8>", f"<{REGISTER} x i8>"
    quarters = []
    for start in range(0, ENTRIES, REGISTER):
        address = value(f"getelementptr inbounds i8, ptr {name}, i64 {start}")
        quarters.append(value(f"load {whole}, ptr {address}, align {REGISTER}"))
    pieces = []
    for first in range(0, lanes, REGISTER):
        count = min(REGISTER, lanes - first)
        picks = _picks([first + lane if lane < count else None for lane in range(REGISTER)])
        places = value(f"shufflevector {kind} {operand}, {kind} poison, <{REGISTER} x i32> <{picks}>")
        halves = [
            emitter.call_llvm(
                "llvm.x86.avx512.vpermi2var.qi.512", whole, [(whole, low), (whole, places), (whole, high)]
            )
            for low, high in (quarters[:2], quarters[2:])
        ]
        upper = value(f"icmp slt {whole} {places}, zeroinitializer")
        chosen = value(f"select <{REGISTER} x i1> {upper}, {whole} {halves[1]}, {whole} {halves[0]}")
        narrow = _picks(list(range(count)))
        pieces.append(
            (
                chosen
                if count == REGISTER
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
