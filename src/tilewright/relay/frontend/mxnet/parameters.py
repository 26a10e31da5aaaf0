"""MXNet's parameters: files of named arrays (``mx.nd.save``, ``block.export``), and dictionaries of arrays."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

from tilewright.relay.frontend.common.shapes import LARGEST_TENSOR
from tilewright.support.errors import ModelError

Array = np.ndarray[Any, Any]

LIST_MAGIC: Final = 0x112
"""The first eight bytes of a file, little-endian."""
_MAGIC_1: Final = 0xF993FAC8
_MAGIC_2: Final = 0xF993FAC9
_MAGIC_3: Final = 0xF993FACA
"""The third version knows arrays without axes; before it, no axes meant that there is no array."""
_DENSE: Final = 0
_MOST_AXES: Final = 32

_TYPES: Final = (
    "float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "int16", "uint16", "uint32", "uint64",
    "bfloat16",
)  # fmt: skip
"""By MXNet's numbers."""


def parameter_values(given: Any, what: str) -> dict[str, Array]:
    """Arrays by name, from a dictionary of arrays, a path, or the bytes of a file; none for None."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {_plain(str(name)): _array(str(name), value) for name, value in given.items()}
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        if not path.is_file():
            raise ModelError(f"there is no file of parameters {path}")
        return _by_name(path.read_bytes(), str(path))
    if isinstance(given, (bytes, bytearray, memoryview)):
        return _by_name(bytes(given), what)
    raise ModelError(
        f"{what} are a dictionary of arrays, a path or the bytes of a file, not a {type(given).__name__}"
    )


def _plain(name: str) -> str:
    """A name without ``arg:`` or ``aux:``, which files have before it."""
    return name[4:] if name.startswith(("arg:", "aux:")) else name


def _array(name: str, value: Any) -> Array:
    for method in ("asnumpy", "numpy"):
        if hasattr(value, method):
            value = getattr(value, method)()
            break
    found = np.asarray(value)
    if found.dtype.kind not in "fiub" and found.dtype != ml_dtypes.bfloat16:
        raise ModelError(f"the parameter {name!r} holds {found.dtype}, not numbers")
    return found


def _by_name(content: bytes, where: str) -> dict[str, Array]:
    names, arrays = read_arrays(content, where)
    if len(names) != len(arrays):
        raise ModelError(f"{where} has {len(arrays)} arrays and {len(names)} names")
    found: dict[str, Array] = {}
    for name, value in zip(names, arrays, strict=True):
        if value is not None:
            found[_plain(name)] = value
    return found


def read_arrays(content: bytes, where: str = "the file") -> tuple[list[str], list[Array | None]]:
    """The names (none where the file has none) and the arrays of a file; None for an array that is not there."""
    reader = _Reader(content, where)
    magic, _ = reader.numbers("QQ", "the head")
    if magic != LIST_MAGIC:
        raise ModelError(
            f"{where} is not a file of MXNet parameters: it begins with {magic:#x}, not {LIST_MAGIC:#x}"
        )
    arrays = [reader.array(number) for number in range(reader.count("arrays"))]
    names = [reader.text() for _ in range(reader.count("names"))]
    if reader.place != len(content):
        raise ModelError(f"{where} has {len(content) - reader.place} bytes after its last name")
    return names, arrays


class _Reader:
    """Reads a file from front to back; whatever it asks for is checked against what is left."""

    def __init__(self, content: bytes, where: str) -> None:
        self.content = content
        self.where = where
        self.place = 0

    def taken(self, size: int, what: str) -> bytes:
        """The next bytes."""
        left = len(self.content) - self.place
        if size > left:
            raise ModelError(f"{self.where} ends within {what}: {size} bytes are needed, {left} are left")
        self.place += size
        return self.content[self.place - size : self.place]

    def numbers(self, letters: str, what: str) -> tuple[Any, ...]:
        """The next numbers, by their letters in ``struct``."""
        form = f"<{letters}"
        return struct.unpack(form, self.taken(struct.calcsize(form), what))

    def count(self, what: str) -> int:
        """How many arrays or names follow; each has eight bytes at least."""
        (found,) = self.numbers("Q", f"the number of {what}")
        if found * 8 > len(self.content) - self.place:
            raise ModelError(f"{self.where} claims {found} {what}, more than its size allows")
        return int(found)

    def text(self) -> str:
        """A name."""
        (size,) = self.numbers("Q", "the length of a name")
        try:
            return self.taken(size, "a name").decode()
        except UnicodeDecodeError as error:
            raise ModelError(f"{self.where}: a name is not text ({error})") from error

    def array(self, number: int) -> Array | None:
        """An array in any of the four versions of its form."""
        what = f"array {number}"
        (magic,) = self.numbers("I", what)
        if magic in (_MAGIC_2, _MAGIC_3):
            (storage,) = self.numbers("i", what)
            if storage != _DENSE:
                raise ModelError(f"{self.where}: {what} is sparse; only dense parameters are read")
        if magic in (_MAGIC_1, _MAGIC_2, _MAGIC_3):
            (axes,) = self.numbers("i", what)
            letter = "q"
        else:
            # The first form has no number of its own: it begins with the number of axes.
            axes, letter = magic, "I"
        absent = -1 if magic == _MAGIC_3 else 0
        if axes == absent:
            return None
        if not 0 <= axes <= _MOST_AXES:
            raise ModelError(f"{self.where}: {what} has {axes} axes")
        shape = tuple(int(one) for one in self.numbers(letter * axes, f"the shape of {what}"))
        _, _, flag = self.numbers("iii", f"the type of {what}")
        if not 0 <= flag < len(_TYPES):
            raise ModelError(f"{self.where}: {what} has the unknown element type {flag}")
        kind = np.dtype(ml_dtypes.bfloat16) if _TYPES[flag] == "bfloat16" else np.dtype(_TYPES[flag])
        size = prod(shape) * kind.itemsize
        if min(shape, default=0) < 0 or size > LARGEST_TENSOR:
            raise ModelError(f"{self.where}: {what} has the impossible shape {shape}")
        return np.frombuffer(self.taken(size, f"the values of {what}"), kind).reshape(shape)
