"""Arguments and results as bytes. What a reference means is the business of whoever holds the objects."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.rpc.failures import ProtocolError
from tilewright.rpc.frames import Reader, text
from tilewright.rpc.streams import Buffer
from tilewright.runtime.device import Device
from tilewright.runtime.ndarray import data_type_of, dtype_of_numpy
from tilewright.support.dtype import DataType

NONE, INT, FLOAT, BOOL, TEXT, BYTES, DTYPE, DEVICE, REFERENCE, LIST = range(10)
ARRAY, FUNCTION, MODULE = 0x10, 0x11, 0x12

MOST_DEEP = 8
MOST_VALUES = 4096
MOST_DIMENSIONS = 32

U8 = struct.Struct("<B")
U32 = struct.Struct("<I")
U64 = struct.Struct("<Q")
I32 = struct.Struct("<i")
_I64 = struct.Struct("<q")
_F64 = struct.Struct("<d")
DTYPE_LAYOUT = struct.Struct("<BBH")
DEVICE_LAYOUT = struct.Struct("<ii")

_int = struct.Struct("<Bq").pack
_float = struct.Struct("<Bd").pack
_bool = struct.Struct("<BB").pack
_bytes = struct.Struct("<BQ").pack
_reference = struct.Struct("<BQ").pack
_list = struct.Struct("<BI").pack
_TEXT = bytes([TEXT])
_NONE = bytes([NONE])


def dtype_bytes(dtype: DataType) -> bytes:
    """DLPack's three numbers of a data type."""
    return DTYPE_LAYOUT.pack(dtype.type_code, dtype.bits, dtype.lanes)


def array_description(shape: tuple[int, ...], dtype: DataType, device_type: int, device_id: int) -> bytes:
    """What tells an array's form: type, device and extents."""
    return (
        dtype_bytes(dtype)
        + DEVICE_LAYOUT.pack(device_type, device_id)
        + U32.pack(len(shape))
        + struct.pack(f"<{len(shape)}q", *shape)
    )


def read_array_description(reader: Reader) -> tuple[tuple[int, ...], DataType, Device]:
    """Shape, type and device of an array."""
    dtype = _read_dtype(reader)
    device = Device(*reader.take(DEVICE_LAYOUT))
    count = reader.number(U32)
    if count > MOST_DIMENSIONS:
        raise ProtocolError(f"an array of {count} dimensions; at most {MOST_DIMENSIONS} are accepted")
    return reader.take(struct.Struct(f"<{count}q")), dtype, device


def _read_dtype(reader: Reader) -> DataType:
    try:
        return data_type_of(*reader.take(DTYPE_LAYOUT))
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"a data type is not known here: {error}") from error


class Encoder:
    """Values as a head and a bulk. ``refer`` encodes what lives on one side only, or raises a ``TypeError``."""

    def __init__(self, refer: Callable[[Any], bytes]) -> None:
        self._refer = refer
        self.parts: list[bytes] = []
        self.bulk: list[Buffer] = []
        self._count = 0

    def add(self, value: Any, depth: int = 0) -> None:
        """Adds one value."""
        self._count += 1
        if self._count > MOST_VALUES:
            raise ValueError(f"a remote call passes at most {MOST_VALUES} values")
        write = _WRITERS.get(type(value))
        if write is not None:
            self.parts.append(write(value))
        elif isinstance(value, (bytes, bytearray, memoryview)):
            self.parts.append(_bytes(BYTES, len(value)))
            self.bulk.append(value)
        elif isinstance(value, (list, tuple)):
            if depth >= MOST_DEEP:
                raise ValueError(f"lists are sent at most {MOST_DEEP} deep")
            self.parts.append(_list(LIST, len(value)))
            for one in value:
                self.add(one, depth + 1)
        else:
            self.parts.append(self._other(value))

    def _other(self, value: Any) -> bytes:
        for kind, write in _SUBCLASSES.items():
            if isinstance(value, kind):
                return write(value)
        return self._refer(value)

    def head(self) -> bytes:
        """The encoded values."""
        return b"".join(self.parts)


def reference(handle: int) -> bytes:
    """An object of the other side."""
    return _reference(REFERENCE, handle)


def _write_int(value: Any) -> bytes:
    try:
        return _int(INT, value)
    except struct.error:
        raise OverflowError(f"the integer {value} does not fit in 64 bits") from None


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: _NONE,
    int: _write_int,
    float: lambda value: _float(FLOAT, value),
    bool: lambda value: _bool(BOOL, value),
    str: lambda value: _TEXT + text(value),
}

# Subclasses, in the order in which they are tried: a data type is a string.
_SUBCLASSES: dict[type, Callable[[Any], bytes]] = {
    DataType: lambda value: bytes([DTYPE]) + dtype_bytes(value),
    np.dtype: lambda value: bytes([DTYPE]) + dtype_bytes(dtype_of_numpy(value)),
    np.bool_: lambda value: _bool(BOOL, bool(value)),
    np.integer: lambda value: _write_int(int(value)),
    np.floating: lambda value: _float(FLOAT, float(value)),
    bool: lambda value: _bool(BOOL, value),
    int: lambda value: _write_int(int(value)),
    float: lambda value: _float(FLOAT, value),
    str: lambda value: _TEXT + text(value),
}


class Decoder:
    """Values from a head and a bulk. ``resolve`` gives the object of a tag that only one side may send."""

    def __init__(self, reader: Reader, bulk: bytes, resolve: Callable[[int, Reader], Any]) -> None:
        self._reader, self._bulk, self._resolve = reader, bulk, resolve
        self._at = 0
        self._count = 0

    def value(self, depth: int = 0) -> Any:
        """The next value."""
        self._count += 1
        if self._count > MOST_VALUES:
            raise ProtocolError(f"a message with more than {MOST_VALUES} values")
        reader = self._reader
        tag = reader.number(U8)
        read = _READERS.get(tag)
        if read is not None:
            return read(reader)
        if tag == BYTES:
            size = reader.number(U64)
            start = self._at
            if start + size > len(self._bulk):
                raise ProtocolError("a message's bulk is shorter than its byte strings")
            self._at = start + size
            return self._bulk[start : self._at]
        if tag == LIST:
            if depth >= MOST_DEEP:
                raise ProtocolError(f"a list more than {MOST_DEEP} deep")
            count = reader.number(U32)
            if count > MOST_VALUES:
                raise ProtocolError(f"a list of {count} values; at most {MOST_VALUES} are accepted")
            return [self.value(depth + 1) for _ in range(count)]
        return self._resolve(tag, reader)

    def values(self) -> list[Any]:
        """A number of values, preceded by it."""
        count = self._reader.number(U32)
        if count > MOST_VALUES:
            raise ProtocolError(f"{count} values; at most {MOST_VALUES} are accepted")
        return [self.value() for _ in range(count)]

    def end(self) -> None:
        """Complains about what is left of head or bulk."""
        self._reader.end()
        if self._at != len(self._bulk):
            raise ProtocolError(f"a message's bulk has {len(self._bulk) - self._at} bytes too many")


def _read_bool(reader: Reader) -> bool:
    value = reader.number(U8)
    if value > 1:
        raise ProtocolError(f"a bool of value {value}")
    return bool(value)


_READERS: dict[int, Callable[[Reader], Any]] = {
    NONE: lambda reader: None,
    INT: lambda reader: reader.number(_I64),
    FLOAT: lambda reader: reader.number(_F64),
    BOOL: _read_bool,
    TEXT: lambda reader: reader.text(),
    DTYPE: _read_dtype,
    DEVICE: lambda reader: Device(*reader.take(DEVICE_LAYOUT)),
}
