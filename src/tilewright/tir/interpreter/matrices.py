"""Matrices that a warp holds in registers, or that are in shared memory, and their products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter import float8
from tilewright.tir.interpreter.memory import Pointer
from tilewright.tir.interpreter.values import bfloat16_from_bits
from tilewright.tir.ptx_shapes import (
    BITS,
    mma_fragment_index,
    mma_k,
    swizzled,
    wgmma_fragment_index,
    wgmma_k,
    wgmma_offset,
)

_STORED: Final = {
    "float16": np.float16,
    "bfloat16": np.uint16,
    "tf32": np.uint32,
    "int8": np.int8,
    "uint8": np.uint8,
    "e4m3": np.uint8,
    "e5m2": np.uint8,
    "float32": np.float32,
    "int32": np.int32,
}


@dataclass(frozen=True)
class Descriptor:
    """A matrix in shared memory; see ``tir.ptx.wgmma_descriptor``."""

    source: Pointer
    leading: int
    stride: int
    swizzle: int


def numbers(content: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Bytes as the numbers that they stand for."""
    stored = np.ascontiguousarray(content).view(_STORED[dtype])
    if dtype == "bfloat16":
        stored = bfloat16_from_bits(stored)
    elif dtype == "tf32":
        # The hardware ignores the lowest 13 bits.
        stored = (stored & np.uint32(0xFFFFE000)).view(np.float32)
    elif dtype in ("e4m3", "e5m2"):
        stored = float8.decode(stored, dtype)
    return stored.astype(np.float64)


def mma_result(values: dict[int, Any], shape: str, a_type: str, b_type: str, c_type: str) -> list[Any]:
    """The bytes of each thread's part of ``a @ b + c``, from the bytes of what each thread holds."""
    k = mma_k(shape)
    a, b, c = np.zeros((16, k)), np.zeros((k, 8)), np.zeros((16, 8))
    parts = (("a", a, a_type), ("b", b, b_type), ("c", c, c_type))
    for lane, brought in values.items():
        for (name, matrix, dtype), content in zip(parts, brought, strict=True):
            for element, one in enumerate(numbers(content, dtype)):
                matrix[mma_fragment_index(name, shape, dtype, lane, element)] = one
    total = _finished(a @ b + c, c_type)
    count = 128 // 32
    return [
        np.array(
            [total[mma_fragment_index("c", shape, c_type, lane, element)] for element in range(count)],
            total.dtype,
        ).view(np.uint8)
        for lane in range(32)
    ]


def _finished(total: np.ndarray[Any, Any], c_type: str) -> np.ndarray[Any, Any]:
    if c_type == "int32":
        return total.astype(np.int64).astype(np.int32)
    return total.astype(_STORED[c_type])


def wgmma_result(
    values: dict[int, Any], n: int, a_type: str, b_type: str, c_type: str, flags: int
) -> list[np.ndarray[Any, Any]]:
    """Each thread's numbers of ``a @ b``, in float64."""
    k = wgmma_k(a_type)
    descriptors = {brought[1] for brought in values.values()}
    if len({(one.source.memory, one.source.byte_offset, one.leading, one.stride) for one in descriptors}) > 1:
        raise TilewrightError("the threads of a group give wgmma different descriptors")
    if flags & 1:
        a = np.zeros((64, k))
        for thread, (content, _) in values.items():
            for element, one in enumerate(numbers(content, a_type)):
                row, column = mma_fragment_index("a", f"m16n8k{k}", a_type, thread % 32, element)
                a[thread // 32 * 16 + row, column] = one
    else:
        a = _in_shared(values[0][0], 64, k, a_type, bool(flags & 2))
    b = _in_shared(values[0][1], n, k, b_type, bool(flags & 4))
    total = a @ b.T
    return [
        np.array([total[wgmma_fragment_index(c_type, thread, element)] for element in range(n // 2)])
        for thread in range(128)
    ]


def _in_shared(
    descriptor: Descriptor, rows: int, k: int, dtype: str, transposed: bool
) -> np.ndarray[Any, Any]:
    """The matrix that a descriptor describes, by rows along m or n."""
    source, itemsize = descriptor.source, BITS[dtype] // 8
    data = source.memory.data
    offsets = [
        swizzled(
            source.byte_offset
            + wgmma_offset(
                row, column, itemsize, descriptor.leading, descriptor.stride, descriptor.swizzle, transposed
            ),
            descriptor.swizzle,
        )
        for row in range(rows)
        for column in range(k)
    ]
    places = np.array(offsets)[:, None] + np.arange(itemsize)
    if places.min() < 0 or places.max() >= data.size:
        raise TilewrightError(
            f"wgmma: out of bounds: {source.memory.name} has {data.size} bytes, byte {places.max()} was read"
        )
    return numbers(data[places].reshape(-1), dtype).reshape(rows, k)
