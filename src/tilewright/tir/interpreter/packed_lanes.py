"""Packed int8 and bfloat16 lanes, their dot products, and tables of bytes: the reference for code generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.expr import Call, StringImm
from tilewright.ir.intrinsics import DOT_PRODUCTS
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.expressions import CallBuilder, ExpressionCompiler, Frame, Run
from tilewright.tir.interpreter.values import bfloat16_bits, bfloat16_from_bits

_KINDS: dict[str, tuple[type, type]] = {
    "dot_uint8_int8": (np.uint8, np.int8),
    "dot_int8_int8": (np.int8, np.int8),
    "dot_int16": (np.int16, np.int16),
}


def _pack(compiler: ExpressionCompiler, call: Call) -> Run:
    parts = [compiler.visit(argument) for argument in call.args]
    kind = call.args[0].dtype

    def pack(frame: Frame) -> Any:
        values = [np.asarray(part(frame)) for part in parts]
        if kind.is_bfloat16:
            bits = [np.asarray(bfloat16_bits(value)) for value in values]
        else:
            bits = [value.astype(np.int64) & ((1 << kind.bits) - 1) for value in values]
        word = sum(each.astype(np.uint64) << np.uint64(kind.bits * place) for place, each in enumerate(bits))
        made = np.asarray(word).astype(np.uint32).view(np.int32)
        return made if made.ndim else int(made)

    return pack


def _dot(compiler: ExpressionCompiler, call: Call) -> Run:
    first, second = (compiler.visit(argument) for argument in call.args)
    name = str(call.op.name).removeprefix("tir.")

    def words(value: Any) -> Any:
        return np.ascontiguousarray(np.asarray(value, np.int32).reshape(-1, 1))

    def multiply_integers(frame: Frame) -> Any:
        kinds = zip((first(frame), second(frame)), _KINDS[name], strict=True)
        a, b = (words(value).view(kind).astype(np.int64) for value, kind in kinds)
        total = (a * b).sum(axis=1).astype(np.int32)
        return total if call.dtype.lanes > 1 else int(total[0])

    def multiply_floats(frame: Frame) -> Any:
        a, b = (
            bfloat16_from_bits(words(value).view(np.uint16)).astype(np.float64)
            for value in (first(frame), second(frame))
        )
        total = (a * b).sum(axis=1).astype(np.float32)
        return total if call.dtype.lanes > 1 else total[0]

    return multiply_floats if name == "dot_bfloat16" else multiply_integers


def _no_matrix_unit(compiler: ExpressionCompiler, call: Call) -> Run:
    """The loops next to a call of the unit define its meaning."""
    return lambda frame: False


def _matrix_product(compiler: ExpressionCompiler, call: Call) -> Run:
    def refuse(frame: Frame) -> Any:
        raise TilewrightError(f"the interpreter has no matrix unit: {call}", span=call.span)

    return refuse


def _lookup(compiler: ExpressionCompiler, call: Call) -> Run:
    index, table = call.args
    place = compiler.visit(index)
    if not isinstance(table, StringImm):
        raise TilewrightError("a table of bytes is a constant")
    entries = np.frombuffer(bytes.fromhex(table.value), np.uint8)

    def look_up(frame: Frame) -> Any:
        found = entries[np.asarray(place(frame)).astype(np.int64)]
        return found if call.dtype.lanes > 1 else int(found)

    return look_up


WORD_CALLS: dict[str, CallBuilder] = {
    "matrix_unit_ready": _no_matrix_unit,
    "matrix_multiply_add": _matrix_product,
    "pack_word": _pack,
    "lookup_byte": _lookup,
    **dict.fromkeys(DOT_PRODUCTS, _dot),
}
