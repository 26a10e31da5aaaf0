"""Numbers as the data types hold them: rounding of floats, and conversions between types.

There is one rule for every conversion, whoever computes it (constant folding, the interpreters, compiled code):

* a float becomes the integer next towards zero; beyond the ends of the integer's range it becomes the nearer end, and a
  NaN becomes zero;
* an integer becomes a narrower one, or one of the other signedness, by wrapping;
* a float becomes a narrower float, and an integer a float, by rounding once to the nearest, ties to even; what lies
  beyond the greatest finite number becomes infinite;
* to bool, everything but zero is true, a NaN included.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from tilewright.support.dtype import DataType

_EXACT_IN_DOUBLE = 1 << 53
_Array = np.ndarray[Any, Any]


def round_to_float32(value: float) -> float:
    """The float32 nearest to a double; too large a value becomes infinite, as in hardware."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def half_bits(value: float) -> int:
    """The bits of the float16 nearest to a double."""
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def bfloat_bits(value: float) -> int:
    """The bits of the bfloat16 nearest to a double, ties to even.

    The upper half of a float32 is a bfloat16. Going through float32 first would round twice, so the double is first
    brought to float32 by rounding to odd, which leaves the second rounding exact.
    """
    if value != value:
        return 0x7FC0
    near = round_to_float32(value)
    bits = int(struct.unpack("<I", struct.pack("<f", near))[0])
    if near != value and abs(near) != float("inf"):
        if abs(near) > abs(value):
            bits -= 1
        bits |= 1
    elif near != value:
        bits = 0x7F7FFFFF | (0x80000000 if value < 0 else 0)
    if bits & 0x7FFFFFFF == 0x7F800000:
        return bits >> 16
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def round_float(dtype: DataType, value: float) -> float:
    """The number of a floating-point type that is nearest to a double, ties to even."""
    if dtype.bits == 64:
        return value
    if dtype.bits == 32:
        return round_to_float32(value)
    if dtype.is_bfloat16:
        return float(struct.unpack("<f", struct.pack("<I", bfloat_bits(value) << 16))[0])
    return float(struct.unpack("<e", struct.pack("<H", half_bits(value)))[0]) if dtype.bits == 16 else value


def integer_ends(dtype: DataType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    return (
        (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
        if dtype.is_int
        else (0, (1 << dtype.bits) - 1)
    )


def float_to_integer(dtype: DataType, value: float) -> int:
    """A float as an integer of a type: towards zero, ending where the type does, and zero for a NaN."""
    if math.isnan(value):
        return 0
    low, high = integer_ends(dtype)
    if math.isinf(value):
        return low if value < 0 else high
    return min(max(math.trunc(value), low), high)


def integer_to_float(dtype: DataType, value: int) -> float:
    """An integer as a number of a floating-point type, rounded once; bfloat16 by way of a double."""
    if abs(value) < _EXACT_IN_DOUBLE or dtype.bits != 32:
        return float(value)
    whole = np.int64(value) if value < 1 << 63 else np.uint64(value)
    return float(whole.astype(np.float32))


def shift_left(bits: int, value: int, count: int) -> int:
    """The bits of an integer type moved up; a count below zero, or of all bits and more, moves them all out."""
    return value << count if 0 <= count < bits else 0


def shift_right(bits: int, value: int, count: int) -> int:
    """The bits of an integer type moved down; where all are moved out, the sign is left."""
    return value >> (count if 0 <= count < bits else bits)


def convert_array(data: _Array, dtype: np.dtype[Any]) -> _Array:
    """An array as another type. NumPy leaves floats beyond the range of an integer type to the processor."""
    if data.dtype == dtype:
        return data
    if dtype.kind not in "iu" or data.dtype.kind in "iub":
        with np.errstate(over="ignore", invalid="ignore"):
            return _to_bfloat16(data, dtype) if dtype.kind == "V" else data.astype(dtype)
    wide = data.astype(np.float64) if data.dtype.itemsize < 4 or data.dtype.kind != "f" else data
    ends = np.iinfo(dtype)
    # The least number is a power of two, or zero, and the one after the greatest is too: both are exact in any float.
    below, above = wide < float(ends.min), wide >= float(ends.max + 1)
    inside = np.where(below | above | np.isnan(wide), np.zeros_like(wide), wide)
    made = inside.astype(dtype)
    made[below] = ends.min
    made[above] = ends.max
    return made


def _to_bfloat16(data: _Array, dtype: np.dtype[Any]) -> _Array:
    """An array as bfloat16, a type of another package, rounded once."""
    if data.dtype.kind not in "iu" and data.dtype.itemsize <= 4:
        return data.astype(dtype)
    exact = data.astype(np.float64)
    near = exact.astype(np.float32)
    # Rounding to odd keeps what the second rounding needs to know.
    bits = near.view(np.uint32)
    inexact = (near != exact) & np.isfinite(exact)
    bits = np.where(inexact & (np.abs(near) > np.abs(exact)), bits - np.uint32(1), bits)
    bits = np.where(inexact, bits | np.uint32(1), bits)
    return bits.view(np.float32).astype(dtype)
