"""Conversions of the eight-bit floats, which the hardware makes two at a time."""

from __future__ import annotations

from typing import Final

from tilewright.codegen.llvm.calls import Handler
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.nvptx.assembly import assembly, require, word
from tilewright.ir.expr import Call
from tilewright.support.dtype import DataType

_FLOAT32, _UINT8 = DataType("float32"), DataType("uint8")


def encode(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 89)
    function, lanes, kind = emitter.function, node.dtype.lanes, word(node, 1)
    source = _FLOAT32.with_lanes(lanes)
    operand = emitter.visit(node.args[0])
    values = [emitter.lane(operand, source, lane) for lane in range(lanes)]
    made = []
    for first in range(0, lanes, 2):
        low, high = values[first], values[first + 1] if first + 1 < lanes else values[first]
        text = f"cvt.rn.satfinite.{kind}x2.f32 $0, $1, $2;"
        operands = [("float", high), ("float", low)]
        (pair,) = assembly(emitter, text, operands, ["i16"], touches_memory=False)
        made.append(function.value(f"trunc i16 {pair} to i8"))
        if first + 1 < lanes:
            made.append(function.value(f"trunc i16 {function.value(f'lshr i16 {pair}, 8')} to i8"))
    return emitter.assemble(made, _UINT8.with_lanes(lanes))


def decode(emitter: Emitter, node: Call) -> str:
    require(emitter, node, 89)
    function, lanes, kind = emitter.function, node.dtype.lanes, word(node, 1)
    source = _UINT8.with_lanes(lanes)
    operand = emitter.visit(node.args[0])
    values = [
        function.value(f"zext i8 {emitter.lane(operand, source, lane)} to i16") for lane in range(lanes)
    ]
    made = []
    for first in range(0, lanes, 2):
        pair = values[first]
        if first + 1 < lanes:
            pair = function.value(f"or i16 {pair}, {function.value(f'shl i16 {values[first + 1]}, 8')}")
        text = f"cvt.rn.f16x2.{kind}x2 $0, $1;"
        (halves,) = assembly(emitter, text, [("i16", pair)], ["i32"], touches_memory=False)
        both = function.value(f"bitcast i32 {halves} to <2 x half>")
        for place in range(min(2, lanes - first)):
            half = function.value(f"extractelement <2 x half> {both}, i64 {place}")
            made.append(function.value(f"fpext half {half} to float"))
    return emitter.assemble(made, _FLOAT32.with_lanes(lanes))


FLOAT8_CALLS: Final[dict[str, Handler]] = {
    "tir.ptx_float8_encode": encode,
    "tir.ptx_float8_decode": decode,
}
