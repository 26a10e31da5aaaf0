"""Boxes of tensors, copied between global and shared memory; see ``tir.ptx.tensor_map``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.expr import Call, IntImm, StringImm
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.expressions import Frame
from tilewright.tir.interpreter.memory import Pointer
from tilewright.tir.ptx_shapes import swizzled


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box that copies move; extents are outermost first."""

    itemsize: int
    swizzle: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


MapOf = Callable[[Frame], TensorMap]


def compile_tensor_map(call: Any, visit: Callable[[Any], Any]) -> MapOf:
    """The description that ``tir.ptx.tensor_map`` built."""
    if not isinstance(call, Call) or not isinstance(call.args[0], StringImm):
        raise TilewrightError(f"{call} is not a tensor map; tir.ptx.tensor_map makes one")
    swizzle, rank = (part.value for part in call.args[1:3] if isinstance(part, IntImm))
    numbers = [visit(part) for part in call.args[3:]]
    itemsize = DataType(call.args[0].value).itemsize

    def made(frame: Frame) -> TensorMap:
        values = [int(number(frame)) for number in numbers]
        parts = [tuple(values[start : start + rank]) for start in (0, rank, 2 * rank)]
        return TensorMap(itemsize, swizzle, *parts)

    return made


def box_bytes(described: TensorMap) -> int:
    """The bytes of a box."""
    return int(np.prod(described.box)) * described.itemsize


def load_box(described: TensorMap, tensor: Pointer, at: Sequence[int], target: Pointer) -> None:
    """Copy the box that begins at some coordinates to shared memory; what is outside the tensor is zero."""
    content = np.zeros((*described.box, described.itemsize), np.uint8)
    inside, source = _inside(described, tensor, at)
    content[inside] = source
    places = _places(described, target)
    target.memory.data[places] = content.reshape(-1, 16)


def store_box(described: TensorMap, tensor: Pointer, at: Sequence[int], source: Pointer) -> None:
    """Copy a box from shared memory; what is outside the tensor is not written."""
    content = source.memory.data[_places(described, source)].reshape(*described.box, described.itemsize)
    inside, target = _inside(described, tensor, at)
    target[...] = content[inside]


def _inside(described: TensorMap, tensor: Pointer, at: Sequence[int]) -> tuple[tuple[slice, ...], Any]:
    """The part of a box that is in the tensor: where it is in the box, and the tensor's bytes there."""
    size = described.itemsize
    strides = [stride * size for stride in described.strides] + [1]
    whole = np.lib.stride_tricks.as_strided(
        tensor.memory.data[tensor.byte_offset :], (*described.shape, size), strides
    )
    in_box, in_tensor = [], []
    for first, extent, length in zip(at, described.box, described.shape, strict=True):
        low, high = max(first, 0), min(first + extent, length)
        in_tensor.append(slice(low, max(high, low)))
        in_box.append(slice(low - first, max(high, low) - first) if low < high else slice(0, 0))
    return tuple(in_box), whole[tuple(in_tensor)]


def _places(described: TensorMap, shared: Pointer) -> np.ndarray[Any, Any]:
    """Where each 16 bytes of a box are in shared memory."""
    least = 8 * described.swizzle or 128
    if shared.byte_offset % least:
        raise TilewrightError(
            f"a box in shared memory begins at a multiple of {least} bytes, not at {shared.byte_offset} of "
            f"{shared.memory.name}"
        )
    count = box_bytes(described) // 16
    starts = [swizzled(shared.byte_offset + 16 * unit, described.swizzle) for unit in range(count)]
    return np.array(starts)[:, None] + np.arange(16)
