"""The interpreter's memory: blocks of bytes, pointers into them, and shaped views for buffers.

Every access is checked against the bounds of the block, and an access through a buffer against the buffer's extents.
Fresh memory holds NaN in floats and an odd pattern in integers, so that reads of uninitialised memory are noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.values import bfloat16_bits, bfloat16_from_bits, storage_type


class Memory:
    """A block of bytes with a name for messages; handles stored in it are kept separately from the bytes."""

    __slots__ = ("data", "handles", "name")

    def __init__(self, name: str, data: np.ndarray[Any, Any]) -> None:
        self.name = name
        self.data = data
        self.handles: dict[int, Any] = {}

    @staticmethod
    def fresh(name: str, dtype: DataType, elements: int) -> Memory:
        """New memory for this many elements of the type, lanes included."""
        count = max(elements, 0) * dtype.lanes
        if dtype.is_handle:
            return Memory(name, np.zeros(count * 8, np.uint8))
        kind = storage_type(dtype)
        made = np.empty(count, kind)
        if dtype.is_bfloat16:
            made[:] = 0x7FC0
        elif dtype.is_float:
            made[:] = np.nan
        else:
            made.view(np.uint8)[:] = 1 if dtype.is_bool else 0xA5
        return Memory(name, made.view(np.uint8))


class _BrainFloatCells:
    """Elements of bfloat16 memory, read and written as float32 values."""

    __slots__ = ("bits",)

    def __init__(self, bits: np.ndarray[Any, Any]) -> None:
        self.bits = bits

    def __getitem__(self, position: int) -> Any:
        return bfloat16_from_bits(self.bits[position])[()]

    def __setitem__(self, position: int, value: Any) -> None:
        self.bits[position] = bfloat16_bits(value)


class _HandleCells:
    """Handles in memory, eight bytes each."""

    __slots__ = ("handles",)

    def __init__(self, handles: dict[int, Any]) -> None:
        self.handles = handles

    def __getitem__(self, position: int) -> Any:
        return self.handles.get(position * 8)

    def __setitem__(self, position: int, value: Any) -> None:
        self.handles[position * 8] = value


class Cells:
    """Memory as elements of one type: ``items[start + index]`` for a scalar, ``array`` for vectors."""

    __slots__ = ("array", "dtype", "items", "length", "name", "start")

    def __init__(self, memory: Memory, byte_offset: int, dtype: DataType) -> None:
        self.name = memory.name
        self.dtype = dtype.element
        size = 8 if dtype.is_handle else dtype.itemsize
        if byte_offset % size:
            raise TilewrightError(
                f"a pointer into {memory.name} at byte {byte_offset} is not aligned for {dtype}"
            )
        self.start = byte_offset // size
        self.length = memory.data.size // size
        kind = np.dtype(np.uint64) if dtype.is_handle else storage_type(dtype)
        self.array = memory.data[: self.length * size].view(kind)
        self.items: Any
        if dtype.is_handle:
            self.items = _HandleCells(memory.handles)
        elif dtype.is_bfloat16:
            self.items = _BrainFloatCells(self.array)
        else:
            # A memoryview gives plain Python integers, which NumPy scalars are slow to become.
            self.items = memoryview(self.array.data) if dtype.is_integral else self.array

    def load(self, position: int) -> Any:
        """The element at this distance from the pointer."""
        position += self.start
        if 0 <= position < self.length:
            return self.items[position]
        raise self.outside(position)

    def store(self, position: int, value: Any) -> None:
        """Write the element at this distance from the pointer."""
        position += self.start
        if not 0 <= position < self.length:
            raise self.outside(position)
        self.items[position] = value

    def load_lanes(self, positions: np.ndarray[Any, Any]) -> Any:
        """The elements at these distances, as a vector."""
        found = self.array[self._inside(positions)]
        return bfloat16_from_bits(found) if self.dtype.is_bfloat16 else found

    def store_lanes(self, positions: np.ndarray[Any, Any], values: Any) -> None:
        """Write the elements at these distances, in the order of the lanes."""
        self.array[self._inside(positions)] = bfloat16_bits(values) if self.dtype.is_bfloat16 else values

    def _inside(self, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The positions from the beginning of the memory, which must all be inside it."""
        absolute = positions.astype(np.int64) + self.start
        if absolute.size and (absolute.min() < 0 or absolute.max() >= self.length):
            wrong = absolute[(absolute < 0) | (absolute >= self.length)]
            raise self.outside(int(wrong[0]))
        return absolute

    def outside(self, position: int) -> TilewrightError:
        """The error for an access that misses the memory."""
        return TilewrightError(
            f"out of bounds: {self.name} has {self.length} elements of {self.dtype}, element {position - self.start} "
            + (f"from offset {self.start} " if self.start else "")
            + "was accessed"
        )


class _CellsByType(dict[DataType, Cells]):
    """The memory behind a pointer as elements of each type, made when first requested."""

    def __init__(self, memory: Memory, byte_offset: int) -> None:
        super().__init__()
        self.memory = memory
        self.byte_offset = byte_offset

    def __missing__(self, dtype: DataType) -> Cells:
        made = self[dtype] = Cells(self.memory, self.byte_offset, dtype)
        return made


class Pointer:
    """An address: a block of memory and a distance in bytes. ``cells[dtype]`` is the memory from there on."""

    __slots__ = ("byte_offset", "cells", "memory")

    def __init__(self, memory: Memory, byte_offset: int = 0) -> None:
        self.memory = memory
        self.byte_offset = byte_offset
        self.cells = _CellsByType(memory, byte_offset)

    def moved(self, byte_count: int) -> Pointer:
        """The address this many bytes further on."""
        return Pointer(self.memory, self.byte_offset + byte_count) if byte_count else self


class View:
    """A buffer while it has memory: ``items[start + i * stride + ...]`` for indices from ``low`` up to ``high``."""

    __slots__ = ("cells", "dimensions", "name", "offset", "pointer", "strides")

    def __init__(
        self,
        name: str,
        pointer: Pointer,
        dtype: DataType,
        offset: int,
        lows: Sequence[int],
        extents: Sequence[int],
        strides: Sequence[int],
        *,
        checked: bool = True,
    ) -> None:
        self.name = name
        self.pointer = pointer
        self.cells = pointer.cells[dtype.element]
        self.strides = tuple(strides)
        self.offset = offset - sum(low * stride for low, stride in zip(lows, strides, strict=True))
        # The shape of an unchecked view is not the truth, as a broadcast dimension of stride zero may be read
        # at any index.
        self.dimensions = tuple(
            (low, low + extent, stride) if checked else (-(1 << 62), 1 << 62, stride)
            for low, extent, stride in zip(lows, extents, strides, strict=True)
        )

    def outside(self, indices: Sequence[Any]) -> TilewrightError:
        """The error for indices that miss the box."""
        box = ", ".join(f"{low}:{high}" for low, high, _ in self.dimensions)
        text = ", ".join(str(index) for index in indices)
        return TilewrightError(f"out of bounds: buffer {self.name}[{box}] was accessed at [{text}]")


def compact_strides(extents: Sequence[int]) -> list[int]:
    """The strides of a row-major box."""
    strides = [1] * len(extents)
    for position in range(len(extents) - 2, -1, -1):
        strides[position] = strides[position + 1] * extents[position + 1]
    return strides
