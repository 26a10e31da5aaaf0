"""Darknet's files of weights: a head with the version, then floating-point numbers in the order of the layers."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.support.errors import ModelError

Array = np.ndarray[Any, Any]


class Weights:
    """The numbers of a file, taken from front to back."""

    def __init__(self, content: bytes, where: str) -> None:
        self.where = where
        if len(content) < 16:
            raise ModelError(f"{where} is not a file of Darknet weights: it has only {len(content)} bytes")
        major, minor, _ = struct.unpack_from("<iii", content)
        if major < 0 or minor < 0:
            raise ModelError(f"{where} is not a file of Darknet weights: it has the version {major}.{minor}")
        self.transposed = major > 1000 or minor > 1000
        """True if the matrices of connected layers are stored by inputs."""
        # Since version 0.2 the number of images seen has eight bytes.
        head = 20 if major * 10 + minor >= 2 and not self.transposed else 16
        if len(content) < head or (len(content) - head) % 4:
            raise ModelError(
                f"{where} is not a file of Darknet weights, or it is cut off: {len(content)} bytes are not a head of "
                f"{head} bytes and numbers of four"
            )
        self._numbers = np.frombuffer(content, "<f4", offset=head)
        self._place = 0

    @property
    def left(self) -> int:
        """How many numbers have not been taken."""
        return len(self._numbers) - self._place

    def take(self, shape: Sequence[int], what: str) -> Array:
        """The next numbers, in a shape."""
        size = prod(shape)
        if min(shape) <= 0:
            raise ModelError(f"{what} have the impossible shape {tuple(shape)}")
        if size > self.left:
            raise ModelError(
                f"{self.where} ends within {what}: {size} numbers are needed, {self.left} are left. Is it the file of "
                "this configuration?"
            )
        self._place += size
        return self._numbers[self._place - size : self._place].reshape(tuple(shape)).astype("float32")


def read_weights(given: Any) -> Weights:
    """The weights from a path or from the bytes of a file."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return Weights(bytes(given), "the weights")
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        if not path.is_file():
            raise ModelError(f"there is no file of Darknet weights {path}")
        return Weights(path.read_bytes(), str(path))
    raise ModelError(f"Darknet weights are a path or the bytes of a file, not a {type(given).__name__}")
