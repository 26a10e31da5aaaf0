"""Elements moved: spread out, between space and depth or batch, sliced, gathered and masked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

import numpy as np

Array = Any
"""A NumPy array."""


def dilate_python(
    input_np: Array, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: str | None = None
) -> Array:
    """The elements with ``stride - 1`` others between neighbours along each axis."""
    shape = [(extent - 1) * step + 1 for extent, step in zip(input_np.shape, strides, strict=True)]
    result = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    result[tuple(slice(None, None, step) for step in strides)] = input_np
    return result


def depth_to_space_python(data: Array, block_size: int, mode: str = "DCR") -> Array:
    """``NCHW`` data with channels moved into blocks of height and width."""
    batch, channels, height, width = data.shape
    deep = channels // block_size**2
    if mode == "DCR":
        split = data.reshape(batch, block_size, block_size, deep, height, width)
        split = split.transpose(0, 3, 4, 1, 5, 2)
    else:
        split = data.reshape(batch, deep, block_size, block_size, height, width)
        split = split.transpose(0, 1, 4, 2, 5, 3)
    return split.reshape(batch, deep, height * block_size, width * block_size)


def space_to_depth_python(data: Array, block_size: int) -> Array:
    """``NCHW`` data with blocks of height and width moved into channels."""
    batch, channels, height, width = data.shape
    rows, columns = height // block_size, width // block_size
    split = data.reshape(batch, channels, rows, block_size, columns, block_size)
    return split.transpose(0, 3, 5, 1, 2, 4).reshape(batch, channels * block_size**2, rows, columns)


def space_to_batch_nd_python(
    data: Array,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0,
) -> Array:
    """The axes after the first padded, cut into blocks, and the places within a block moved to the batch."""
    count = len(block_shape)
    rest = data.ndim - count - 1
    widths = [(0, 0), *zip(pad_before, pad_after, strict=True), *[(0, 0)] * rest]
    padded = np.pad(data, widths, constant_values=pad_value)
    batch, extents = padded.shape[0], padded.shape[1 : count + 1]
    parts = [part for n, block in zip(extents, block_shape, strict=True) for part in (n // block, block)]
    split = padded.reshape(batch, *parts, *padded.shape[count + 1 :])
    inner = [2 * axis + 2 for axis in range(count)]
    outer = [2 * axis + 1 for axis in range(count)]
    moved = split.transpose(*inner, 0, *outer, *range(2 * count + 1, split.ndim))
    return moved.reshape(batch * int(np.prod(block_shape)), *parts[::2], *padded.shape[count + 1 :])


def batch_to_space_nd_python(
    data: Array, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> Array:
    """The inverse of ``space_to_batch_nd_python``, with elements cut off instead of padded."""
    count = len(block_shape)
    batch = data.shape[0] // int(np.prod(block_shape))
    split = data.reshape(*block_shape, batch, *data.shape[1:])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    split = split.transpose(*order, *range(2 * count + 1, split.ndim))
    extents = [n * block for n, block in zip(data.shape[1 : count + 1], block_shape, strict=True)]
    whole = split.reshape(batch, *extents, *data.shape[count + 1 :])
    kept = [
        slice(first, extent - last)
        for first, last, extent in zip(crop_begin_list, crop_end_list, extents, strict=True)
    ]
    return whole[(slice(None), *kept)]


def reorg_python(a_np: Array, stride: int) -> Array:
    """YOLO's reorganisation: the data read as if it had fewer, larger planes, then written plane by plane."""
    batch, channels, height, width = a_np.shape
    deep = channels // stride**2
    flat = a_np.reshape(batch, deep, height * stride, width * stride)
    split = flat.reshape(batch, deep, height, stride, width, stride)
    moved = split.transpose(0, 3, 5, 1, 2, 4)
    return moved.reshape(batch, channels * stride**2, height // stride, width // stride)


def strided_slice_python(
    data: Array,
    begin: Any,
    end: Any,
    strides: Any,
    slice_mode: str = "end",
    axes: Sequence[int] | None = None,
) -> Array:
    """A slice, where ``slice_mode="size"`` gives extents (-1: to the end) in place of ends."""
    begin = [] if begin is None else list(begin)
    end = [] if end is None else list(end)
    steps = [strides] if isinstance(strides, int) else [] if strides is None else list(strides)
    which = list(range(data.ndim)) if axes is None else list(axes)
    cut = [slice(None)] * data.ndim
    for place, axis in enumerate(which):
        first = begin[place] if place < len(begin) else None
        last = end[place] if place < len(end) else None
        sliced = first is not None or last is not None
        step = steps[place] if place < len(steps) else steps[0] if len(steps) == 1 and sliced else 1
        if slice_mode == "size":
            step = 1
            last = None if last is None or last < 0 else (first or 0) + last
        cut[axis] = slice(first, last, step)
    return data[tuple(cut)]


def strided_set_python(data: Array, v: Array, begin: Any, end: Any, strides: Any) -> Array:
    """The data with another array in the place of a slice."""
    cut = [
        slice(
            begin[axis] if axis < len(begin) else None,
            end[axis] if axis < len(end) else None,
            strides[axis] if axis < len(strides) else None,
        )
        for axis in range(data.ndim)
    ]
    result = data.copy()
    result[tuple(cut)] = v
    return result


def slice_axis_python(data: Array, axis: int, begin: int, end: int | None = None) -> Array:
    """The elements from one index up to another along one axis; 0 as the end is the last."""
    cut = [slice(None)] * data.ndim
    cut[axis] = slice(begin, end or None)
    return data[tuple(cut)]


def gather_python(data: Array, axis: int, indices: Array) -> Array:
    """Elements chosen along one axis by an array of indices of the result's shape."""
    return np.take_along_axis(data, indices, axis)


def gather_nd_python(a_np: Array, indices_np: Array) -> Array:
    """Elements, or slices, at the tuples that run along the first axis of the indices."""
    return a_np[tuple(indices_np.astype("int64"))]


def sequence_mask(data: Array, valid_length: Array, mask_value: float, axis: int) -> Array:
    """The data with everything beyond each sequence's length replaced; ``axis`` is time, the other of 0 and 1 batch."""
    shape = [1] * data.ndim
    shape[axis] = data.shape[axis]
    place = np.arange(data.shape[axis]).reshape(shape)
    shape = [1] * data.ndim
    shape[1 - axis] = data.shape[1 - axis]
    return np.where(place < valid_length.reshape(shape), data, mask_value).astype(data.dtype)


def one_hot(indices: Array, on_value: float, off_value: float, depth: int, axis: int, dtype: str) -> Array:
    """One new axis of ``depth`` elements, with ``on_value`` at each index."""
    hot = np.where(np.expand_dims(indices, -1) == np.arange(depth), on_value, off_value)
    return np.moveaxis(hot, -1, axis).astype(dtype)


def matrix_set_diag(input_np: Array, diagonal: Array, k: Any = 0, align: str = "RIGHT_LEFT") -> Array:
    """Matrices with one diagonal, or the diagonals from ``k[0]`` to ``k[1]``, replaced."""
    lowest, highest = (k, k) if isinstance(k, int) else (k[0], k[-1])
    result = input_np.copy()
    height, width = input_np.shape[-2:]
    rows_of = diagonal if lowest != highest else np.expand_dims(diagonal, -2)
    longest = rows_of.shape[-1]
    for offset in range(lowest, highest + 1):
        length = min(height + min(offset, 0), width - max(offset, 0))
        side = align.split("_")[0 if offset >= 0 else 1]
        first = longest - length if side == "RIGHT" else 0
        place = np.arange(length)
        result[..., place + max(-offset, 0), place + max(offset, 0)] = rows_of[
            ..., highest - offset, first : first + length
        ]
    return result


def searchsorted_ref(sorted_sequence: Array, values: Array, right: bool, out_dtype: str) -> Array:
    """Where each value would be inserted; sequences of several dimensions are searched row by row."""
    side: Literal["left", "right"] = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side=side).astype(out_dtype)
    result = np.empty(values.shape, out_dtype)
    for row in product(*map(range, values.shape[:-1])):
        result[row] = np.searchsorted(sorted_sequence[row], values[row], side=side)
    return result
