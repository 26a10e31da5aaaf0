"""Conversions between data types; see ``Cast``.

Floats convert to integers by truncation, saturating at the ends of the range, and NaN becomes zero, on every target.
Integers narrow by wrapping. Conversion to bool tests for non-zero. A float64 converts to float16 or bfloat16 with one
rounding.
"""

from __future__ import annotations

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.types import float_constant, splat
from tilewright.support.dtype import FLOAT32, DataType
from tilewright.support.errors import CodegenError


def convert(emitter: Emitter, operand: str, source: DataType, result: DataType) -> str:
    """The operand of type ``source`` as type ``result``."""
    if source is result:
        return operand
    if source.is_handle or result.is_handle:
        return _pointer(emitter, operand, source, result)
    if result.is_bool:
        return _to_bool(emitter, operand, source)
    if source.is_float and result.is_float:
        return _float_to_float(emitter, operand, source, result)
    if source.is_float:
        return _float_to_integer(emitter, operand, source, result)
    if result.is_float:
        return _integer_to_float(emitter, operand, source, result)
    return _integer_to_integer(emitter, operand, source, result)


def _pointer(emitter: Emitter, operand: str, source: DataType, result: DataType) -> str:
    if source.is_handle and result.is_handle:
        return operand
    if source.is_handle and result.is_integral:
        return emitter.function.value(f"ptrtoint ptr {operand} to {emitter.types.register(result)}")
    if result.is_handle and source.is_integral:
        return emitter.function.value(f"inttoptr {emitter.types.register(source)} {operand} to ptr")
    raise CodegenError(f"{source} cannot be converted to {result}")


def _to_bool(emitter: Emitter, operand: str, source: DataType) -> str:
    kind = emitter.types.register(source)
    if not source.is_float:
        return emitter.function.value(f"icmp ne {kind} {operand}, zeroinitializer")
    if emitter.types.is_soft(source):
        operand, kind = (
            emitter.as_float32(operand, source),
            emitter.types.register(FLOAT32.with_lanes(source.lanes)),
        )
    return emitter.function.value(f"fcmp une {kind} {operand}, zeroinitializer")


def _float_to_float(emitter: Emitter, operand: str, source: DataType, result: DataType) -> str:
    single = FLOAT32.with_lanes(source.lanes)
    if source.bits == 16:
        operand, source = emitter.as_float32(operand, source), single
    if result.bits == 16:
        if source.bits == 64:
            operand = emitter.call_math("float64_to_float32_odd", source, [operand])
        return emitter.from_float32(operand, result)
    if source is result:
        return operand
    how = "fpext" if result.bits > source.bits else "fptrunc"
    kind = emitter.types.register(source)
    return emitter.function.value(f"{how} {kind} {operand} to {emitter.types.register(result)}")


def _float_to_integer(emitter: Emitter, operand: str, source: DataType, result: DataType) -> str:
    if source.bits == 16:
        operand, source = emitter.as_float32(operand, source), FLOAT32.with_lanes(source.lanes)
    if source.lanes > 1 and source.bits == 32 and result.bits <= 16:
        return narrowed(emitter, in_range(emitter, operand, source, result), result)
    name = "llvm.fptosi.sat" if result.is_int else "llvm.fptoui.sat"
    return emitter.call_llvm(
        name, emitter.types.register(result), [(emitter.types.register(source), operand)]
    )


def limits(dtype: DataType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    signed = dtype.is_int
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if signed else (0, (1 << dtype.bits) - 1)


def in_range(emitter: Emitter, operand: str, source: DataType, result: DataType) -> str:
    """float32 vectors as int32 in the range of a type of 8 or 16 bits. Vector units convert to 32 bits: LLVM converts
    directly to narrow integers element by element."""
    kind = emitter.types.register(source)
    least, most = limits(result)
    if least:
        # What is compared with NaN is the bound, and for unsigned integers that is zero.
        is_number = emitter.function.value(f"fcmp ord {kind} {operand}, zeroinitializer")
        operand = emitter.function.value(
            f"select {_mask(source)} {is_number}, {kind} {operand}, {kind} zeroinitializer"
        )
    clamped = clamp(emitter, operand, source, least, most)
    return emitter.function.value(f"fptosi {kind} {clamped} to {emitter.types.register(_wide(result))}")


def narrowed(emitter: Emitter, operand: str, result: DataType) -> str:
    """Vectors of int32 that are in the range of a type of 8 or 16 bits as that type."""
    wide = emitter.types.register(_wide(result))
    return emitter.function.value(f"trunc {wide} {operand} to {emitter.types.register(result)}")


def _wide(dtype: DataType) -> DataType:
    return DataType("int32").with_lanes(dtype.lanes)


def _mask(source: DataType) -> str:
    return f"<{source.lanes} x i1>"


def clamp(emitter: Emitter, operand: str, source: DataType, least: int, most: int) -> str:
    """float32 vectors between two integers; NaN becomes the least."""
    kind = emitter.types.register(source)
    for how, bound in (("ogt", least), ("olt", most)):
        number = float_constant(emitter.types, source.element, float(bound))
        limit = splat(emitter.types.register(source.element), number, source.lanes)
        beyond = emitter.function.value(f"fcmp {how} {kind} {operand}, {limit}")
        operand = emitter.function.value(f"select {_mask(source)} {beyond}, {kind} {operand}, {kind} {limit}")
    return operand


def rounded_in_range(emitter: Emitter, operand: str, source: DataType, result: DataType, offset: int) -> str:
    """``nearbyint(operand) + offset`` of float32 vectors as int32 in the range of an unsigned type of 8 or 16 bits,
    where one instruction rounds and converts."""
    kind = emitter.types.register(source)
    least, most = limits(result)
    clamped = clamp(emitter, operand, source, least - offset, most - offset)
    wide = emitter.types.register(_wide(result))
    whole = emitter.call_llvm("llvm.lrint", wide, [(kind, clamped)])
    if offset:
        whole = emitter.function.value(f"add {wide} {whole}, {emitter.constant(_wide(result), offset)}")
    return whole


def _integer_to_float(emitter: Emitter, operand: str, source: DataType, result: DataType) -> str:
    how = "sitofp" if source.is_int else "uitofp"
    kind = emitter.types.register(source)
    if result.bits != 16:
        return emitter.function.value(f"{how} {kind} {operand} to {emitter.types.register(result)}")
    # Every integer below 65520 is exact in float32, and float16 ends there; bfloat16 needs the wider step.
    step = DataType("float64" if result.is_bfloat16 and source.bits > 24 else "float32").with_lanes(
        source.lanes
    )
    wide = emitter.function.value(f"{how} {kind} {operand} to {emitter.types.register(step)}")
    return _float_to_float(emitter, wide, step, result)


def _integer_to_integer(emitter: Emitter, operand: str, source: DataType, result: DataType) -> str:
    if source.bits == result.bits:
        return operand
    kind, wanted = emitter.types.register(source), emitter.types.register(result)
    how = "trunc" if result.bits < source.bits else "sext" if source.is_int else "zext"
    return emitter.function.value(f"{how} {kind} {operand} to {wanted}")
