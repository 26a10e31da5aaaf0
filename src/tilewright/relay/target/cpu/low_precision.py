"""int8 and bfloat16 products on CPUs: the rules of Legalize and AlterOpLayout.

Dot-product instructions multiply packed lanes of four int8 or two bfloat16 numbers, so the reduction is padded to whole
lanes and weights are packed. Most x86 CPUs multiply only unsigned by signed integers: data of the other signedness are
shifted by 128, and 128 times the sum of the weights, a compile-time constant, is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.op.calls import call
from tilewright.relay.op.nn.windows import pad_sides
from tilewright.relay.target.cpu.integer_winograd import integer_winograd
from tilewright.relay.target.cpu.shapes import constant_shape
from tilewright.schedule.cpu.layouts import WORTH_BLOCKING, dense_block
from tilewright.schedule.cpu.loops import vector_fill
from tilewright.schedule.cpu.low_precision import (
    low_precision_block,
    low_precision_conv2d_layouts,
    uses_packed_lanes,
    wanted_data_type,
    widened_weight,
)
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.schedule.cpu.matrix_unit import FEWEST_ROWS, TILE, has_matrix_unit
from tilewright.support.dtype import DataType
from tilewright.tir.packed_lanes import numbers_per_lane
from tilewright.topi.utils import get_const_tuple

OFFSET = 128


# Signedness


def _other_kind(attrs: Any, types: Sequence[Any]) -> str | None:
    """The type that the data of a product should be converted to; None to leave it."""
    if attrs.out_dtype != "int32":
        return None
    return wanted_data_type(current_cpu(), types[0].dtype, types[1].dtype)


def moved_signedness(data: RelayExpr, kind: str) -> RelayExpr:
    """8-bit integers converted to the other signedness: 128 more if unsigned, 128 less if signed."""
    if kind == "uint8":
        return call("bitwise_xor", call("cast", data, dtype=kind), const(OFFSET, kind))
    return call("cast", call("bitwise_xor", data, const(OFFSET, "uint8")), dtype=kind)


def _without_offset(made: RelayExpr, sums: RelayExpr, kind: str) -> RelayExpr:
    """The product of the original data; ``sums`` are the sums of the weights."""
    return call(
        "subtract" if kind == "uint8" else "add", made, call("multiply", sums, const(OFFSET, "int32"))
    )


def _sum(weight: RelayExpr, axes: tuple[int, ...]) -> RelayExpr:
    return call("sum", call("cast", weight, dtype="int32"), axis=axes, keepdims=False, exclude=False)


def legal_conv2d(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """A convolution with data of the signedness that the CPU multiplies."""
    kind = _other_kind(attrs, types)
    plain = attrs.data_layout == "NCHW" and attrs.kernel_layout == "OIHW" and attrs.out_layout in ("", "NCHW")
    kernel = constant_shape(types[1].shape)
    if kind is None or not plain or kernel is None or _is_depthwise(attrs, kernel):
        return None
    before, after = pad_sides(attrs.padding, 2)
    data = moved_signedness(inputs[0], kind)
    if any((*before, *after)):
        # The zero point is shifted too.
        width = ((0, 0), (0, 0), *zip(before, after, strict=True))
        zero = const(OFFSET if kind == "uint8" else -OFFSET, kind)
        data = call("nn.pad", data, zero, pad_width=width)
    made = call(
        "nn.conv2d",
        data,
        inputs[1],
        strides=attrs.strides,
        padding=(0, 0, 0, 0),
        dilation=attrs.dilation,
        groups=attrs.groups,
        channels=attrs.channels,
        kernel_size=attrs.kernel_size,
        out_dtype=attrs.out_dtype,
    )
    sums = call("reshape", _sum(inputs[1], (1, 2, 3)), newshape=(1, kernel[0], 1, 1))
    return _without_offset(made, sums, kind)


def _is_depthwise(attrs: Any, kernel: tuple[int, ...]) -> bool:
    return attrs.groups > 1 and kernel[1] == 1


def legal_dense(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """A dense layer with data of the signedness that the CPU multiplies."""
    kind = _other_kind(attrs, types)
    if kind is None or len(types[1].shape) != 2:
        return None
    made = call(
        "nn.dense", moved_signedness(inputs[0], kind), inputs[1], units=attrs.units, out_dtype=attrs.out_dtype
    )
    return _without_offset(made, _sum(inputs[1], (1,)), kind)


def legal_batch_matmul(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> RelayExpr | None:
    """A batched matrix product with data of the signedness that the CPU multiplies."""
    kind = _other_kind(attrs, types)
    if kind is None:
        return None
    made = call(
        "nn.batch_matmul",
        moved_signedness(inputs[0], kind),
        inputs[1],
        out_dtype=attrs.out_dtype,
        transpose_a=attrs.transpose_a,
        transpose_b=attrs.transpose_b,
    )
    sums = call("expand_dims", _sum(inputs[1], (2 if attrs.transpose_b else 1,)), axis=1, num_newaxis=1)
    return _without_offset(made, sums, kind)


# Layouts


def low_precision_conv2d(
    attrs: Any,
    inputs: Sequence[RelayExpr],
    data: tuple[int, ...],
    kernel: tuple[int, ...],
    tinfos: Sequence[Any],
) -> RelayExpr | None:
    """An NCHW conv2d of ``data`` (channels, height, width) with its channels in blocks of packed lanes; None to leave
    it as it is."""
    dtype = str(tinfos[0].dtype)
    if _is_depthwise(attrs, kernel):
        return _depthwise(attrs, inputs, data[0], kernel, dtype)
    lane_type = _lane_type(tinfos)
    numbers = numbers_per_lane(lane_type)
    missing = -data[0] % numbers if attrs.groups == 1 else 0
    channels = data[0] + missing
    layouts = low_precision_conv2d_layouts(channels, kernel[0], attrs.groups, lane_type)
    if layouts is None:
        return None
    filtered = None if missing else integer_winograd(attrs, inputs, data, tinfos, layouts)
    if filtered is not None:
        return filtered
    value, weight = (
        _filled(each, 1, missing, 4, kind.dtype) for each, kind in zip(inputs, tinfos, strict=True)
    )
    weight = _as_type(weight, tinfos[1], lane_type)
    packed_lanes = layouts.ic_bn // numbers
    outputs, depth = kernel[0] // layouts.oc_bn, (kernel[1] + missing) // layouts.ic_bn
    weight = call(
        "reshape",
        weight,
        newshape=(outputs, layouts.oc_bn, depth, packed_lanes, numbers, *kernel[2:]),
    )
    weight = call("transpose", weight, axes=(0, 2, 5, 6, 3, 1, 4))
    return call(
        "nn.contrib_conv2d_NCHWc",
        value,
        weight,
        strides=attrs.strides,
        padding=attrs.padding,
        dilation=attrs.dilation,
        groups=attrs.groups,
        channels=kernel[0],
        kernel_size=kernel[2:],
        data_layout=layouts.data_layout,
        kernel_layout=layouts.kernel_layout,
        out_layout=layouts.out_layout,
        out_dtype=attrs.out_dtype,
    )


def _lane_type(tinfos: Sequence[Any]) -> str:
    """The type of the numbers that lanes of the data and the weight hold: their own, or a wider one."""
    data, weight = (str(one.dtype) for one in tinfos)
    return widened_weight(current_cpu(), data, weight) or data


def _as_type(weight: RelayExpr, given: Any, lane_type: str) -> RelayExpr:
    """A weight in lanes of the data's type; int8 beside uint8 stays."""
    is_wider = DataType(lane_type).bits > DataType(given.dtype).bits
    return call("cast", weight, dtype=lane_type) if is_wider else weight


def _depthwise(
    attrs: Any, inputs: Sequence[RelayExpr], channels: int, kernel: tuple[int, ...], dtype: str
) -> RelayExpr | None:
    """A depthwise convolution with its channels in the blocks of the convolutions around it."""
    if attrs.groups != channels or kernel[0] != channels or DataType(dtype).is_float:
        return None
    block = low_precision_block(channels, dtype)
    if vector_fill(block, lanes_of(current_cpu(), "int32")) < WORTH_BLOCKING:
        return None
    return call(
        "nn.contrib_depthwise_conv2d_NCHWc",
        *inputs,
        strides=attrs.strides,
        padding=attrs.padding,
        dilation=attrs.dilation,
        groups=attrs.groups,
        channels=channels,
        kernel_size=kernel[2:],
        data_layout=f"NCHW{block}c",
        kernel_layout=f"OIHW1i{block}o",
        out_layout=f"NCHW{block}c",
        out_dtype=attrs.out_dtype,
    )


def _filled(value: RelayExpr, axis: int, missing: int, rank: int, dtype: Any) -> RelayExpr:
    """A tensor padded with zeros at the end of an axis."""
    if not missing:
        return value
    zero = const(0.0 if DataType(dtype).is_float else 0, str(dtype))
    width = tuple((0, missing if number == axis else 0) for number in range(rank))
    return call("nn.pad", value, zero, pad_width=width)


def low_precision_dense(
    attrs: Any, inputs: Sequence[RelayExpr], weight: tuple[int, ...], tinfos: Sequence[Any]
) -> RelayExpr:
    """A dense layer with its weight in blocks of packed lanes."""
    (rows,) = get_const_tuple([tinfos[0].shape[0]])
    units, depth = weight
    lane_type = _lane_type(tinfos)
    numbers = numbers_per_lane(lane_type)
    in_tiles = (
        has_matrix_unit(current_cpu(), tinfos[0].dtype) and isinstance(rows, int) and rows >= FEWEST_ROWS
    )
    missing = -depth % (numbers * TILE if in_tiles else numbers)
    packed_lanes = (depth + missing) // numbers
    block = dense_block(units, rows if isinstance(rows, int) else None, packed_lanes, "int32")
    block = 2 * TILE if in_tiles else block
    value, packed = (
        _filled(each, 1, missing, 2, kind.dtype) for each, kind in zip(inputs, tinfos, strict=True)
    )
    return call(
        "nn.contrib_dense_pack",
        value,
        _as_type(_filled(packed, 0, -units % block, 2, tinfos[1].dtype), tinfos[1], lane_type),
        units=units,
        out_dtype=attrs.out_dtype,
        weight_layout=f"NC{block}n{numbers}c",
    )


def is_low_precision(attrs: Any, tinfos: Sequence[Any]) -> bool:
    """True if a product is computed in packed lanes on the current target."""
    return uses_packed_lanes(tinfos[0].dtype, tinfos[1].dtype, attrs.out_dtype)
