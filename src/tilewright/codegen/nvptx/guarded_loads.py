"""Loads under a condition, a constant elsewhere, as one predicated instruction.

That is how padding is read. As a branch each load would have to arrive before the next could be asked for; predicated
ones are all on their way at the same time.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tilewright.codegen.llvm.calls import CALLS
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.memory import Access
from tilewright.codegen.nvptx.assembly import assembly, places
from tilewright.ir.expr import Broadcast, Call, FloatImm, IntImm, Load, PrimExpr
from tilewright.ir.functor import post_order

_GLOBAL: Final = "ptr addrspace(1)"
_WORDS: Final = {16: ("i16", 1), 32: ("i32", 1), 64: ("i32", 2), 128: ("i32", 4)}
"""The registers of a load, by its bits."""


def if_then_else(emitter: Emitter, node: Call) -> str:
    """A choice of which only the taken branch is evaluated."""
    condition, yes, no = node.args
    if isinstance(condition, Broadcast):
        condition = condition.value
    otherwise = _pattern(no)
    if condition.dtype.lanes == 1 and emitter.mask is None and otherwise and isinstance(yes, Load):
        made = _guarded_load(emitter, condition, yes, otherwise)
        if made is not None:
            return made
    return CALLS["tir.if_then_else"](emitter, node)


def _guarded_load(emitter: Emitter, condition: PrimExpr, load: Load, otherwise: bytes) -> str | None:
    """The value of a load from global memory where a condition holds, and elements of these bytes elsewhere; None where
    no instruction does that."""
    bits = load.dtype.bits * load.dtype.lanes
    access = Access(emitter, load.buffer_var, load.dtype, load.index)
    is_run = access.base is not None and (load.dtype.lanes == 1 or access.stride_value == 1)
    if bits not in _WORDS or not is_run or load.dtype.is_bool or not _is_one(load.predicate):
        return None
    # An index that itself has to be loaded may only be loaded under the condition.
    if access.pointer_type != _GLOBAL or any(
        isinstance(part, (Load, Call)) for part in post_order(load.index)
    ):
        return None
    assert access.base is not None
    if access.volatile or access.alignment(access.base) * 8 < bits:
        return None
    function = emitter.function
    # Outside of the condition the address may be anywhere.
    pointer = access.at(access.base, inbounds=False)
    address = function.value(f"ptrtoint {_GLOBAL} {pointer} to i64")
    test = function.value(f"zext i1 {emitter.visit(condition)} to i32")
    word, count = _WORDS[bits]
    size = "b16" if word == "i16" else "b32"
    cached = ".nc" if emitter.context.aliases.is_read_only(load.buffer_var) else ""
    length = 2 if word == "i16" else 4
    start = int.from_bytes((otherwise * 4)[:length], "little")
    starts = " ".join(f"mov.{size} ${place}, {start:#x};" for place in range(count))
    registers = places(0, count) if count > 1 else "$0"
    shape = f".v{count}" if count > 1 else ""
    text = (
        f"{{ .reg .pred inside; setp.ne.b32 inside, ${count + 1}, 0; {starts} "
        f"@inside ld.global{cached}{shape}.{size} {registers}, [${count}]; }}"
    )
    made = assembly(emitter, text, [("i64", address), ("i32", test)], [word] * count, reads_memory=True)
    kind, value = word, made[0]
    if count > 1:
        kind, value = f"<{count} x i32>", "poison"
        for place, part in enumerate(made):
            value = function.value(f"insertelement {kind} {value}, i32 {part}, i32 {place}")
    if kind != access.memory_type:
        value = function.value(f"bitcast {kind} {value} to {access.memory_type}")
    return access.from_memory(value)


def _pattern(expr: PrimExpr) -> bytes:
    """The bytes of a constant, at most four; none of anything else."""
    if isinstance(expr, Broadcast):
        expr = expr.value
    if not isinstance(expr, (IntImm, FloatImm)) or expr.dtype.bits not in (8, 16, 32):
        return b""
    if str(expr.value) in ("0", "0.0"):
        return bytes(expr.dtype.itemsize)
    # NumPy does not know the other types of two bytes.
    return b"" if str(expr.dtype) == "bfloat16" else np.array(expr.value, str(expr.dtype)).tobytes()


def _is_one(expr: PrimExpr) -> bool:
    if isinstance(expr, Broadcast):
        expr = expr.value
    return isinstance(expr, IntImm) and expr.value == 1
