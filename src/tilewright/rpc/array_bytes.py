"""The elements of an array as bytes in row-major order, part by part."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.runtime.ndarray import NDArray, numpy_dtype
from tilewright.support.dtype import DataType


def element_bytes(dtype: DataType) -> int:
    """The bytes of one element; an error for those that NumPy has no layout for, such as 24-bit integers."""
    size = (dtype.bits * dtype.lanes + 7) // 8
    if dtype.is_handle or numpy_dtype(dtype).itemsize * dtype.lanes != size:
        raise ValueError(
            f"arrays of {dtype} cannot be sent: their elements are no whole numbers of NumPy's bytes"
        )
    return size


def size_of(array: NDArray) -> int:
    """The bytes of all elements."""
    return array.size * element_bytes(array.dtype)


def _require_inside(array: NDArray, first: int, count: int) -> None:
    size = size_of(array)
    if first > size or count > size - first:
        raise ValueError(f"bytes {first} to {first + count} are outside of an array of {size} bytes")


def _as_bytes(values: npt.NDArray[Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data if values.size else memoryview(bytearray())


class Part:
    """Some bytes of an array, to be written or read.

    They are the array's own memory where the host can use it; otherwise they are a copy, which ``store`` copies back.
    """

    def __init__(self, array: NDArray, first: int, count: int, write: bool) -> None:
        _require_inside(array, first, count)
        if write:
            array._require_writeable()
        self._array = array
        memory = array._memory()
        whole = count == size_of(array)
        self._copy: npt.NDArray[Any] | None = None
        if memory is None:
            dtype = array.dtype
            lanes = (dtype.lanes,) if dtype.lanes > 1 else ()
            self._copy = (
                np.empty(array.shape + lanes, numpy_dtype(dtype)) if write and whole else array.numpy()
            )
            memory = self._copy
        self.view = _as_bytes(memory)[first : first + count]

    def store(self) -> None:
        """Makes the array have what was written to the view."""
        if self._copy is not None and self._copy.size:
            self._array.copyfrom(self._copy)
