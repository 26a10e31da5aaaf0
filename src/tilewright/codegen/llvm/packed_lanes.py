"""Packed int8, int16 and bfloat16 lanes: loaded as 32-bit words, multiplied by the target's dot-product instructions.

A dot product plus an addend is one instruction where the target has it. Otherwise the numbers are widened in registers:
to int16 for x86's pairwise multiply-add, which cannot overflow, otherwise to 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tilewright.arith import Analyzer
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.memory import Access
from tilewright.codegen.llvm.types import vector
from tilewright.ir import operators
from tilewright.ir.expr import Call, IntImm, Load, PrimExpr, Shuffle
from tilewright.ir.intrinsics import DOT_PRODUCTS
from tilewright.support.dtype import DataType

_DOT_NAMES: Final = frozenset(f"tir.{name}" for name in DOT_PRODUCTS)
_INT32: Final = DataType("int32")


def is_dot_product(node: PrimExpr) -> bool:
    """True for a product of words."""
    return isinstance(node, Call) and getattr(node.op, "name", "") in _DOT_NAMES


# Words


def pack_word(emitter: Emitter, node: Call) -> str:
    """The bits of the arguments in one word; neighbours in memory are loaded as the word that they are."""
    loaded = _load_words(emitter, node)
    if loaded is not None:
        return loaded
    function, lanes = emitter.function, node.dtype.lanes
    kind, bits = emitter.types.register(node.dtype), node.args[0].dtype.bits
    narrow = vector(f"i{bits}", lanes)
    word = ""
    for place, argument in enumerate(node.args):
        wide = function.value(f"zext {narrow} {emitter.visit(argument)} to {kind}")
        if place:
            shift = emitter.constant(node.dtype, bits * place)
            wide = function.value(f"shl {kind} {wide}, {shift}")
        word = function.value(f"or {kind} {word}, {wide}") if word else wide
    return word


def _load_words(emitter: Emitter, node: Call) -> str | None:
    """The words in memory, if the arguments are loads of their numbers, in order and under no condition."""
    loads = [argument for argument in node.args if isinstance(argument, Load)]
    if len(loads) != len(node.args) or emitter.mask is not None:
        return None
    first, count = loads[0], len(loads)
    if any(one.buffer_var is not first.buffer_var or not _is_unconditional(one) for one in loads):
        return None
    accesses = [Access(emitter, one.buffer_var, one.dtype, one.index) for one in loads]
    if node.dtype.lanes > 1 and any(one.stride_value not in (0, count) for one in accesses):
        return None
    if len({one.stride_value for one in accesses}) > 1:
        return None
    analyzer = Analyzer()
    for place, access in enumerate(accesses):
        difference = operators.subtract(access.base, accesses[0].base)
        distance = analyzer.simplify(difference)
        if not isinstance(distance, IntImm) or distance.value != place:
            return None
    access = accesses[0]
    base = access.base
    assert base is not None
    pointer, align = access.at(base), access.alignment(base)
    if access.stride_value == 0:
        return emitter.broadcast(access.read("i32", pointer, align), _INT32, node.dtype.lanes)
    return access.read(emitter.types.register(node.dtype), pointer, align)


def _is_unconditional(load: Load) -> bool:
    predicate: Any = load.predicate
    value = getattr(predicate, "value", None)
    value = getattr(value, "value", value)
    return predicate is None or value == 1


# Products


def dot_product(emitter: Emitter, node: PrimExpr, addend: PrimExpr | None = None) -> str:
    """A product of words, added to something."""
    assert isinstance(node, Call)
    given = list(node.args)
    if (
        emitter.machine.family == "aarch64"
        and isinstance(given[0], Shuffle)
        and node.op.name == "tir.dot_int8_int8"
    ):
        given.reverse()  # the instruction takes one word of its last operand for all lanes
    words = [emitter.visit(argument) for argument in given]
    kind = emitter.types.register(node.dtype)
    start = "zeroinitializer" if node.dtype.lanes > 1 else "0.0" if node.dtype.is_float else "0"
    sum_ = start if addend is None else emitter.visit(addend)
    name = node.op.name.removeprefix("tir.")
    instruction, most = _instruction(emitter, name)
    if not most:
        return instruction(emitter, kind, node.dtype.lanes, sum_, words)
    return _in_pieces(emitter, node.dtype, most, sum_, words, instruction)


Multiply = Callable[[Emitter, str, int, str, list[str]], str]
"""(emitter, type of the sums, lanes, addend, words) to the sums."""


def _instruction(emitter: Emitter, name: str) -> tuple[Multiply, int]:
    """The dot-product instruction of this target, and the most lanes that it takes at a time; 0 for any number."""
    features, family = emitter.machine.features, emitter.machine.family
    most = max(emitter.machine.vector_bits // 32, 4)
    if family == "x86":
        if name == "dot_bfloat16" and "avx512bf16" in features:
            return _call_of("llvm.x86.avx512bf16.dpbf16ps.{bits}", "bfloat", 2), most
        if name == "dot_uint8_int8" and features & {"avx512vnni", "avxvnni"}:
            wide = most if "avx512vnni" in features else 8
            return _call_of("llvm.x86.avx512.vpdpbusd.{bits}", "i8", 4), wide
        if name == "dot_int8_int8" and "avxvnniint8" in features:
            return _call_of("llvm.x86.avx2.vpdpbssd.{bits}", "i8", 4), 8
        if name != "dot_bfloat16" and "sse2" in features:
            wide = 16 if most >= 16 and "avx512bw" in features else 8 if "avx2" in features else 4
            return _pairs if name == "dot_int16" else _by_pairs(is_signed=name == "dot_int8_int8"), wide
    if family == "aarch64":
        if name == "dot_int8_int8" and "dotprod" in features:
            return _call_of("llvm.aarch64.neon.sdot.v4i32.v16i8", "i8", 4), 4
        if name == "dot_uint8_int8" and "i8mm" in features:
            return _call_of("llvm.aarch64.neon.usdot.v4i32.v16i8", "i8", 4), 4
    if family == "nvptx" and name.endswith("_int8"):
        return _by_lanes("llvm.nvvm.idp4a.s.s" if name == "dot_int8_int8" else "llvm.nvvm.idp4a.u.s"), 0
    if name == "dot_bfloat16":
        return _in_float32, 0
    return _in_int32(16 if name == "dot_int16" else 8, is_signed=name != "dot_uint8_int8"), 0


def _call_of(name: str, element: str, numbers: int) -> Multiply:
    """An instruction (sums, words, words) to sums, whose name may depend on the vector's bits."""

    def multiply(emitter: Emitter, kind: str, lanes: int, addend: str, words: list[str]) -> str:
        narrow = vector(element, lanes * numbers)
        cast = [
            emitter.function.value(f"bitcast {vector('i32', lanes)} {word} to {narrow}") for word in words
        ]
        arguments = [(kind, addend), *((narrow, operand) for operand in cast)]
        return emitter.call_llvm(name.format(bits=32 * lanes), kind, arguments)

    return multiply


def _by_lanes(name: str) -> Multiply:
    """An instruction (word, word, sum) to sum."""

    def multiply(emitter: Emitter, kind: str, lanes: int, addend: str, words: list[str]) -> str:
        dtype = _INT32.with_lanes(lanes)
        made = []
        for lane in range(lanes):
            operands = [emitter.lane(operand, dtype, lane) for operand in (*words, addend)]
            made.append(emitter.call_llvm(name, "i32", [("i32", operand) for operand in operands]))
        return emitter.assemble(made, dtype)

    return multiply


_PAIRS: Final = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}


def _pairs(emitter: Emitter, kind: str, lanes: int, addend: str, words: list[str]) -> str:
    """x86: int16 numbers, multiplied and added in pairs."""
    value, halves, whole = emitter.function.value, vector("i16", 2 * lanes), vector("i32", lanes)
    factors = [(halves, value(f"bitcast {whole} {word} to {halves}")) for word in words]
    return value(f"add {kind} {addend}, {emitter.call_llvm(_PAIRS[lanes], kind, factors)}")


def _by_pairs(is_signed: bool) -> Multiply:
    """x86 before VNNI: even and odd numbers as int16, multiplied and added in pairs."""

    def multiply(emitter: Emitter, kind: str, lanes: int, addend: str, words: list[str]) -> str:
        value, halves, whole = emitter.function.value, vector("i16", 2 * lanes), vector("i32", lanes)
        total = addend
        for odd in (False, True):
            widened = []
            for word, signed in zip(words, (is_signed, True), strict=True):
                pairs = value(f"bitcast {whole} {word} to {halves}")
                if signed and not odd:
                    pairs = value(f"shl {halves} {pairs}, splat (i16 8)")
                if signed:
                    pairs = value(f"ashr {halves} {pairs}, splat (i16 8)")
                elif odd:
                    pairs = value(f"lshr {halves} {pairs}, splat (i16 8)")
                else:
                    pairs = value(f"and {halves} {pairs}, splat (i16 255)")
                widened.append((halves, pairs))
            product = emitter.call_llvm(_PAIRS[lanes], kind, widened)
            total = value(f"add {kind} {total}, {product}")
        return total

    return multiply


def _in_int32(bits: int, is_signed: bool) -> Multiply:
    """Any target: each number of so many bits widened to 32."""

    def multiply(emitter: Emitter, kind: str, lanes: int, addend: str, words: list[str]) -> str:
        value, whole = emitter.function.value, _INT32.with_lanes(lanes)
        total = addend
        for place in range(32 // bits):
            wide = []
            for word, signed in zip(words, (is_signed, True), strict=True):
                up = value(f"shl {kind} {word}, {emitter.constant(whole, 32 - bits * (place + 1))}")
                shift = emitter.constant(whole, 32 - bits)
                wide.append(value(f"{'ashr' if signed else 'lshr'} {kind} {up}, {shift}"))
            total = value(f"add {kind} {total}, {value(f'mul {kind} {wide[0]}, {wide[1]}')}")
        return total

    return multiply


def _in_float32(emitter: Emitter, kind: str, lanes: int, addend: str, words: list[str]) -> str:
    """Any target: a bfloat16 is the upper half of a float32."""
    value, whole = emitter.function.value, vector("i32", lanes)
    total = addend
    for high in (False, True):
        floats = []
        for word in words:
            mask = emitter.constant(_INT32.with_lanes(lanes), -65536 if high else 16)
            bits = value(f"{'and' if high else 'shl'} {whole} {word}, {mask}")
            floats.append(value(f"bitcast {whole} {bits} to {kind}"))
        product = value(f"fmul contract {kind} {floats[0]}, {floats[1]}")
        total = value(f"fadd contract {kind} {total}, {product}")
    return total


def _in_pieces(
    emitter: Emitter, dtype: DataType, most: int, addend: str, words: list[str], multiply: Multiply
) -> str:
    """A product of any number of lanes, in vectors of at most ``most`` (4 times a power of two) and at least 4."""
    if dtype.lanes in (4, 8, 16) and dtype.lanes <= most:
        return multiply(emitter, emitter.types.register(dtype), dtype.lanes, addend, words)
    operands = [(addend, dtype), *((word, _INT32.with_lanes(dtype.lanes)) for word in words)]
    made, first = [], 0
    while first < dtype.lanes:
        left = dtype.lanes - first
        lanes = next((size for size in (16, 8, 4) if size <= min(most, left)), 4)
        pieces = [piece(emitter, operand, kind, first, lanes) for operand, kind in operands]
        kind = emitter.types.register(dtype.with_lanes(lanes))
        made.append((multiply(emitter, kind, lanes, pieces[0], pieces[1:]), lanes))
        first += lanes
    return joined(emitter, made, dtype)


def piece(emitter: Emitter, operand: str, dtype: DataType, first: int, lanes: int) -> str:
    """Some lanes of a vector, whatever beyond its end."""
    kind = emitter.types.register(dtype)
    if dtype.lanes == 1:
        whole = emitter.types.register(dtype.with_lanes(lanes))
        return emitter.function.value(f"insertelement {whole} zeroinitializer, {kind} {operand}, i64 0")
    picks = ", ".join(
        f"i32 {first + lane}" if first + lane < dtype.lanes else "i32 poison" for lane in range(lanes)
    )
    return emitter.function.value(f"shufflevector {kind} {operand}, {kind} poison, <{lanes} x i32> <{picks}>")


def joined(emitter: Emitter, pieces: list[tuple[str, int]], dtype: DataType) -> str:
    """Vectors one after the other, as many lanes as the type has."""
    if dtype.lanes == 1:
        return emitter.lane(pieces[0][0], dtype.with_lanes(pieces[0][1]), 0)
    made, lanes = pieces[0]
    for operand, more in pieces[1:]:
        # Both operands of a shuffle have one type.
        wide = emitter.types.register(dtype.with_lanes(lanes))
        other = operand
        if more != lanes:
            narrow = emitter.types.register(dtype.with_lanes(more))
            picks = ", ".join(f"i32 {lane}" if lane < more else "i32 poison" for lane in range(lanes))
            other = emitter.function.value(
                f"shufflevector {narrow} {operand}, {narrow} poison, <{lanes} x i32> <{picks}>"
            )
        picks = ", ".join(f"i32 {lane}" for lane in range(lanes + more))
        made = emitter.function.value(
            f"shufflevector {wide} {made}, {wide} {other}, <{lanes + more} x i32> <{picks}>"
        )
        lanes += more
    if lanes == dtype.lanes:
        return made
    wide = emitter.types.register(dtype.with_lanes(lanes))
    picks = ", ".join(f"i32 {lane}" for lane in range(dtype.lanes))
    return emitter.function.value(
        f"shufflevector {wide} {made}, {wide} poison, <{dtype.lanes} x i32> <{picks}>"
    )


WORD_CALLS: dict[str, Callable[[Emitter, Call], str]] = {
    "tir.pack_word": pack_word,
    **dict.fromkeys(sorted(_DOT_NAMES), dot_product),
}
