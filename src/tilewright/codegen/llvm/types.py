"""LLVM's names for data types, and constants as text.

In registers a bool is ``i1``; in memory it takes a byte, like every integer of fewer than eight bits. bfloat16 is
stored as ``i16`` and computed in float32, because few targets have arithmetic for it; where there is, it is ``bfloat``.
float16 is ``half`` if the target converts it in hardware, otherwise ``i16``, so that no helper routine outside libc is
ever called.
"""

from __future__ import annotations

import struct

from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError
from tilewright.support.numbers import bfloat_bits, half_bits, round_to_float32


class Types:
    """The type names for one target: how wide a pointer is, and whether ``half`` and ``bfloat`` are native."""

    def __init__(self, pointer_bits: int, native_half: bool, native_bfloat: bool = False) -> None:
        self.pointer_bits = pointer_bits
        self.native_half = native_half
        self.native_bfloat = native_bfloat
        self.index = f"i{pointer_bits}"
        self._register: dict[DataType, str] = {}
        self._memory: dict[DataType, str] = {}

    def register(self, dtype: DataType) -> str:
        """The type of a value of ``dtype`` in a register."""
        found = self._register.get(dtype)
        if found is None:
            found = self._register[dtype] = vector(self._element(dtype), dtype.lanes)
        return found

    def memory(self, dtype: DataType) -> str:
        """The type of a value of ``dtype`` in memory."""
        found = self._memory.get(dtype)
        if found is None:
            element = self._element(dtype)
            if dtype.is_integral:
                element = f"i{8 * dtype.itemsize}"
            found = self._memory[dtype] = vector(element, dtype.lanes)
        return found

    def is_soft(self, dtype: DataType) -> bool:
        """True for a float that is stored as ``i16`` and computed in float32."""
        if dtype.is_bfloat16:
            return not self.native_bfloat
        return dtype.is_float16 and not self.native_half

    def _element(self, dtype: DataType) -> str:
        if dtype.is_handle:
            return "ptr"
        if dtype.is_integral:
            return f"i{dtype.bits}"
        if dtype.type_code >= 128:
            raise CodegenError(
                f"{dtype} is a custom type: lower it with LowerCustomDatatypes before code is made"
            )
        if self.is_soft(dtype):
            return "i16"
        if dtype.is_bfloat16:
            return "bfloat"
        names = {16: "half", 32: "float", 64: "double"}
        if dtype.bits not in names:
            raise CodegenError(
                f"{dtype} has no arithmetic on this target; convert it with integers of the same size"
            )
        return names[dtype.bits]


def vector(element: str, lanes: int) -> str:
    """The type of ``lanes`` elements; one lane is the element itself."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def gep_element(dtype: DataType) -> str:
    """A type of the size that one element of ``dtype`` takes in memory, to step by."""
    if dtype.is_handle:
        return "ptr"
    size = dtype.itemsize
    return f"i{8 * size}" if size in (1, 2, 4, 8) else f"[{size} x i8]"


def splat(element: str, constant: str, lanes: int) -> str:
    """A constant in every lane."""
    return constant if lanes == 1 else f"splat ({element} {constant})"


def float_bits(value: float) -> str:
    """A ``float`` or ``double`` constant, which LLVM writes as the bits of the double in both cases."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def integer_constant(dtype: DataType, value: int) -> str:
    """An integer, bool or null-pointer constant."""
    if dtype.is_handle:
        return "null" if value == 0 else f"inttoptr (i64 {value} to ptr)"
    if dtype.is_bool:
        return "true" if value else "false"
    return str(value)


def float_constant(types: Types, dtype: DataType, value: float) -> str:
    """A floating-point constant of one lane, rounded to its type."""
    if dtype.is_bfloat16:
        bits = bfloat_bits(value)
        return f"0xR{bits:04X}" if types.native_bfloat else str(bits)
    if dtype.is_float16:
        bits = half_bits(value)
        return f"0xH{bits:04X}" if types.native_half else str(bits)
    return float_bits(value if dtype.bits == 64 else round_to_float32(value))
