"""Deformable convolution, and the correlation of two images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import IncompleteType, Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, as_it_is
from tilewright.relay.op.nn.convolution import converts_layout, spatial_attributes
from tilewright.relay.op.nn.convolution_attributes import DeformableConv2DAttrs
from tilewright.relay.op.nn.convolution_rules import convolution_relation, out_layout
from tilewright.relay.op.nn.layout_conversion import converted, converted_array, laid_out, whole_extents
from tilewright.relay.op.nn.windows import pad_sides, pad_tuple, padded_array, per_axis, slid_extents
from tilewright.relay.op.shapes import combine, dims, require_source, same, tensor
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout


def deformable_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """As a convolution; the offsets have two channels for each tap of each deformable group."""
    data, offset, weight = (
        tensor(types[0], "the data"),
        tensor(types[1], "the offsets"),
        tensor(types[2], "the weight"),
    )
    if data is None or offset is None or weight is None:
        return None
    made = convolution_relation("HW")((data, weight), attrs)
    kernel = whole_extents(dims(weight), attrs.kernel_layout, "OIHW", "the weight")
    given = whole_extents(dims(offset), attrs.data_layout, "NCHW", "the offsets")
    batch, _, height, width = whole_extents(dims(data), attrs.data_layout, "NCHW", "the data")
    extents = slid_extents((height, width), kernel[2:], attrs.strides, attrs.padding, attrs.dilation)
    taps = combine(lambda h, w: 2 * attrs.deformable_groups * h * w, kernel[2], kernel[3])
    for one, other in zip(given, (batch, taps, *extents), strict=True):
        same(one, other, "the shape of the offsets")
    require_source(
        (height, width), (batch, *extents), f"deformable_conv2d: there are no pixels in {data} to read"
    )
    return made


def _deformable_completion(types: Sequence[Type], attrs: Any) -> Sequence[Type | None]:
    data = types[0]
    if not isinstance(data, TensorType) or attrs.channels is None or attrs.kernel_size is None:
        return (None, None, None)
    batch, channels, height, width = whole_extents(dims(data), attrs.data_layout, "NCHW", "the data")
    kernel = per_axis(attrs.kernel_size, 2, "kernel_size")
    extents = slid_extents((height, width), kernel, attrs.strides, attrs.padding, attrs.dilation)
    taps = 2 * attrs.deformable_groups * kernel[0] * kernel[1]
    offset = TensorType(
        laid_out((batch, taps, *extents), "NCHW", attrs.data_layout, "the offsets"), data.dtype
    )
    per_group = combine(lambda count: count // attrs.groups, channels)
    weight = TensorType(
        laid_out((attrs.channels, per_group, *kernel), "OIHW", attrs.kernel_layout, "the weight"), data.dtype
    )
    return (
        None,
        offset if isinstance(types[1], IncompleteType) else None,
        weight if isinstance(types[2], IncompleteType) else None,
    )


def _deformable_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    layout, kernel_layout = ("NHWC", "HWIO") if attrs.data_layout == "NHWC" else ("NCHW", "OIHW")
    compute = topi.nn.deformable_conv2d_nhwc if layout == "NHWC" else topi.nn.deformable_conv2d_nchw
    made = compute(
        converted(inputs[0], attrs.data_layout, layout),
        converted(inputs[1], attrs.data_layout, layout),
        converted(inputs[2], attrs.kernel_layout, kernel_layout),
        attrs.strides,
        attrs.padding,
        attrs.dilation,
        attrs.deformable_groups,
        attrs.groups,
        attrs.out_dtype or None,
    )
    return [converted(made, layout, out_layout(attrs))]


def _sampled(image: Any, y: Any, x: Any) -> Any:
    """Channels of an image read between pixels; zero beyond it."""
    height, width = image.shape[1:]
    inside = (y >= 0) & (x >= 0) & (y < height) & (x < width)
    low_y, low_x = np.floor(y), np.floor(x)
    part_y, part_x = y - low_y, x - low_x
    rows = [np.clip(low_y.astype(int) + step, 0, height - 1) for step in range(2)]
    columns = [np.clip(low_x.astype(int) + step, 0, width - 1) for step in range(2)]
    upper = image[:, rows[0], columns[0]] * (1 - part_x) + image[:, rows[0], columns[1]] * part_x
    lower = image[:, rows[1], columns[0]] * (1 - part_x) + image[:, rows[1], columns[1]] * part_x
    return np.where(inside, upper * (1 - part_y) + lower * part_y, 0)


def _deformable_reference(attrs: Any, data: Any, offset: Any, weight: Any) -> Any:
    images = converted_array(data, attrs.data_layout, "NCHW").astype(np.float64)
    moves = converted_array(offset, attrs.data_layout, "NCHW").astype(np.float64)
    kernel = converted_array(weight, attrs.kernel_layout, "OIHW").astype(np.float64)
    (top, left), _ = pad_sides(attrs.padding, 2)
    (down, right), (step_y, step_x) = (
        per_axis(attrs.strides, 2, "strides"),
        per_axis(attrs.dilation, 2, "dilation"),
    )
    outputs, per_group, taps_y, taps_x = kernel.shape
    batch, channels = images.shape[:2]
    height, width = moves.shape[2:]
    part = channels // attrs.deformable_groups
    rows, columns = np.meshgrid(
        np.arange(height) * down - top, np.arange(width) * right - left, indexing="ij"
    )
    made = np.zeros((batch, attrs.groups, outputs // attrs.groups, height, width))
    grouped = kernel.reshape(attrs.groups, -1, per_group, taps_y, taps_x)
    for n, ky, kx in product(range(batch), range(taps_y), range(taps_x)):
        read = np.zeros((channels, height, width))
        for group in range(attrs.deformable_groups):
            first = ((group * taps_y + ky) * taps_x + kx) * 2
            y, x = rows + ky * step_y + moves[n, first], columns + kx * step_x + moves[n, first + 1]
            chosen = slice(group * part, (group + 1) * part)
            read[chosen] = _sampled(images[n, chosen], y, x)
        pixels = read.reshape(attrs.groups, per_group, height, width)
        made[n] += np.einsum("goi,gihw->gohw", grouped[..., ky, kx], pixels)
    whole = made.reshape(batch, outputs, height, width).astype(
        numpy_dtype(DataType(attrs.out_dtype or str(data.dtype)))
    )
    return converted_array(whole, "NCHW", out_layout(attrs))


def _deformable_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    data = Layout(attrs.data_layout)
    return Layouts((data, data, Layout(attrs.kernel_layout)), (Layout(out_layout(attrs)),), attrs)


DEFORMABLE_CONV2D = define(
    "nn.deformable_conv2d",
    arguments=("data", "offset", "weight"),
    attrs=DeformableConv2DAttrs,
    relation=deformable_relation,
    completion=_deformable_completion,
    compute=_deformable_compute,
    reference=_deformable_reference,
    layout=_deformable_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=5,
    description="Convolution whose taps are moved by offsets.",
)
converts_layout(DEFORMABLE_CONV2D)


def deformable_conv2d(
    data: RelayExpr,
    offset: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    deformable_groups: int = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """The convolution whose taps read where ``offset`` (two channels for each tap: down, then right) moves them."""
    attrs = DeformableConv2DAttrs(
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        deformable_groups=deformable_groups,
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(DEFORMABLE_CONV2D, (data, offset, weight), attrs)


# Correlation


@attributes
class CorrelationAttrs(OpAttrs):
    """correlation: the size of patches, how far and in what steps they are moved, and how places are chosen."""

    kernel_size: int = 1
    max_displacement: int = 1
    stride1: int = 1
    stride2: int = 1
    padding: Any = (0, 0, 0, 0)
    is_multiply: bool = True
    layout: str = "NCHW"


def correlation_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """A channel for each displacement."""
    one, other = tensor(types[0], "the first image"), tensor(types[1], "the second image")
    if one is None or other is None:
        return None
    if attrs.layout != "NCHW":
        raise RelationError(f"correlation takes images NCHW, not {attrs.layout}")
    if attrs.kernel_size % 2 == 0:
        raise RelationError(f"the kernel size is odd, not {attrs.kernel_size}")
    batch, _, height, width = whole_extents(dims(one), "NCHW", "NCHW", "the first image")
    for given, wanted in zip(dims(one), dims(other), strict=True):
        same(given, wanted, "the shapes of both images")
    before, after = pad_sides(attrs.padding, 2)
    border = attrs.max_displacement + (attrs.kernel_size - 1) // 2
    extents = [
        combine(
            lambda extent, shift=first + last - 2 * border + attrs.stride1 - 1: (
                (extent + shift) // attrs.stride1
            ),
            extent,
        )
        for extent, first, last in zip((height, width), before, after, strict=True)
    ]
    moves = 2 * (attrs.max_displacement // attrs.stride2) + 1
    return TensorType((batch, moves * moves, *extents), one.dtype)


def _correlation_reference(attrs: Any, one: Any, other: Any) -> Any:
    before, after = pad_sides(attrs.padding, 2)
    a = padded_array(one.astype(np.float64), 2, before, after, 0)
    b = padded_array(other.astype(np.float64), 2, before, after, 0)
    radius = attrs.max_displacement // attrs.stride2
    border = attrs.max_displacement + (attrs.kernel_size - 1) // 2
    batch, channels, height, width = a.shape
    rows = -(-(height - 2 * border) // attrs.stride1)
    columns = -(-(width - 2 * border) // attrs.stride1)
    size = 2 * radius + 1
    made = np.zeros((batch, size * size, rows, columns))
    start, length = attrs.max_displacement, attrs.kernel_size
    for q, i, j in product(range(size * size), range(rows), range(columns)):
        y, x = i * attrs.stride1 + start, j * attrs.stride1 + start
        down, right = (q // size - radius) * attrs.stride2, (q % size - radius) * attrs.stride2
        first = a[:, :, y : y + length, x : x + length]
        second = b[:, :, y + down : y + down + length, x + right : x + right + length]
        made[:, q, i, j] = (first * second if attrs.is_multiply else abs(first - second)).sum(axis=(1, 2, 3))
    return (made / (channels * length * length)).astype(one.dtype)


def _correlation_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    steps = (attrs.max_displacement, attrs.stride1, attrs.stride2)
    return [
        topi.nn.correlation_nchw(
            inputs[0], inputs[1], attrs.kernel_size, *steps, attrs.padding, attrs.is_multiply
        )
    ]


CORRELATION = define(
    "nn.correlation",
    arguments=("data1", "data2"),
    attrs=CorrelationAttrs,
    relation=correlation_relation,
    compute=_correlation_compute,
    reference=_correlation_reference,
    layout=as_it_is,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=2,
    description="The mean product of patches of two images.",
)


def correlation(
    data1: RelayExpr,
    data2: RelayExpr,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool,
    layout: str,
) -> Call:
    """The mean product (or absolute difference) of patches of ``data1`` with those of ``data2`` around the same place;
    channels of the result are displacements, in steps of ``stride2``."""
    amounts = pad_tuple(padding, 2)
    attrs = CorrelationAttrs(
        kernel_size, max_displacement, stride1, stride2, amounts, bool(is_multiply), layout
    )
    return Call(CORRELATION, (data1, data2), attrs)
