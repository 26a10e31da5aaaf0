"""Products of float16 numbers that are added to float32 sums, where AArch64 has an instruction for that (``fmlal``).

It takes the numbers as they are, so that neither operand is widened before. Products of two float16 numbers are exact
in float32, so the sums are those of numbers that were widened, multiplied and added without rounding in between.
"""

from __future__ import annotations

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.machine import Machine
from tilewright.codegen.llvm.packed_lanes import joined, piece
from tilewright.ir.expr import Broadcast, Cast, IntImm, Mul, PrimExpr, Shuffle
from tilewright.support.dtype import DataType

_LANES = 8
"""The numbers of a vector register, which two instructions multiply: the lower half, and the upper one."""

_SUMS = _LANES // 2

_INSTRUCTIONS = ("llvm.aarch64.neon.fmlal", "llvm.aarch64.neon.fmlal2")


def is_half_product(machine: Machine, product: Mul) -> bool:
    """True for a product of widened float16 vectors that the target multiplies and adds at once."""
    dtype = product.dtype
    return (
        "fp16fml" in machine.features
        and bool(machine.float_flags)  # product and sum may be joined
        and dtype.is_float
        and dtype.bits == 32
        and dtype.lanes % _SUMS == 0
        and _narrow(product.a) is not None
        and _narrow(product.b) is not None
    )


def half_product(emitter: Emitter, product: Mul, addend: PrimExpr) -> str:
    """The addend plus the product."""
    dtype = product.dtype
    narrow = DataType("float16").with_lanes(dtype.lanes)
    parts = [found for found in map(_narrow, (product.a, product.b)) if found is not None]
    if _shared(parts[0]) is not None:
        parts.reverse()  # the second may be an element of a register
    shared = _shared(parts[1])
    factors = [emitter.visit(parts[0]), emitter.visit(parts[1] if shared is None else shared)]
    total = emitter.visit(addend)
    sums = emitter.types.register(dtype.with_lanes(_SUMS))
    vector = emitter.types.register(narrow.with_lanes(_LANES))
    made = []
    for first in range(0, dtype.lanes, _LANES):
        pieces = [
            (vector, factor if is_shared else piece(emitter, factor, narrow, first, _LANES))
            for factor, is_shared in zip(factors, (False, shared is not None), strict=True)
        ]
        for start, instruction in zip(range(first, dtype.lanes, _SUMS), _INSTRUCTIONS, strict=False):
            addends = (sums, piece(emitter, total, dtype, start, _SUMS))
            made.append((emitter.call_llvm(instruction, sums, [addends, *pieces]), _SUMS))
    return joined(emitter, made, dtype)


def _shared(factor: PrimExpr) -> PrimExpr | None:
    """A register full of the number that all lanes of a factor share, if they do."""
    if isinstance(factor, Broadcast):
        return Broadcast(factor.value, _LANES)
    if isinstance(factor, Shuffle):
        places = {int(index.value) for index in factor.indices if isinstance(index, IntImm)}
        return Shuffle(factor.vectors, [*places] * _LANES) if len(places) == 1 else None
    return None


def _narrow(factor: PrimExpr) -> PrimExpr | None:
    """The float16 vector that a factor widens."""
    if isinstance(factor, Broadcast) and factor.value.dtype.lanes == 1:
        inside = _narrow(factor.value)
        return None if inside is None else Broadcast(inside, factor.lanes)
    return factor.value if isinstance(factor, Cast) and factor.value.dtype.is_float16 else None
