"""Sliding windows over the spatial axes: strides, padding and dilation, and the resulting extents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tilewright.ir import operators
from tilewright.relay.op.shapes import Dimension, combine, require
from tilewright.support.errors import OpAttributeInvalid


def per_axis(value: Any, count: int, what: str) -> tuple[Any, ...]:
    """One value for each axis, of one for all or one each."""
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise OpAttributeInvalid(f"{what} has {len(values)} values for {count} axes")
    return values


def pad_tuple(padding: Any, count: int) -> tuple[Any, ...]:
    """Padding before every axis, then after every axis, from one value for all, one an axis, or both already."""
    values = tuple(padding) if isinstance(padding, (list, tuple)) else (padding,)
    if len(values) == 1:
        return values * (2 * count)
    if len(values) == count:
        return values * 2
    if len(values) != 2 * count:
        raise OpAttributeInvalid(
            f"padding has 1, {count} or {2 * count} values for {count} axes, not {len(values)}"
        )
    return values


def pad_sides(padding: Any, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before the axes, and after them."""
    values = pad_tuple(padding, count)
    return values[:count], values[count:]


def slid_extents(
    extents: Sequence[Dimension],
    kernel: Sequence[Dimension],
    strides: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool = False,
) -> tuple[Dimension, ...]:
    """How often a kernel fits as it slides over each axis."""
    count = len(extents)
    before, after = pad_sides(padding, count)
    found: list[Dimension] = []
    for extent, taps, stride, step, first, last in zip(
        extents,
        kernel,
        per_axis(strides, count, "strides"),
        per_axis(dilation, count, "dilation"),
        before,
        after,
        strict=True,
    ):
        more = stride - 1 if ceil_mode else 0

        def fits(
            extent: Any, taps: Any, shift: int = first + last + more, stride: int = stride, step: int = step
        ) -> Any:
            return (extent + shift - ((taps - 1) * step + 1)) // stride + 1

        made = combine(fits, extent, taps)
        require(
            lambda made, extent: (
                (made >= 1) | (extent == 0)
                if isinstance(made, int)
                else operators.logical_or(made >= 1, operators.equal(extent, 0))
            ),
            (made, extent),
            f"a window of {taps} elements (dilation {step}) is larger than the padded axis of {extent} + "
            f"{first} + {last}",
        )
        found.append(made)
    return tuple(found)


def transposed_extents(
    extents: Sequence[Dimension],
    kernel: Sequence[Dimension],
    strides: Any,
    padding: Any,
    dilation: Any,
    output_padding: Any,
) -> tuple[Dimension, ...]:
    """The extents of a transposed convolution: those over which the kernel slides as often as the input is long."""
    count = len(extents)
    before, after = pad_sides(padding, count)
    found: list[Dimension] = []
    for extent, taps, stride, step, first, last, more in zip(
        extents,
        kernel,
        per_axis(strides, count, "strides"),
        per_axis(dilation, count, "dilation"),
        before,
        after,
        per_axis(output_padding, count, "output_padding"),
        strict=True,
    ):

        def spread(
            extent: Any, taps: Any, shift: int = more - first - last, stride: int = stride, step: int = step
        ) -> Any:
            return (extent - 1) * stride + (taps - 1) * step + 1 + shift

        found.append(combine(spread, extent, taps))
    return tuple(found)


def taps(
    padded: Any, first_axis: int, kernel: Sequence[int], strides: Any, dilation: Any, extents: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """For each tap of a kernel, its index and the view of what it reads at every place of the output.

    The spatial axes of ``padded`` are those from ``first_axis``; ``extents`` are the output's.
    """
    count = len(kernel)
    every_stride, every_step = per_axis(strides, count, "strides"), per_axis(dilation, count, "dilation")
    lead = (slice(None),) * first_axis
    for tap in product(*(range(size) for size in kernel)):
        reads = tuple(
            slice(at * step, at * step + (extent - 1) * stride + 1, stride)
            for at, step, stride, extent in zip(tap, every_step, every_stride, extents, strict=True)
        )
        yield tap, padded[(*lead, *reads)]


def padded_array(array: Any, first_axis: int, before: Sequence[int], after: Sequence[int], value: Any) -> Any:
    """The array with its axes from ``first_axis`` on padded with a value."""
    widths = [(0, 0)] * first_axis + list(zip(before, after, strict=True))
    widths += [(0, 0)] * (array.ndim - len(widths))
    return np.pad(array, widths, constant_values=value)


def wide_product(left: Any, right: Any) -> Any:
    """The matrix product in a type that holds it: integers exactly, as int64; half floats as float32.

    Products of integers of up to 16 bits go through float64, which holds them and which the BLAS multiplies fast.
    """
    kind = np.result_type(left.dtype, right.dtype)
    if kind.kind in "iub":
        wide: Any = np.float64 if kind.itemsize <= 2 else np.int64
        return np.matmul(left.astype(wide), right.astype(wide)).astype(np.int64)
    wide = np.float64 if kind == np.float64 else np.float32
    return np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
