"""Parameters as bytes, in the form that TVM's ``save_param_dict`` has: all names, then all arrays."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray, array, data_type_of, empty, numpy_dtype

_LIST_MAGIC = 0xF7E58D4F05049CB7
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
_MOST_DIMENSIONS = 64


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """The bytes of named arrays."""
    names = [str(name).encode() for name in params]
    parts = [struct.pack("<QQQ", _LIST_MAGIC, 0, len(names))]
    for name in names:
        parts += [struct.pack("<Q", len(name)), name]
    parts.append(struct.pack("<Q", len(names)))
    for value in params.values():
        parts.append(_save_array(value if isinstance(value, NDArray) else array(value)))
    return bytearray().join(parts)


def _save_array(value: NDArray) -> bytes:
    dtype = value.dtype
    content = value.numpy().tobytes()
    head = struct.pack("<QQiii", _ARRAY_MAGIC, 0, 1, 0, len(value.shape))
    kind = struct.pack("<BBH", dtype.type_code, dtype.bits, dtype.lanes)
    shape = struct.pack(f"<{len(value.shape)}q", *value.shape)
    return b"".join([head, kind, shape, struct.pack("<q", len(content)), content])


class _Reader:
    """Reads bytes in order; an error instead of reading past the end."""

    def __init__(self, content: bytes | bytearray | memoryview) -> None:
        self.content = memoryview(content)
        self.at = 0

    def take(self, size: int) -> memoryview:
        if size > len(self.content) - self.at:
            raise failure(
                "ValueError", f"the parameters are damaged: they are cut short at byte {len(self.content)}"
            )
        self.at += size
        return self.content[self.at - size : self.at]

    def unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))


def load_param_dict(param_bytes: bytes | bytearray | memoryview) -> dict[str, NDArray]:
    """The named arrays that ``save_param_dict`` wrote; an error for bytes that are not such a block."""
    reader = _Reader(param_bytes)
    magic, _, count = reader.unpack("<QQQ")
    if magic != _LIST_MAGIC:
        raise failure(
            "ValueError", "these bytes are not parameters: they do not begin with the right magic number"
        )
    names = []
    for _ in range(count):
        names.append(bytes(reader.take(reader.unpack("<Q")[0])).decode(errors="replace"))
    if reader.unpack("<Q")[0] != count:
        raise failure("ValueError", "the parameters are damaged: there are not as many arrays as names")
    return {name: _load_array(reader) for name in names}


def load_array(content: bytes) -> NDArray:
    """One array, as TVM writes it."""
    return _load_array(_Reader(content))


def _load_array(reader: _Reader) -> NDArray:
    magic, _, _, _, ndim, code, bits, lanes = reader.unpack("<QQiiiBBH")
    if magic != _ARRAY_MAGIC or not 0 <= ndim <= _MOST_DIMENSIONS:
        raise failure(
            "ValueError", "the parameters are damaged: an array does not begin with the right magic number"
        )
    shape = reader.unpack(f"<{ndim}q")
    (size,) = reader.unpack("<q")
    dtype = data_type_of(code, bits, lanes)
    element = numpy_dtype(dtype)
    extents = (*shape, lanes) if lanes > 1 else shape
    expected = element.itemsize
    for extent in extents:
        expected *= extent
    if size != expected or min(shape, default=0) < 0:
        raise failure(
            "ValueError", f"the parameters are damaged: an array of shape {shape} does not have {size} bytes"
        )
    values = np.frombuffer(reader.take(size), element).reshape(extents)
    return empty(shape, dtype).copyfrom(values)
