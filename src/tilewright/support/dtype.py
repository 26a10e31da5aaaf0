"""Data types of scalars and vectors.

A ``DataType`` is a string (``"float32x8"``) that knows its parts, so that comparing with a plain string works, as users
expect of ``expr.dtype``. Instances are unique: ``DataType("int32") is DataType("int32")``.

Kinds: int and uint of 1 to 64 bits, float of 16, 32 and 64 bits, bfloat16, the eight-bit floats (storage only), bool (a
one-bit uint) and handle (a pointer). ``int`` without a width means int32, ``float`` float32, ``uint`` uint32.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from tilewright.support.errors import ExpressionError

INT: Final = 0
UINT: Final = 1
FLOAT: Final = 2
HANDLE: Final = 3
BFLOAT: Final = 4

_PATTERN = re.compile(r"(bool|handle|bfloat|float|uint|int|custom\[\w+\])(\d*)(?:x(\d+))?")
_KINDS = {"int": INT, "uint": UINT, "float": FLOAT, "handle": HANDLE, "bfloat": BFLOAT}
_DEFAULT_BITS = {"int": 32, "uint": 32, "float": 32, "handle": 64, "bfloat": 16}
_BITS = {INT: range(1, 65), UINT: range(1, 65), FLOAT: (8, 16, 32, 64), HANDLE: (0, 64), BFLOAT: (16,)}


class DataType(str):
    """A data type; ``type_code`` is DLPack's, ``bits`` is of one lane, ``lanes`` the number of vector elements."""

    __slots__ = (
        "bits",
        "is_bool",
        "is_float",
        "is_handle",
        "is_int",
        "is_integral",
        "is_uint",
        "lanes",
        "type_code",
    )

    _interned: ClassVar[dict[str, DataType]] = {}

    type_code: int
    bits: int
    lanes: int
    is_int: bool
    is_uint: bool
    is_float: bool
    is_bool: bool
    is_handle: bool
    is_integral: bool

    def __new__(cls, text: str) -> DataType:
        found = cls._interned.get(text)
        if found is not None:
            return found
        return cls._parse(str(text))

    @classmethod
    def _parse(cls, text: str) -> DataType:
        if text == "":
            text = "handle"
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise ExpressionError(
                f"{text!r} is not a data type; expected for example int32, float16, uint8x4, bool, handle"
            )
        kind, bits_text, lanes_text = match.groups()
        lanes = int(lanes_text) if lanes_text else 1
        if kind == "bool":
            code, bits = UINT, 1
        elif kind.startswith("custom"):
            code, bits = 129, int(bits_text or 32)
        else:
            code = _KINDS[kind]
            bits = int(bits_text) if bits_text else _DEFAULT_BITS[kind]
            if bits not in _BITS[code]:
                raise ExpressionError(f"{text!r} is not a data type: {kind} cannot have {bits} bits")
        if not 1 <= lanes <= 65535:
            raise ExpressionError(f"{text!r} is not a data type: {lanes} lanes are not between 1 and 65535")
        base = "bool" if (code, bits) == (UINT, 1) else "handle" if code == HANDLE else f"{kind}{bits}"
        name = base if lanes == 1 else f"{base}x{lanes}"
        made = cls._interned.get(name)
        if made is None:
            made = str.__new__(cls, name)
            made.type_code, made.bits, made.lanes = code, bits, lanes
            made.is_int = code == INT
            made.is_bool = code == UINT and bits == 1
            made.is_uint = code == UINT
            made.is_float = code in (FLOAT, BFLOAT)
            made.is_handle = code == HANDLE
            made.is_integral = code in (INT, UINT)
            cls._interned[name] = made
        cls._interned[text] = made
        return made

    def __reduce__(self) -> tuple[type[DataType], tuple[str]]:
        return DataType, (str(self),)

    @property
    def is_bfloat16(self) -> bool:
        """True for bfloat16 of any number of lanes."""
        return self.type_code == BFLOAT

    @property
    def is_float16(self) -> bool:
        """True for IEEE half precision of any number of lanes."""
        return self.type_code == FLOAT and self.bits == 16

    @property
    def itemsize(self) -> int:
        """Bytes of one lane in memory; sub-byte types take a byte."""
        return (self.bits + 7) // 8

    @property
    def element(self) -> DataType:
        """The type of one lane."""
        return self if self.lanes == 1 else self.with_lanes(1)

    def with_lanes(self, lanes: int) -> DataType:
        """The same element type with this many lanes."""
        if lanes == self.lanes:
            return self
        base = str(self).rpartition("x")[0] if self.lanes > 1 else str(self)
        return DataType(base if lanes == 1 else f"{base}x{lanes}")

    def with_bits(self, bits: int) -> DataType:
        """The same kind and lanes with this many bits a lane."""
        kind = next(name for name, code in _KINDS.items() if code == self.type_code)
        return DataType(f"{kind}{bits}" if self.lanes == 1 else f"{kind}{bits}x{self.lanes}")


BOOL: Final = DataType("bool")
INT32: Final = DataType("int32")
INT64: Final = DataType("int64")
FLOAT32: Final = DataType("float32")
HANDLE_TYPE: Final = DataType("handle")
