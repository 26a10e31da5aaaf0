"""What convolutions over any number of axes share: type relations, references and layouts.

``space`` are the letters of the spatial axes, "W", "HW" or "DHW". Data are converted to N, C, space and weights to O,
I, space, whatever layouts a call has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import IncompleteType, Type
from tilewright.relay.op.definition import Completion, Relation, RelationError
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.op.nn.layout_conversion import converted_array, laid_out, whole_extents
from tilewright.relay.op.nn.windows import (
    pad_sides,
    padded_array,
    per_axis,
    slid_extents,
    taps,
    transposed_extents,
    wide_product,
)
from tilewright.relay.op.shapes import Dimension, Shape, combine, dims, known, require_multiple, same, tensor
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.tir.data_layout import Layout


def out_dtype(attrs: Any, data: TensorType) -> str:
    """The element type of the result: the one that is requested, else the data's."""
    return str(attrs.out_dtype or data.dtype)


def out_layout(attrs: Any) -> str:
    """The layout of the result: the one that is requested, else the data's."""
    return str(attrs.out_layout or attrs.data_layout)


def is_multiplied(groups: int, in_channels: Any, weight_outputs: Any) -> bool:
    """True if a weight is that of a depthwise convolution: O is the channel and I which of its kernels."""
    return groups > 1 and known(in_channels, weight_outputs) and groups == in_channels == weight_outputs


def convolution_relation(space: str) -> Relation:
    """The relation of a convolution of data with a weight."""

    def convolution(types: Sequence[Type], attrs: Any) -> Type | None:
        data, weight = tensor(types[0], "the data"), tensor(types[1], "the weight")
        if data is None or weight is None:
            return None
        given = whole_extents(dims(data), attrs.data_layout, f"NC{space}", "the data")
        kernel = whole_extents(dims(weight), attrs.kernel_layout, f"OI{space}", "the weight")
        channels = _checked_channels(given[1], kernel, attrs)
        _check_kernel_size(kernel[2:], attrs)
        extents = slid_extents(given[2:], kernel[2:], attrs.strides, attrs.padding, attrs.dilation)
        shape = laid_out((given[0], channels, *extents), f"NC{space}", out_layout(attrs), "the result")
        return TensorType(shape, out_dtype(attrs, data))

    return convolution


def _checked_channels(in_channels: Dimension, kernel: Shape, attrs: Any) -> Dimension:
    """The channels of the result."""
    groups = attrs.groups
    if groups < 1:
        raise RelationError(f"a convolution has one group or more, not {groups}")
    require_multiple(in_channels, groups, f"{in_channels} channels do not fall into {groups} groups")
    if is_multiplied(groups, in_channels, kernel[0]):
        channels = combine(lambda channel, multiplier: channel * multiplier, kernel[0], kernel[1])
    else:
        expected = combine(lambda count: count // groups, in_channels)
        same(
            kernel[1],
            expected,
            f"the weight's input channels, and the data's {in_channels} in {groups} groups",
        )
        channels = kernel[0]
        require_multiple(channels, groups, f"{channels} output channels do not fall into {groups} groups")
    if attrs.channels is not None:
        channels = same(channels, attrs.channels, "the weight's output channels, and the attribute channels")
    return channels


def _check_kernel_size(kernel: Sequence[Dimension], attrs: Any) -> None:
    if attrs.kernel_size is not None:
        for extent, expected in zip(
            kernel, per_axis(attrs.kernel_size, len(kernel), "kernel_size"), strict=True
        ):
            same(extent, expected, "the weight's extent, and the attribute kernel_size")


def _data_for_weight(types: Sequence[Type], attrs: Any) -> TensorType | None:
    """The data's type, if the weight's is missing and follows from it and the attributes."""
    data, weight = types[0], types[1]
    if not isinstance(data, TensorType) or not isinstance(weight, IncompleteType):
        return None
    return None if attrs.channels is None or attrs.kernel_size is None else data


def convolution_completion(space: str) -> Completion:
    """The type of a weight that has none, from the data and the attributes ``channels`` and ``kernel_size``."""

    def completed(types: Sequence[Type], attrs: Any) -> Sequence[Type | None]:
        data = _data_for_weight(types, attrs)
        if data is None:
            return (None, None)
        given = whole_extents(dims(data), attrs.data_layout, f"NC{space}", "the data")
        per_group = combine(lambda count: count // attrs.groups, given[1])
        extents = per_axis(attrs.kernel_size, len(space), "kernel_size")
        shape = laid_out(
            (attrs.channels, per_group, *extents), f"OI{space}", attrs.kernel_layout, "the weight"
        )
        return (None, TensorType(shape, data.dtype))

    return completed


def transposed_relation(space: str, incoming: str) -> Relation:
    """The relation of a transposed convolution; ``incoming`` is the letter of the data's channels in the weight."""
    axes = kernel_axes(space, incoming)

    def transposed_convolution(types: Sequence[Type], attrs: Any) -> Type | None:
        data, weight = tensor(types[0], "the data"), tensor(types[1], "the weight")
        if data is None or weight is None:
            return None
        given = whole_extents(dims(data), attrs.data_layout, f"NC{space}", "the data")
        kernel = whole_extents(dims(weight), attrs.kernel_layout, axes, "the weight")
        same(kernel[0], given[1], "the weight's input channels, and the data's")
        if attrs.groups < 1:
            raise RelationError(f"a convolution has one group or more, not {attrs.groups}")
        require_multiple(
            given[1], attrs.groups, f"{given[1]} channels do not fall into {attrs.groups} groups"
        )
        channels = combine(lambda count: count * attrs.groups, kernel[1])
        if attrs.channels is not None:
            channels = same(
                channels, attrs.channels, "the weight's output channels, and the attribute channels"
            )
        _check_kernel_size(kernel[2:], attrs)
        extents = transposed_extents(
            given[2:], kernel[2:], attrs.strides, attrs.padding, attrs.dilation, attrs.output_padding
        )
        shape = laid_out((given[0], channels, *extents), f"NC{space}", out_layout(attrs), "the result")
        return TensorType(shape, out_dtype(attrs, data))

    return transposed_convolution


def transposed_completion(space: str, incoming: str) -> Completion:
    """As ``convolution_completion``, for a transposed convolution."""
    axes = kernel_axes(space, incoming)

    def completed(types: Sequence[Type], attrs: Any) -> Sequence[Type | None]:
        data = _data_for_weight(types, attrs)
        if data is None:
            return (None, None)
        given = whole_extents(dims(data), attrs.data_layout, f"NC{space}", "the data")
        extents = per_axis(attrs.kernel_size, len(space), "kernel_size")
        shape = laid_out(
            (given[1], attrs.channels // attrs.groups, *extents), axes, attrs.kernel_layout, "the weight"
        )
        return (None, TensorType(shape, data.dtype))

    return completed


def kernel_axes(space: str, incoming: str) -> str:
    """The order of a transposed convolution's weight: the data's channels, then those of the result."""
    return f"{incoming}{'I' if incoming == 'O' else 'O'}{space}"


def convolution_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """A convolution has the layouts that its attributes say, whatever is offered."""
    inputs = (Layout(attrs.data_layout), *((None,) * (len(types) - 2)), Layout(attrs.kernel_layout))
    return Layouts(inputs, (Layout(out_layout(attrs)),), attrs)


_COLUMNS_AT_ONCE = 1 << 24
"""How many elements of taps a reference gathers for one matrix product: enough for few products, and little memory."""


def convolve(
    data: Any, weight: Any, strides: Any, padding: Any, dilation: Any, groups: int, result: str
) -> Any:
    """The convolution of N, C, space with O, I, space: what the taps read is gathered, and multiplied as a matrix."""
    count = data.ndim - 2
    if is_multiplied(groups, data.shape[1], weight.shape[0]):
        weight = weight.reshape(-1, 1, *weight.shape[2:])
    before, after = pad_sides(padding, count)
    extents: Any = slid_extents(data.shape[2:], weight.shape[2:], strides, padding, dilation)
    padded = padded_array(data, 2, before, after, 0)
    batch, outputs, inputs = data.shape[0], weight.shape[0], weight.shape[1]
    kernels = weight.reshape(groups, outputs // groups, inputs, *weight.shape[2:])
    total: Any = 0
    gathered: list[Any] = []
    chosen: list[Any] = []

    def add_up() -> Any:
        columns = np.stack(gathered, axis=3).reshape(batch, groups, inputs * len(gathered), -1)
        matrix = np.stack(chosen, axis=3).reshape(groups, outputs // groups, -1)
        return total + wide_product(matrix, columns)

    size = max(batch * groups * inputs * prod(extents), 1)
    for tap, view in taps(padded, 2, weight.shape[2:], strides, dilation, extents):
        gathered.append(view.reshape(batch, groups, inputs, -1))
        chosen.append(kernels[(slice(None), slice(None), slice(None), *tap)])
        if size * len(gathered) >= _COLUMNS_AT_ONCE:
            total = add_up()
            gathered, chosen = [], []
    if gathered:
        total = add_up()
    return total.reshape(batch, outputs, *extents).astype(numpy_dtype(DataType(result)))


def convolve_transposed(
    data: Any,
    weight: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    output_padding: Any,
    groups: int,
    result: str,
) -> Any:
    """The transposed convolution of N, C, space with a weight of the data's channels, those of the result, space."""
    count = data.ndim - 2
    before, after = pad_sides(padding, count)
    batch, outputs = data.shape[0], weight.shape[1] * groups
    kernel = weight.shape[2:]
    extents = transposed_extents(data.shape[2:], kernel, strides, padding, dilation, output_padding)
    whole = [first + extent + last for first, extent, last in zip(before, extents, after, strict=True)]
    columns = data.reshape(batch, groups, data.shape[1] // groups, -1)
    grouped = weight.reshape(groups, data.shape[1] // groups, weight.shape[1], *kernel).swapaxes(1, 2)
    total: Any = None
    for tap in np.ndindex(*kernel):
        part = wide_product(grouped[(slice(None), slice(None), slice(None), *tap)], columns)
        if total is None:
            total = np.zeros((batch, outputs, *whole), part.dtype)
        reads = tuple(
            slice(at * step, at * step + (extent - 1) * stride + 1, stride)
            for at, step, stride, extent in zip(
                tap,
                per_axis(dilation, count, "dilation"),
                per_axis(strides, count, "strides"),
                data.shape[2:],
                strict=True,
            )
        )
        total[(slice(None), slice(None), *reads)] += part.reshape(batch, outputs, *data.shape[2:])
    inner = tuple(slice(first, first + extent) for first, extent in zip(before, extents, strict=True))
    return total[(slice(None), slice(None), *inner)].astype(numpy_dtype(DataType(result)))


def reference_convolution(space: str) -> Any:
    """The reference of a convolution, in any layouts."""

    def reference(attrs: Any, data: Any, weight: Any) -> Any:
        plain = f"NC{space}"
        made = convolve(
            converted_array(data, attrs.data_layout, plain),
            converted_array(weight, attrs.kernel_layout, f"OI{space}"),
            attrs.strides,
            attrs.padding,
            attrs.dilation,
            attrs.groups,
            attrs.out_dtype or str(data.dtype),
        )
        return converted_array(made, plain, out_layout(attrs))

    return reference


def reference_transposed(space: str, incoming: str) -> Any:
    """The reference of a transposed convolution, in any layouts."""

    def reference(attrs: Any, data: Any, weight: Any) -> Any:
        plain = f"NC{space}"
        made = convolve_transposed(
            converted_array(data, attrs.data_layout, plain),
            converted_array(weight, attrs.kernel_layout, kernel_axes(space, incoming)),
            attrs.strides,
            attrs.padding,
            attrs.dilation,
            attrs.output_padding,
            attrs.groups,
            attrs.out_dtype or str(data.dtype),
        )
        return converted_array(made, plain, out_layout(attrs))

    return reference


def preferred_kernel_layout(layout: str, depthwise: bool, outputs: str = "O", inputs: str = "I") -> str:
    """The order of a weight's axes that goes with a layout of the data."""
    letters = Layout(layout).primal_axes()
    space = "".join(axis for axis in letters if axis in "DHW")
    if letters.index("C") == 1:
        return f"{outputs}{inputs}{space}"
    return f"{space}{outputs}{inputs}" if depthwise else f"{space}{inputs}{outputs}"
