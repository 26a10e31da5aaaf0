"""Weights of Core ML models: those of neural networks, which may be quantised, and values of ML programs."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from tilewright.relay.frontend.common.protobuf import Message
from tilewright.support.errors import ModelError

Array = np.ndarray[Any, Any]
_SENTINEL: Final = 0xDEADBEEF
"""How the description of a blob begins."""
DTYPES: Final[dict[str, str]] = {
    "BOOL": "bool",
    "FLOAT16": "float16",
    "FLOAT32": "float32",
    "FLOAT64": "float64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT4": "int8",
    "UINT1": "uint8",
    "UINT2": "uint8",
    "UINT3": "uint8",
    "UINT4": "uint8",
    "UINT6": "uint8",
}
"""Element types of ML programs; those of less than a byte are held in bytes."""
_BITS: Final = {"INT4": 4, "UINT1": 1, "UINT2": 2, "UINT3": 3, "UINT4": 4, "UINT6": 6}


def unpacked(content: bytes, bits: int, count: int, most_first: bool) -> Array:
    """Numbers of a few bits each, one after the other."""
    held = np.frombuffer(content, "uint8")
    flat = np.unpackbits(held, bitorder="big") if most_first else np.unpackbits(held, bitorder="little")
    flat = flat[: bits * count]
    if flat.size < bits * count:
        raise ModelError(f"{count} numbers of {bits} bits do not fit {len(content)} bytes")
    powers = 1 << np.arange(bits)
    made: Array = (flat.reshape(count, bits) * (powers[::-1] if most_first else powers)).sum(1)
    return made.astype("uint8")


def weight_values(weights: Message, shape: Sequence[int], what: str) -> Array:
    """The weights of a layer as float32."""
    count = prod(shape)
    if len(weights.floatValue):
        found = np.asarray(weights.floatValue, "float32")
    elif weights.float16Value:
        found = np.frombuffer(weights.float16Value, "float16").astype("float32")
    elif weights.int8RawValue:
        found = _dequantized(
            np.frombuffer(weights.int8RawValue, "int8").astype("float32"), weights.quantization, shape, what
        )
    elif weights.rawValue:
        bits = weights.quantization.numberOfBits
        if not 1 <= bits <= 8:
            raise ModelError(f"{what} has numbers of {bits} bits")
        numbers = unpacked(weights.rawValue, bits, count, True)
        found = _dequantized(numbers.astype("float32"), weights.quantization, shape, what)
    else:
        raise ModelError(f"{what} has no values")
    if found.size != count:
        raise ModelError(f"{what} has {found.size} values, and its shape {tuple(shape)} has {count}")
    return found.reshape(shape)


def _dequantized(numbers: Array, how: Message, shape: Sequence[int], what: str) -> Array:
    if how.has("lookupTableQuantization"):
        table = how.lookupTableQuantization.floatValue
        if numbers.size and numbers.max() >= len(table):
            raise ModelError(f"{what} has indices outside of its table of {len(table)}")
        return np.take(np.asarray(table, "float32"), numbers.astype("int64"))
    linear = how.linearQuantization
    scale, bias = np.asarray(linear.scale, "float32"), np.asarray(linear.bias, "float32")
    # One number for all, or one for each output channel, which comes first.
    rows = numbers.reshape(len(scale) if scale.size > 1 else 1, -1)
    made: Array = rows * (scale.reshape(-1, 1) if scale.size else 1.0)
    if bias.size:
        made = made + bias.reshape(-1, 1)
    return made.reshape(-1)


class Blobs:
    """The files of weights beside an ML program, in the folder of its package."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._read: dict[str, bytes] = {}

    def content(self, name: str) -> bytes:
        """The content of a file, which has to be inside the folder."""
        if name not in self._read:
            if self.folder is None:
                raise ModelError(f"the weights are in the file {name}: give the path of the package")
            inside = self.folder.resolve()
            path = (inside / name.removeprefix("@model_path/")).resolve()
            if not path.is_relative_to(inside):
                raise ModelError(f"the weights' file {name} is outside of the model's folder")
            if not path.is_file():
                raise ModelError(f"the weights' file {name} is not in the model's folder")
            self._read[name] = path.read_bytes()
        return self._read[name]

    def blob(self, name: str, offset: int) -> bytes:
        """The bytes of one tensor, whose description stands at an offset."""
        content = self.content(name)
        if offset + 24 > len(content):
            raise ModelError(f"the weights' file {name} ends before offset {offset}")
        sentinel, _, size, begin = struct.unpack_from("<IIQQ", content, offset)
        if sentinel != _SENTINEL or begin + size > len(content):
            raise ModelError(f"the weights' file {name} is damaged at offset {offset}")
        return content[begin : begin + size]


def tensor_shape(kind: Message) -> tuple[int | None, ...]:
    """The shape of a tensor type; an open size is None."""
    return tuple(int(one.constant.size) if one.has("constant") else None for one in kind.dimensions)


def program_value(value: Message, blobs: Blobs) -> Any:
    """A value of an ML program: an array, a text, a list of values."""
    immediate = value.immediateValue
    if value.has("immediateValue") and not immediate.has("tensor"):
        if immediate.has("tuple"):
            return [program_value(one, blobs) for one in immediate.tuple.values]
        if immediate.has("list"):
            return [program_value(one, blobs) for one in immediate.list.values]
        raise ModelError("a value of the program is a dictionary, which is not supported")
    kind = value.type.tensorType
    shape = [size for size in tensor_shape(kind) if size is not None]
    if kind.dataType == "STRING":
        texts = list(immediate.tensor.strings.values)
        return texts if shape else (texts[0] if texts else "")
    if kind.dataType not in DTYPES:
        raise ModelError(f"a value of the program has elements of the type {kind.dataType}")
    dtype, count = DTYPES[kind.dataType], prod(shape)
    if value.has("blobFileValue"):
        found = _from_bytes(
            blobs.blob(value.blobFileValue.fileName, value.blobFileValue.offset), kind.dataType, count
        )
    else:
        held = immediate.tensor
        which = held.which("floats", "ints", "bools", "longInts", "doubles", "bytes")
        if which == "bytes":
            found = _from_bytes(held.bytes.values, kind.dataType, count)
        else:
            listed = getattr(held, which).values if which else []
            found = np.asarray(listed).astype(dtype)
    if found.size != count:
        raise ModelError(
            f"a value of the program has {found.size} elements, and its shape {shape} has {count}"
        )
    return found.reshape(shape)


def _from_bytes(content: bytes, kind: str, count: int) -> Array:
    if kind not in _BITS:
        dtype = np.dtype(DTYPES[kind])
        if len(content) % dtype.itemsize:
            raise ModelError(f"{len(content)} bytes are not elements of {dtype}")
        return np.frombuffer(content, dtype)
    numbers = unpacked(content, _BITS[kind], count, False)
    return ((numbers ^ 8).astype("int8") - 8).astype("int8") if kind == "INT4" else numbers
