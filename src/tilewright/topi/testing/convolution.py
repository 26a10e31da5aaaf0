"""Convolutions, plain, grouped, depthwise, deformable and transposed.

Every layout comes down to one function with channels first and any number of spatial axes. Sums are taken in float64
or int64; the result has the type of the data. Weights that are dilated are passed dilated (``dilate_python``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tilewright.topi.nn.utils import pad_amounts, per_axis
from tilewright.topi.testing.movement import dilate_python

Array = Any
"""A NumPy array."""


def _wide(array: Array) -> Array:
    return array.astype("float64" if np.issubdtype(array.dtype, np.floating) else "int64")


def _sides(padding: Any, kernel: Sequence[int]) -> tuple[list[int], list[int]]:
    """Padding before and after each spatial axis."""
    before, after = pad_amounts(padding, kernel)
    return [int(amount) for amount in before], [int(amount) for amount in after]


def _padded(data: Array, before: Sequence[int], after: Sequence[int]) -> Array:
    return np.pad(data, [(0, 0), (0, 0), *zip(before, after, strict=True)])


def _convolve(data: Array, weight: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """The convolution of ``(batch, channel, *spatial)`` with ``(out, in / groups, *kernel)``."""
    kernel = weight.shape[2:]
    strides = per_axis(stride, len(kernel), "stride")
    padded = _padded(_wide(data), *_sides(padding, kernel))
    weight = _wide(weight)
    extents = [
        (extent - taps) // step + 1
        for extent, taps, step in zip(padded.shape[2:], kernel, strides, strict=True)
    ]
    inputs, outputs = data.shape[1] // groups, weight.shape[0] // groups
    result = np.zeros((data.shape[0], weight.shape[0], *extents), padded.dtype)
    for tap in product(*map(range, kernel)):
        window = padded[
            (
                slice(None),
                slice(None),
                *(
                    slice(first, first + (extent - 1) * step + 1, step)
                    for first, extent, step in zip(tap, extents, strides, strict=True)
                ),
            )
        ]
        for group in range(groups):
            rows = slice(group * outputs, (group + 1) * outputs)
            columns = slice(group * inputs, (group + 1) * inputs)
            taken = weight[(rows, slice(None), *tap)]
            result[:, rows] += np.einsum("oi,bi...->bo...", taken, window[:, columns])
    return result.astype(data.dtype)


def _convolve_transposed(
    data: Array, weight: Array, stride: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """The transposed convolution of ``(batch, channel, *spatial)`` with ``(in, out / groups, *kernel)``."""
    kernel = weight.shape[2:]
    rank = len(kernel)
    strides = per_axis(stride, rank, "stride")
    more = per_axis(output_padding, rank, "output_padding")
    before, after = _sides(padding, kernel)
    spread = dilate_python(data, (1, 1, *strides))
    inner = [taps - 1 - amount for taps, amount in zip(kernel, before, strict=True)]
    outer = [taps - 1 - amount + end for taps, amount, end in zip(kernel, after, more, strict=True)]
    # Padding of more than the kernel cuts, which a negative amount of padding stands for.
    padded = _padded(spread, [max(n, 0) for n in inner], [max(n, 0) for n in outer])
    cut = [
        slice(max(-first, 0), extent - max(-last, 0))
        for first, last, extent in zip(inner, outer, padded.shape[2:], strict=True)
    ]
    padded = padded[(slice(None), slice(None), *cut)]
    inputs, outputs = weight.shape[:2]
    flipped = np.flip(weight, axis=tuple(range(2, 2 + rank)))
    grouped = flipped.reshape(groups, inputs // groups, outputs, *kernel).swapaxes(1, 2)
    return _convolve(padded, grouped.reshape(groups * outputs, inputs // groups, *kernel), 1, 0, groups)


def _moved(array: Array, source: str, target: str) -> Array:
    """The array with its axes, named by ``source``, in the order of ``target``."""
    return array.transpose([source.index(letter) for letter in target])


def conv1d_ncw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any) -> Array:
    """The convolution of ``(batch, channel, width)`` with ``(out, in, width)``."""
    return group_conv1d_ncw_python(a_np, w_np, stride, padding, dilation, 1)


def group_conv1d_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    """The convolution of ``(batch, channel, width)`` in groups of channels."""
    spread = dilate_python(w_np, (1, 1, *per_axis(dilation, 1, "dilation")))
    return _convolve(a_np, spread, stride, padding, groups)


def conv2d_nchw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """The convolution of ``NCHW`` data with ``OIHW`` weights."""
    return _convolve(a_np, w_np, stride, padding, groups)


def conv2d_nhwc_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """The convolution of ``NHWC`` data with ``HWIO`` weights."""
    result = _convolve(_moved(a_np, "NHWC", "NCHW"), _moved(w_np, "HWIO", "OIHW"), stride, padding, groups)
    return _moved(result, "NCHW", "NHWC")


def conv2d_hwcn_python(a_np: Array, w_np: Array, stride: Any, padding: Any) -> Array:
    """The convolution of ``HWCN`` data with ``HWIO`` weights."""
    result = _convolve(_moved(a_np, "HWCN", "NCHW"), _moved(w_np, "HWIO", "OIHW"), stride, padding)
    return _moved(result, "NCHW", "HWCN")


def conv3d_ncdhw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """The convolution of ``NCDHW`` data with ``OIDHW`` weights."""
    return _convolve(a_np, w_np, stride, padding, groups)


def conv3d_ndhwc_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """The convolution of ``NDHWC`` data with ``DHWIO`` weights."""
    result = _convolve(
        _moved(a_np, "NDHWC", "NCDHW"), _moved(w_np, "DHWIO", "OIDHW"), stride, padding, groups
    )
    return _moved(result, "NCDHW", "NDHWC")


def conv1d_transpose_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any
) -> Array:
    """The transposed convolution of ``(batch, channel, width)`` with ``(in, out, width)``."""
    return _convolve_transposed(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """The transposed convolution of ``NCHW`` data with ``IOHW`` weights."""
    return _convolve_transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(
    a_nhwc: Array,
    weight: Array,
    weight_format: str,
    stride: Any,
    padding: Any,
    output_padding: Any = (0, 0),
) -> Array:
    """The transposed convolution of ``NHWC`` data with weights of any order of the axes ``I``, ``O``, ``H``, ``W``."""
    result = _convolve_transposed(
        _moved(a_nhwc, "NHWC", "NCHW"),
        _moved(weight, weight_format, "IOHW"),
        stride,
        padding,
        output_padding,
    )
    return _moved(result, "NCHW", "NHWC")


def conv3d_transpose_ncdhw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any
) -> Array:
    """The transposed convolution of ``NCDHW`` data with ``IODHW`` weights."""
    return _convolve_transposed(a_np, w_np, stride, padding, output_padding)


def depthwise_conv2d_python_nchw(input_np: Array, filter_np: Array, stride: Any, padding: Any) -> Array:
    """Each channel of ``NCHW`` data with its own ``(channel, multiplier, height, width)`` weights."""
    channels, multiplier, *kernel = filter_np.shape
    weight = filter_np.reshape(channels * multiplier, 1, *kernel)
    strides = per_axis(stride, 2, "stride")
    if padding == "SAME":
        padding = _same_padding(input_np.shape[2:], kernel, strides)
    return _convolve(input_np, weight, strides, padding, channels)


def _same_padding(extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The padding that gives ``ceil(extent / stride)`` elements, the odd one before, as in ``topi``'s operators."""
    total = [
        max((-(-extent // step) - 1) * step + taps - extent, 0)
        for extent, taps, step in zip(extents, kernel, strides, strict=True)
    ]
    before = [(amount + 1) // 2 for amount in total]
    return before + [amount - first for amount, first in zip(total, before, strict=True)]


def depthwise_conv2d_python_nhwc(input_np: Array, filter_np: Array, stride: Any, padding: Any) -> Array:
    """Each channel of ``NHWC`` data with its own ``(height, width, channel, multiplier)`` weights."""
    result = depthwise_conv2d_python_nchw(
        _moved(input_np, "NHWC", "NCHW"), _moved(filter_np, "HWCM", "CMHW"), stride, padding
    )
    return _moved(result, "NCHW", "NHWC")


def depthwise_conv2d_python_nchwc(input_np: Array, filter_np: Array, stride: Any, padding: Any) -> Array:
    """Channels in blocks: ``NCHWc`` data, ``(out / block, 1, height, width, 1, block)`` weights."""
    batch, chunks, height, width, block = input_np.shape
    out_chunks, _, rows, columns, _, out_block = filter_np.shape
    channels = chunks * block
    data = input_np.transpose(0, 1, 4, 2, 3).reshape(batch, channels, height, width)
    weight = filter_np.transpose(0, 5, 1, 4, 2, 3).reshape(channels, -1, rows, columns)
    result = depthwise_conv2d_python_nchw(data, weight, stride, padding)
    blocked = result.reshape(batch, out_chunks, out_block, *result.shape[2:])
    return blocked.transpose(0, 1, 3, 4, 2)


def deformable_conv2d_nchw_python(
    a_np: Array,
    offset_np: Array,
    w_np: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
) -> Array:
    """A convolution whose taps are moved by offsets, ``(y, x)`` for each tap and each place of the output."""
    batch, channels = a_np.shape[:2]
    rows, columns = w_np.shape[2:]
    strides, spread = per_axis(stride, 2, "stride"), per_axis(dilation, 2, "dilation")
    before, _ = _sides(padding, [(rows - 1) * spread[0] + 1, (columns - 1) * spread[1] + 1])
    out_height, out_width = offset_np.shape[2:]
    each = channels // deformable_groups
    gathered = np.zeros((batch, channels, out_height * rows, out_width * columns), "float64")
    for n, c, y, x, i, j in product(*map(range, (batch, channels, out_height, out_width, rows, columns))):
        place = 2 * ((c // each) * rows * columns + i * columns + j)
        gathered[n, c, y * rows + i, x * columns + j] = _bilinear_or_zero(
            a_np[n, c],
            y * strides[0] - before[0] + i * spread[0] + offset_np[n, place, y, x],
            x * strides[1] - before[1] + j * spread[1] + offset_np[n, place + 1, y, x],
        )
    return _convolve(gathered, w_np, (rows, columns), 0, groups).astype(a_np.dtype)


def _bilinear_or_zero(plane: Array, y: float, x: float) -> float:
    """Between the four elements around a place; zero outside, and the last element beyond the last place."""
    height, width = plane.shape
    if not (0 <= y < height and 0 <= x < width):
        return 0.0
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    upper = plane[top, left] * (1 - across) + plane[top, right] * across
    lower = plane[bottom, left] * (1 - across) + plane[bottom, right] * across
    return float(upper * (1 - down) + lower * down)


def deformable_conv2d_nhwc_python(
    a_np: Array,
    offset_np: Array,
    w_np: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
) -> Array:
    """The same with ``NHWC`` data and offsets, and ``HWIO`` weights."""
    result = deformable_conv2d_nchw_python(
        _moved(a_np, "NHWC", "NCHW"),
        _moved(offset_np, "NHWC", "NCHW"),
        _moved(w_np, "HWIO", "OIHW"),
        stride,
        padding,
        dilation,
        deformable_groups,
        groups,
    )
    return _moved(result, "NCHW", "NHWC")
