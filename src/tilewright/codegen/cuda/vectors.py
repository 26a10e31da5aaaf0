"""Vectors in CUDA: reading and writing several elements at once.

A thread moves 2, 4, 8 or 16 bytes with one instruction if the address is aligned to that size. The built-in vector
types cover the common cases (``float4``); other elements (``half``) are moved as integers of the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.support.dtype import DataType

_LARGEST = 16

_BUILT_IN = {
    "float32": "float",
    "float64": "double",
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "longlong",
    "uint64": "ulonglong",
}
_CARRIERS = {2: "unsigned short", 4: "unsigned int", 8: "uint2", 16: "uint4"}
_LETTERS = "xyzw"


@dataclass(frozen=True)
class Packet:
    """As many elements as one instruction moves: the type that carries them, and how many there are."""

    kind: str
    lanes: int
    element: DataType
    built_in: bool

    def lane(self, name: str, position: int, element_type: str) -> str:
        """One element of a variable of this type."""
        if self.built_in:
            return f"{name}.{_LETTERS[position]}"
        return f"(({element_type}*)&{name})[{position}]"


def packet_for(dtype: DataType) -> Packet | None:
    """How a vector is moved: whole, or in pieces of the largest access; None if it has to go element by element."""
    element = dtype.element
    lanes = min(dtype.lanes, _LARGEST // element.itemsize)
    if dtype.lanes % lanes or lanes < 2 or element.is_bool or element.bits != 8 * element.itemsize:
        return None
    size = lanes * element.itemsize
    base = _BUILT_IN.get(element)
    if base is not None and lanes in (2, 4):
        return Packet(f"{base}{lanes}", lanes, element, True)
    carrier = _CARRIERS.get(size)
    return None if carrier is None else Packet(carrier, lanes, element, False)
