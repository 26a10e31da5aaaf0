"""Transposed convolutions on CPUs: the rules of Legalize and AlterOpLayout.

The result of a strided transposed convolution consists of phases, its elements at ``h % stride`` and ``w % stride``,
and each phase is an ordinary convolution with some of the kernel's taps (``axis_phases``).

- If the input has one element per axis, every tap is used once: a dense layer.
- With a stride of one there is one phase: a convolution with the flipped kernel.
- With enough output channels for vectors, the operator stays, with blocked channels, and its kernel computes phase
  after phase.
- With few output channels, or many phases, all phases become the channels of one convolution, whose window covers the
  taps of each, and are interleaved after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Constant, const
from tilewright.relay.op.calls import call
from tilewright.relay.op.nn.windows import pad_sides, per_axis
from tilewright.relay.target.cpu.layout import blocks_help
from tilewright.relay.target.cpu.shapes import constant_shape, typical_image
from tilewright.schedule.cpu.layouts import conv2d_layouts
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.topi.nn.conv2d_transpose_NCHWc import AxisPhases, axis_phases

MOST_PHASES: Final = 16
"""The most phases that a kernel has separate code for."""
WORTH_FILLING: Final = 0.25
"""The share of a vector's lanes that the phases of all output channels must fill. The direct computation also
multiplies the zeros between the input elements, and is even slower."""


@dataclass(frozen=True)
class Transposed:
    """A transposed convolution of NCHW with IOHW, in one group and without dilation. ``is_open``: the data and the
    result have typical sizes where theirs are not constant."""

    data: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, ...], tuple[int, ...]]
    more: tuple[int, ...]
    """The padding of the output."""
    result: tuple[int, ...]
    dtype: str
    out_dtype: str
    is_open: bool

    @property
    def outputs(self) -> int:
        """The channels of the result."""
        return self.kernel[1]

    @property
    def phase_count(self) -> int:
        """Phases of both axes."""
        return self.strides[0] * self.strides[1]

    @property
    def stays(self) -> bool:
        """True if it is computed phase by phase with channels in blocks."""
        in_blocks = conv2d_layouts(self.kernel[0], self.outputs, 1, self.dtype) is not None
        return in_blocks and self.phase_count <= MOST_PHASES

    def axes(self) -> list[AxisPhases]:
        """The phases of height and width."""
        return [
            axis_phases(*axis)
            for axis in zip(
                self.data[2:], self.kernel[2:], self.strides, *self.padding, self.more, strict=True
            )
        ]


def _described(attrs: Any, types: Sequence[Any], layouts: tuple[str, str], rank: int) -> Transposed | None:
    """The convolution over two axes that a call is, one over a single axis with a height of one; None for others."""
    shapes = [constant_shape(kind.shape) for kind in types]
    is_open = shapes[1] is not None and None in shapes
    if is_open:
        shapes = [typical_image(types[0].shape), shapes[1], typical_image(types[2].shape)]
    plain = (attrs.data_layout, attrs.kernel_layout) == layouts
    plain = plain and attrs.out_layout in ("", attrs.data_layout)
    if not plain or attrs.groups != 1 or set(attrs.dilation) != {1} or not blocks_help(types[0].dtype):
        return None
    if any(shape is None or 0 in shape for shape in shapes):
        return None
    first, last = pad_sides(attrs.padding, rank)
    lead = 2 - rank
    data, kernel, result = ((*shape[:2], *(1,) * lead, *shape[2:]) for shape in shapes if shape is not None)
    return Transposed(
        data,
        kernel,
        (1,) * lead + per_axis(attrs.strides, rank, "strides"),
        ((0,) * lead + first, (0,) * lead + last),
        (0,) * lead + per_axis(attrs.output_padding, rank, "output_padding"),
        result,
        str(types[0].dtype),
        str(attrs.out_dtype),
        is_open,
    )


def legal_conv2d_transpose(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """A convolution or a dense layer for a transposed convolution over two axes; None where it should stay."""
    found = _described(attrs, types, ("NCHW", "IOHW"), 2)
    return None if found is None else _legal(found, inputs[0], inputs[1])


def legal_conv1d_transpose(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """The same over one axis, which is the second of two; None where it should stay over one."""
    found = _described(attrs, types, ("NCW", "OIW"), 1)
    if found is None:
        return None
    data, weight = (call("expand_dims", value, axis=2, num_newaxis=1) for value in inputs)
    made = _legal(found, data, weight)
    if made is None and found.stays:
        made = call(
            "nn.conv2d_transpose",
            data,
            weight,
            channels=found.outputs,
            kernel_size=found.kernel[2:],
            strides=found.strides,
            padding=(*found.padding[0], *found.padding[1]),
            output_padding=found.more,
            out_dtype=found.out_dtype,
        )
    return None if made is None else call("squeeze", made, axis=(2,))


def _legal(found: Transposed, data: RelayExpr, weight: RelayExpr) -> RelayExpr | None:
    if found.is_open:
        return None
    if found.data[2:] == (1, 1) and not any(found.more):
        return _dense(found, data, weight)
    if found.phase_count > 1 and (found.stays or not _fills_vectors(found)):
        return None
    return _convolution(found, data, weight)


def _fills_vectors(found: Transposed) -> bool:
    channels = found.phase_count * found.outputs
    return channels >= WORTH_FILLING * _padded_channels(channels, found.dtype)


def _padded_channels(channels: int, dtype: str) -> int:
    """The number of channels padded to whole blocks."""
    if conv2d_layouts(1, channels, 1, dtype) is not None:
        return channels
    lanes = lanes_of(current_cpu(), dtype)
    return -(-channels // lanes) * lanes


def _dense(found: Transposed, data: RelayExpr, weight: RelayExpr) -> RelayExpr:
    """Every element of the result is the product of the input's channels with one tap."""
    batch, inputs = found.data[:2]
    ends = tuple(taps - last for taps, last in zip(found.kernel[2:], found.padding[1], strict=True))
    if any(found.padding[0]) or any(found.padding[1]):
        weight = call(
            "strided_slice",
            weight,
            begin=(0, 0, *found.padding[0]),
            end=(*found.kernel[:2], *ends),
            strides=(1, 1, 1, 1),
        )
    units = found.result[1] * found.result[2] * found.result[3]
    matrix = call("transpose", call("reshape", weight, newshape=(inputs, units)), axes=(1, 0))
    rows = call("reshape", data, newshape=(batch, inputs))
    made = call("nn.dense", rows, matrix, units=units, out_dtype=found.out_dtype)
    return call("reshape", made, newshape=found.result)


def _convolution(found: Transposed, data: RelayExpr, weight: RelayExpr) -> RelayExpr | None:
    """One convolution whose channels are those of all phases; None where the padding would cut off the input."""
    axes = found.axes()
    windows = [_Window.of(axis) for axis in axes]
    before = [-window.first for window in windows]
    after = [
        axis.count + window.first + window.taps - 1 - extent
        for axis, window, extent in zip(axes, windows, found.data[2:], strict=True)
    ]
    if min(*before, *after) < 0:
        return None
    channels = found.phase_count * found.outputs
    wanted = _padded_channels(channels, found.dtype) if found.phase_count > 1 else channels
    made = call(
        "nn.conv2d",
        data,
        _all_phases(found, weight, axes, windows, wanted),
        padding=(*before, *after),
        channels=wanted,
        kernel_size=[window.taps for window in windows],
        out_dtype=found.out_dtype,
    )
    if found.phase_count == 1:
        return made
    return _put_in_place(found, made, axes, channels < wanted)


@dataclass(frozen=True)
class _Window:
    """The elements of the input, from ``first`` on after the number of a result's element, that the phases of an axis
    read."""

    first: int
    taps: int

    @staticmethod
    def of(axis: AxisPhases) -> _Window:
        """The smallest window of all phases."""
        read = [phase for phase in axis.phases if phase.taps]
        first = min(phase.shift - phase.taps + 1 for phase in read)
        return _Window(first, max(phase.shift for phase in read) + 1 - first)

    def taken(self, axis: AxisPhases, stride: int, nothing: int) -> Constant:
        """For each phase and place in the window, which tap of the kernel stands there; ``nothing`` where none does."""
        made = np.full((len(axis.phases), self.taps), nothing, "int32")
        for number, phase in enumerate(axis.phases):
            for tap in range(phase.taps):
                made[number, phase.shift - tap - self.first] = phase.first + tap * stride
        return const(made.reshape(-1))


def _all_phases(
    found: Transposed,
    weight: RelayExpr,
    axes: Sequence[AxisPhases],
    windows: Sequence[_Window],
    channels: int,
) -> RelayExpr:
    """The OIHW kernel of all phases: O is (phase along height, phase along width, output channel), padded with
    zeros."""
    inputs, outputs, *taps = found.kernel
    # An extra tap of zeros along each axis, for positions where a phase has no tap.
    made: RelayExpr = call(
        "nn.pad", weight, const(0.0, found.dtype), pad_width=((0, 0), (0, 0), (0, 1), (0, 1))
    )
    extents: list[int] = []
    for position, (axis, window) in enumerate(zip(axes, windows, strict=True)):
        taken = window.taken(axis, found.strides[position], taps[position])
        made = call("take", made, taken, axis=2 + position)
        extents += [found.strides[position], window.taps]
    made = call("reshape", made, newshape=(inputs, outputs, *extents))
    made = call("transpose", made, axes=(2, 4, 1, 0, 3, 5))
    count = found.phase_count * outputs
    made = call("reshape", made, newshape=(count, inputs, *(window.taps for window in windows)))
    if channels == count:
        return made
    more = ((0, channels - count), (0, 0), (0, 0), (0, 0))
    return call("nn.pad", made, const(0.0, found.dtype), pad_width=more)


def _put_in_place(
    found: Transposed, value: RelayExpr, axes: Sequence[AxisPhases], has_more: bool
) -> RelayExpr:
    """Interleaves phases, given as channels, to the result."""
    batch, outputs, height, width = found.result
    rows, columns = (axis.count for axis in axes)
    down, right = found.strides
    if has_more:
        end = (batch, found.phase_count * outputs, rows, columns)
        value = call("strided_slice", value, begin=(0,) * 4, end=end, strides=(1,) * 4)
    value = call("reshape", value, newshape=(batch, down, right, outputs, rows, columns))
    value = call("transpose", value, axes=(0, 3, 4, 1, 5, 2))
    value = call("reshape", value, newshape=(batch, outputs, rows * down, columns * right))
    if (rows * down, columns * right) == (height, width):
        return value
    return call("strided_slice", value, begin=(0,) * 4, end=found.result, strides=(1,) * 4)


def conv2d_transpose_in_blocks(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], out_type: Any
) -> RelayExpr | None:
    """An NCHW transposed convolution with blocked channels; None to leave it as it is."""
    found = _described(attrs, (*tinfos, out_type), ("NCHW", "IOHW"), 2)
    if found is None or not found.stays:
        return None
    layouts = conv2d_layouts(found.kernel[0], found.outputs, 1, found.dtype)
    assert layouts is not None
    return call(
        "nn.conv2d_transpose",
        inputs[0],
        inputs[1],
        strides=attrs.strides,
        padding=attrs.padding,
        output_padding=attrs.output_padding,
        channels=found.outputs,
        kernel_size=found.kernel[2:],
        data_layout=layouts.data_layout,
        kernel_layout=layouts.kernel_layout,
        out_layout=layouts.out_layout,
        out_dtype=attrs.out_dtype,
    )
