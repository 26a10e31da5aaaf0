"""Reading flatbuffers: tables of numbered fields, vectors and strings, at offsets within one buffer.

Every read is checked against the buffer's end, so that a damaged file is an error and nothing else.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from tilewright.support.errors import ModelError

_FORMATS: Final = {
    "bool": "<?",
    "int8": "<b",
    "uint8": "<B",
    "int16": "<h",
    "uint16": "<H",
    "int32": "<i",
    "uint32": "<I",
    "int64": "<q",
    "uint64": "<Q",
    "float32": "<f",
    "float64": "<d",
}


class Table:
    """A table at a position of a buffer. Fields are numbered as the schema lists them."""

    __slots__ = ("_buffer", "_fields", "_position", "_size")

    def __init__(self, buffer: memoryview, position: int) -> None:
        self._buffer = buffer
        self._position = position
        fields = position - _read(buffer, "int32", position)
        self._size = _read(buffer, "uint16", fields)
        self._fields = fields

    @classmethod
    def root(cls, buffer: memoryview) -> Table:
        """The table that a file holds."""
        return cls(buffer, _read(buffer, "uint32", 0))

    def _at(self, field: int) -> int | None:
        """Where a field is, None if the table does not have it."""
        entry = 4 + 2 * field
        if entry >= self._size:
            return None
        offset = _read(self._buffer, "uint16", self._fields + entry)
        return self._position + offset if offset else None

    def number(self, field: int, kind: str, default: Any) -> Any:
        """A number or truth value."""
        place = self._at(field)
        return default if place is None else _read(self._buffer, kind, place)

    def table(self, field: int) -> Table | None:
        """A table within this one."""
        place = self._at(field)
        return None if place is None else Table(self._buffer, place + _read(self._buffer, "uint32", place))

    def text(self, field: int) -> str:
        """A string; empty if there is none."""
        found = self.vector(field, "uint8")
        return "" if found is None else found.tobytes().decode("utf-8", "replace")

    def vector(self, field: int, kind: str) -> np.ndarray[Any, Any] | None:
        """A vector of numbers, as a view of the buffer."""
        where = self._vector(field)
        if where is None:
            return None
        begin, count = where
        dtype = np.dtype(kind).newbyteorder("<") if kind != "bool" else np.dtype("bool")
        if begin + count * dtype.itemsize > len(self._buffer):
            raise _damaged()
        return np.frombuffer(self._buffer, dtype, count, begin)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables."""
        where = self._vector(field)
        if where is None:
            return []
        begin, count = where
        if begin + 4 * count > len(self._buffer):
            raise _damaged()
        places = range(begin, begin + 4 * count, 4)
        return [Table(self._buffer, place + _read(self._buffer, "uint32", place)) for place in places]

    def _vector(self, field: int) -> tuple[int, int] | None:
        place = self._at(field)
        if place is None:
            return None
        begin = place + _read(self._buffer, "uint32", place)
        return begin + 4, _read(self._buffer, "uint32", begin)


def _read(buffer: memoryview, kind: str, position: int) -> Any:
    if position < 0:
        raise _damaged()
    try:
        return struct.unpack_from(_FORMATS[kind], buffer, position)[0]
    except struct.error:
        raise _damaged() from None


def _damaged() -> ModelError:
    return ModelError(
        "the TFLite model is damaged or truncated: an offset in it points outside of the file. Get or convert it again"
    )
