"""Transposed convolution with channels in blocks, without products by the zeros between the elements of its input.

The result has as many phases as the strides multiply to: its elements at ``h % stride`` and ``w % stride``. Each is an
ordinary convolution of stride one, with those taps of the kernel that meet an element of the input there, and the
result is put together from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.utils import pad_amounts, per_axis, sum_types
from tilewright.topi.utils import InvalidShapeError, get_const_tuple


@dataclass(frozen=True)
class Phase:
    """What the elements of the result at one remainder of an axis read: ``taps`` taps of the kernel, from ``first`` on
    and a stride apart. The first of them meets the element of the input that is ``shift`` after the number of the
    result's element among those of the phase, and the others the elements before it."""

    first: int
    taps: int
    shift: int


@dataclass(frozen=True)
class AxisPhases:
    """The phases of an axis, how many elements each has, and the zeros that the input needs on both sides."""

    phases: tuple[Phase, ...]
    count: Any
    before: int
    after: int


def axis_phases(extent: Any, taps: int, stride: int, before: int, after: int, more: int) -> AxisPhases:
    """The phases of an axis of the input; ``before`` and ``after`` are cut off the result, ``more`` is added to it.

    All phases have as many elements as the longest, so that where the stride does not divide the result, the last
    elements of some are not used.
    """
    # As many as the input has, and a constant more or less: the extent may be an expression.
    beyond = -(-(taps - before - after + more) // stride) - 1
    phases = []
    for remainder in range(stride):
        shift, first = divmod(remainder + before, stride)
        phases.append(Phase(first, max(-(-(taps - first) // stride), 0), shift))
    read = [phase for phase in phases if phase.taps]
    return AxisPhases(
        tuple(phases),
        extent + beyond,
        max(0, *(phase.taps - 1 - phase.shift for phase in read)),
        max(0, *(beyond + phase.shift for phase in read)),
    )


def conv2d_transpose_NCHWc(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> Tensor:
    """The transposed convolution of data (batch, blocks, height, width, channels of a block) with a kernel (output
    blocks, input blocks, height, width, channels of an input block, channels of an output block)."""
    batch, blocks, height, width, block = get_const_tuple(data.shape)
    outer, inputs, tall, wide, lanes, inner = get_const_tuple(kernel.shape)
    if (blocks, block) != (inputs, lanes):
        raise InvalidShapeError(
            f"the data have {blocks} blocks of {block} channels, the kernel {inputs} blocks of {lanes}"
        )
    every_stride = per_axis(strides, 2, "strides")
    extra = per_axis(output_padding, 2, "output_padding")
    first, last = pad_amounts(padding, (tall, wide))
    rows, columns = (
        axis_phases(*axis)
        for axis in zip((height, width), (tall, wide), every_stride, first, last, extra, strict=True)
    )
    shape = (
        batch,
        outer,
        (height - 1) * every_stride[0] + tall - first[0] - last[0] + extra[0],
        (width - 1) * every_stride[1] + wide - first[1] - last[1] + extra[1],
        inner,
    )
    before, after = (rows.before, columns.before), (rows.after, columns.after)
    padded = pad_spatial(data, (2, 3), before, after, name="data_pad")
    adding, result = sum_types(data.dtype, out_dtype)
    parts = [
        [
            _phase(padded, kernel, every_stride, (down, right), before, (rows.count, columns.count), adding)
            for right in columns.phases
        ]
        for down in rows.phases
    ]

    def element(n: Any, o: Any, h: Any, w: Any, i: Any) -> Any:
        at = (n, o, h // every_stride[0], w // every_stride[1], i)
        values = [_chosen([_value(part, at, adding) for part in line], w % every_stride[1]) for line in parts]
        return _chosen(values, h % every_stride[0]).astype(result)

    made: Tensor = te.compute(
        shape, element, name=tag.TRANSPOSED, tag=tag.TRANSPOSED, attrs={"strides": list(every_stride)}
    )
    return made


def _phase(
    padded: Tensor,
    kernel: Tensor,
    strides: Sequence[int],
    phase: tuple[Phase, Phase],
    before: Sequence[int],
    counts: tuple[int, int],
    dtype: Any,
) -> Tensor | None:
    """One phase of the result; None where no tap of the kernel reaches it."""
    down, right = phase
    if not down.taps or not right.taps:
        return None
    outer = te.reduce_axis((0, kernel.shape[1]), name="ic_outer")
    ry = te.reduce_axis((0, down.taps), name="kh")
    rx = te.reduce_axis((0, right.taps), name="kw")
    lane = te.reduce_axis((0, kernel.shape[4]), name="ic_inner")

    def element(n: Any, o: Any, y: Any, x: Any, i: Any) -> Any:
        value = padded(
            n, outer, y + (down.shift + before[0]) - ry.var, x + (right.shift + before[1]) - rx.var, lane
        )
        weight = kernel(
            o, outer, ry.var * strides[0] + down.first, rx.var * strides[1] + right.first, lane, i
        )
        return te.sum(value.astype(dtype) * weight.astype(dtype), axis=[outer, ry, rx, lane])

    shape = (padded.shape[0], kernel.shape[0], *counts, kernel.shape[5])
    made: Tensor = te.compute(shape, element, name="phase", tag="conv2d_transpose_phase")
    return made


def _value(part: Tensor | None, at: Sequence[Any], dtype: Any) -> Any:
    return tir.const(0, dtype) if part is None else part(*at)


def _chosen(values: Sequence[Any], number: Any) -> Any:
    """The value with this number: a choice, which unrolled loops fold away."""
    chosen = values[-1]
    for position in reversed(range(len(values) - 1)):
        chosen = tir.Select(number == position, values[position], chosen)
    return chosen
