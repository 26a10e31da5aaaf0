"""float16 and bfloat16 in integer arithmetic, for targets without conversion instructions.

All conversions round to nearest, ties to even, keep NaN a quiet NaN, and treat denormals exactly.
"""

from __future__ import annotations

from tilewright.codegen.llvm.math.block import Block, Value


def bfloat16_to_float32(block: Block, x: Value) -> Value:
    """Exact: a bfloat16 is the upper half of a float32."""
    return x.zero_extend("i32").shift_left(16).bitcast("float")


def float32_to_bfloat16(block: Block, x: Value) -> Value:
    """Adds just less than half of the last kept bit (exactly half where that bit is odd) and cuts."""
    bits = x.bits()
    rounded = bits + 0x7FFF + (bits.shift_right(16) & 1)
    # The quiet bit is set so that a NaN whose payload is cut away stays one.
    return block.select(x.is_nan(), bits | 0x400000, rounded).shift_right(16).to_integer("i16")


def float16_to_float32(block: Block, x: Value) -> Value:
    """Moves the fields to their places and scales by a power of two, which also mends denormals exactly."""
    wide = x.zero_extend("i32")
    sign = (wide & 0x8000).shift_left(16)
    magnitude = (wide & 0x7FFF).shift_left(13)
    scaled = (magnitude.bitcast("float") * 2.0**112).bits()
    infinite = wide & 0x7C00
    special = block.select(infinite.equals(0x7C00), magnitude | 0x7F800000, scaled)
    return (special | sign).bitcast("float")


def float32_to_float16(block: Block, x: Value) -> Value:
    """Normal numbers round in integers; denormal results are rounded by adding a power of two that aligns them."""
    bits = x.bits()
    sign = bits.shift_right(16) & 0x8000
    magnitude = bits & 0x7FFFFFFF
    normal = (magnitude + 0xFFF + (magnitude.shift_right(13) & 1) - (112 << 23)).shift_right(13)
    # Half's smallest denormal is 2**-24; 0.5 has that as its last bit, so the sum rounds to it.
    denormal = (magnitude.bitcast("float") + 0.5).bits() - 0x3F000000
    result = block.select(magnitude.below(113 << 23), denormal, normal)
    result = block.select(magnitude.below(0x477FF000), result, 0x7C00)
    payload = magnitude.shift_right(13) & 0x1FF | 0x7E00
    result = block.select(magnitude.below(0x7F800001), result, payload)
    return (result | sign).to_integer("i16")


def float64_to_float32_odd(block: Block, x: Value) -> Value:
    """Rounds to odd: a second rounding to a narrower type is then as if it had been the only one."""
    near = x.to_float("float")
    back = near.to_float("double")
    bits = near.bits()
    over = (back.absolute() > x.absolute()) & near.absolute().differs(float("inf"))
    lowered = block.select(over, bits - 1, bits)
    infinite = near.absolute().equals(float("inf")) & x.absolute().differs(float("inf"))
    lowered = block.select(infinite, (bits & -0x80000000) | 0x7F7FFFFF, lowered)
    inexact = back.differs(x) & (x.is_nan() ^ 1)
    return block.select(inexact, lowered | 1, lowered).bitcast("float")
