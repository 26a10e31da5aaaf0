"""The CPU rows of the strategy table: packed weights, blocked layouts and hand-written kernels where they are faster.

Predicates and computations run with the target set: block and tile sizes come from the machine model of
``schedule.cpu``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from tilewright.schedule.cpu.attention import attention
from tilewright.schedule.cpu.layouts import conv2d_layouts, dense_block
from tilewright.schedule.cpu.low_precision import uses_packed_lanes
from tilewright.schedule.cpu.recurrent import recurrent_tiling
from tilewright.schedule.cpu.weight_only import dense_weight_only
from tilewright.strategy.row import Row
from tilewright.support.dtype import DataType
from tilewright.target.target import Target
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.attention import AttentionShape
from tilewright.topi.nn.batch_matmul import batch_matmul, known_shape
from tilewright.topi.nn.conv2d_packed import conv2d_nchw_packed
from tilewright.topi.nn.conv2d_transpose_NCHWc import conv2d_transpose_NCHWc
from tilewright.topi.nn.conv2d_winograd_NCHWc import conv2d_winograd_NCHWc
from tilewright.topi.nn.dense import copy_if_identical
from tilewright.topi.nn.dense_packed import batch_matmul_transposed, dense_packed, dense_packed_lanes
from tilewright.topi.nn.depthwise_conv2d_unpadded import depthwise_conv2d_NCHWc_unpadded, depthwise_result
from tilewright.topi.nn.packed_lane_products import (
    batch_matmul_packed_lanes,
    conv2d_NCHWc_packed_lanes,
    dense_pack_packed_lanes,
)
from tilewright.topi.nn.recurrent import CELLS, recurrent
from tilewright.topi.nn.utils import pad_amounts
from tilewright.topi.nn.weight_only import WeightOnly
from tilewright.topi.utils import get_const_int, get_const_tuple

Inputs = Sequence[Tensor]

ROWS_WORTH_PACKING: Final = 8
"""Rows from which a packed copy of the other matrix pays off."""
WIDE: Final = 20
"""Columns of a result from which its edges, which have separate code, are a small part of it."""


def _are_known(*extents: Any) -> bool:
    return all(isinstance(extent, int) for extent in extents)


def _count(rows: int) -> str:
    return f"{rows} row" if rows == 1 else f"{rows} rows"


# Convolutions


def conv2d_blocks(data: Tensor, kernel: Tensor, groups: int) -> tuple[int, int] | str:
    """The channel blocks for an NCHW/OIHW convolution, or the reason why it should not be blocked."""
    inputs, outputs = get_const_tuple([data.shape[1], kernel.shape[0]])
    if not _are_known(inputs, outputs):
        return "the number of channels is not constant"
    layouts = conv2d_layouts(inputs, outputs, groups, str(data.dtype))
    if layouts is None:
        return "vectors of channels would be mostly empty"
    if groups == inputs:
        return "depthwise: the layout transforms would cost what blocks save"
    return layouts.ic_bn, layouts.oc_bn


def _conv2d_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    layouts = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout or attrs.data_layout)
    if layouts != ("NCHW", "OIHW", "NCHW"):
        return f"layout {'/'.join(dict.fromkeys(layouts))}, not NCHW/OIHW"
    kind = DataType(inputs[0].dtype)
    if kind.is_float and kind.bits == 16:
        return f"{kind} is accumulated in float32, as in the definition"
    blocks = conv2d_blocks(inputs[0], inputs[1], attrs.groups)
    return blocks if isinstance(blocks, str) else None


def _conv2d_packed(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    blocks = conv2d_blocks(inputs[0], inputs[1], attrs.groups)
    assert not isinstance(blocks, str)
    window = get_const_tuple(attrs.strides), attrs.padding, get_const_tuple(attrs.dilation)
    return [conv2d_nchw_packed(inputs[0], inputs[1], *window, attrs.out_dtype or None, blocks)]


def _window(attrs: Any) -> tuple[Any, Any, Any, str, str]:
    out_layout = str(attrs.out_layout or attrs.data_layout)
    strides, dilation = get_const_tuple(attrs.strides), get_const_tuple(attrs.dilation)
    return strides, attrs.padding, dilation, attrs.data_layout, out_layout


def _packed_lanes_refused(data: Tensor, weight: Tensor, out_dtype: str | None) -> str | None:
    """Why a product is not computed with dot-product instructions on packed lanes; None if it is."""
    if uses_packed_lanes(data.dtype, weight.dtype, out_dtype):
        return None
    return f"no dot product of {data.dtype} and {weight.dtype} to {out_dtype or data.dtype} on this target"


def _conv2d_packed_lanes_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    if len(inputs[1].shape) != 7:
        return "the weight does not have packed lanes"
    return _packed_lanes_refused(inputs[0], inputs[1], attrs.out_dtype or None)


def _conv2d_packed_lanes(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    data, weight = inputs
    result = attrs.out_dtype or str(data.dtype)
    return [conv2d_NCHWc_packed_lanes(data, weight, *_window(attrs), result, get_const_int(weight.shape[6]))]


def _winograd_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    ranks = (len(inputs[0].shape), len(inputs[1].shape), len(out_type.shape))
    if ranks not in ((5, 5, 5), (5, 6, 5)):
        return "data and weight are not blocked"
    taps = tuple(attrs.kernel_size)
    return None if taps == (3, 3) else f"a kernel of {taps[0]}x{taps[1]}, not 3x3"


def _winograd(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    strides, dilation = get_const_tuple(attrs.strides), get_const_tuple(attrs.dilation)
    data, weight = inputs
    return [conv2d_winograd_NCHWc(data, weight, strides, attrs.padding, dilation, attrs.out_dtype or None)]


def _transposed_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    ranks = (len(inputs[0].shape), len(inputs[1].shape), len(out_type.shape))
    if ranks != (5, 6, 5):
        return "the channels are not blocked"
    if attrs.groups != 1:
        return f"{attrs.groups} groups"
    return None if set(attrs.dilation) == {1} else "it is dilated"


def _transposed(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    window = (attrs.strides, attrs.padding, attrs.out_dtype or None, attrs.output_padding)
    return [conv2d_transpose_NCHWc(inputs[0], inputs[1], *window)]


_READ_IN_PLACE: Final = (("float32", "float32"), ("uint8", "int32"), ("int8", "int32"))
"""The types of data and result of a depthwise convolution that needs no padded copy."""


def unpadded_refused(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str | None
) -> str | None:
    """Why a blocked depthwise convolution needs a padded copy of its image; None if it does not."""
    shape, taps = get_const_tuple(data.shape), get_const_tuple(kernel.shape)
    if not _are_known(*shape, *taps) or len(shape) != 5:
        return "the shapes are not constant"
    if shape[1] != taps[0] or shape[4] != taps[5]:
        return "several outputs per channel"
    if (str(data.dtype), out_dtype or str(data.dtype)) not in _READ_IN_PLACE:
        return f"{data.dtype} to {out_dtype}, not float32 or 8-bit integers to int32"
    if not any(amount > 0 for side in pad_amounts(padding, taps[2:4]) for amount in side):
        return "there is no padding"
    columns = depthwise_result(data, kernel, strides, padding, dilation)[1]
    return None if columns >= WIDE else f"{columns} columns, fewer than {WIDE}: mostly edges"


def _unpadded_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    strides, padding, dilation, *_ = _window(attrs)
    return unpadded_refused(inputs[0], inputs[1], strides, padding, dilation, attrs.out_dtype or None)


def _unpadded(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    window = _window(attrs)[:3]
    return [depthwise_conv2d_NCHWc_unpadded(inputs[0], inputs[1], *window, attrs.out_dtype or None)]


# Matrix products


def dense_packed_lanes_refused(data: Tensor, weight: Tensor, out_dtype: str | None) -> str | None:
    """Why a dense layer is not computed in packed lanes; None if it is."""
    if len(data.shape) != 2:
        return f"data of {len(data.shape)} dimensions, not 2"
    return _packed_lanes_refused(data, weight, out_dtype)


def dense_packed_refused(data: Tensor, weight: Tensor) -> str | None:
    """Why the weight of a dense layer is not packed inside the kernel; None if it is."""
    rows = get_const_tuple(data.shape[:-1])
    if not _are_known(*rows, *get_const_tuple(weight.shape)):
        return "the shapes are not constant"
    if prod(rows) < ROWS_WORTH_PACKING:
        return f"{_count(prod(rows))}, fewer than the {ROWS_WORTH_PACKING} that repay packing the weight"
    return None if len(data.shape) == 2 else f"data of {len(data.shape)} dimensions, not 2"


def units_per_block(data: Tensor, weight: Tensor) -> int:
    """The number of units per block of a dense layer. If the preferred size does not divide the units, a smaller one
    that does is used, rather than padding."""
    columns, depth = get_const_tuple(weight.shape)
    rows = get_const_tuple(data.shape)[0]
    block = dense_block(columns, rows if isinstance(rows, int) else None, depth, str(data.dtype))
    while columns % block:
        block -= 1
    return block


def _matrices(inputs: Inputs) -> tuple[Tensor, Tensor]:
    return inputs[0], copy_if_identical(inputs[0], inputs[1])


def _dense_packed_lanes_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    return dense_packed_lanes_refused(inputs[0], inputs[1], attrs.out_dtype or None)


def _dense_packed_lanes(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    return [dense_packed_lanes(*_matrices(inputs), None, attrs.out_dtype or None)]


def _dense_packed_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    return dense_packed_refused(inputs[0], inputs[1])


def _dense_packed(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    data, weight = _matrices(inputs)
    return [dense_packed(data, weight, None, attrs.out_dtype or None, units_per_block(data, weight))]


def _dense_pack_packed_lanes_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    if len(inputs[1].shape) != 4:
        return "the weight does not have packed lanes"
    return _packed_lanes_refused(inputs[0], inputs[1], attrs.out_dtype or None)


def _dense_pack_packed_lanes(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    return [dense_pack_packed_lanes(inputs[0], inputs[1], None, attrs.out_dtype or None, out_type.shape[1])]


def _batch_matmul_packed_lanes_refused(
    attrs: Any, inputs: Inputs, out_type: Any, target: Target
) -> str | None:
    return _packed_lanes_refused(inputs[0], inputs[1], attrs.out_dtype or None)


def _batch_matmul_packed_lanes(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    first, second = _matrices(inputs)
    flags = attrs.transpose_a, attrs.transpose_b
    shape = batch_matmul(first, second, known_shape(out_type), attrs.out_dtype or None, *flags).shape
    return [batch_matmul_packed_lanes(first, second, shape, attrs.out_dtype or None, *flags)]


def batch_matmul_transposed_refused(tensor_a: Tensor, transpose_a: bool, transpose_b: bool) -> str | None:
    """Why the second matrix of a product is not transposed in memory first; None if it is."""
    if not transpose_b:
        return "the second matrix is not transposed"
    (rows,) = get_const_tuple([tensor_a.shape[2 if transpose_a else 1]])
    if not isinstance(rows, int):
        return "the number of rows is not constant"
    if rows < ROWS_WORTH_PACKING:
        return f"{_count(rows)}, fewer than the {ROWS_WORTH_PACKING} that repay transposing the matrix"
    return None


def _batch_matmul_transposed_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    return batch_matmul_transposed_refused(inputs[0], attrs.transpose_a, attrs.transpose_b)


def _batch_matmul_transposed(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    first, second = _matrices(inputs)
    shape = known_shape(out_type)
    return [batch_matmul_transposed(first, second, shape, attrs.out_dtype or None, attrs.transpose_a)]


# Hand-written loop nests


def _always(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    return None


def _attention(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    shape = AttentionShape.of(inputs, attrs.layouts, attrs.heads, attrs.shared, attrs.diagonal)
    mask = inputs[3] if len(inputs) > 3 else None
    query, key, value = inputs[:3]
    return [attention(query, key, value, mask, shape, attrs.scale, attrs.layouts, attrs.first_heads)]


def _weight_only_refused(attrs: Any, inputs: Inputs, out_type: Any, target: Target) -> str | None:
    known = _are_known(*get_const_tuple(inputs[0].shape))
    return None if known else "the number of rows is not constant"


def _weight_only(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    data, weight, scales = inputs[:3]
    groups, depth = get_const_int(scales.shape[1]), get_const_int(data.shape[1])
    extents = WeightOnly.of(get_const_tuple(weight.shape), groups, attrs.units, depth, attrs.bits, attrs.zero)
    return [dense_weight_only(data, weight, scales, inputs[3] if len(inputs) > 3 else None, extents)]


def _recurrent(attrs: Any, inputs: Inputs, out_type: Any) -> list[Tensor]:
    states = 2 + CELLS[attrs.cell].states
    tiling = recurrent_tiling(inputs[0], inputs[1])
    return recurrent(attrs.cell, inputs[0], inputs[1], inputs[2:states], inputs[states:], tiling)


ROWS: Final = (
    Row(
        "nn.conv2d",
        "cpu",
        "conv2d_nchw_packed.cpu",
        _conv2d_packed,
        "topi.nn.conv2d_nchw_packed",
        _conv2d_refused,
        "channels packed into blocks fill vectors",
    ),
    Row(
        "nn.contrib_conv2d_NCHWc",
        "cpu",
        "conv2d_NCHWc_packed_lanes.cpu",
        _conv2d_packed_lanes,
        "topi.nn.conv2d_NCHWc_packed_lanes",
        _conv2d_packed_lanes_refused,
        "dot-product instructions multiply packed lanes",
    ),
    Row(
        "nn.contrib_conv2d_winograd_without_weight_transform",
        "cpu",
        "conv2d_winograd_NCHWc.cpu",
        _winograd,
        "topi.nn.conv2d_winograd_NCHWc",
        _winograd_refused,
        "Winograd with blocked channels: fewer multiplications, vectorized",
    ),
    Row(
        "nn.conv2d_transpose",
        "cpu",
        "conv2d_transpose_NCHWc.cpu",
        _transposed,
        "topi.nn.conv2d_transpose_NCHWc",
        _transposed_refused,
        "a convolution for each phase multiplies no zeros between the elements of the input",
    ),
    Row(
        "nn.contrib_depthwise_conv2d_NCHWc",
        "cpu",
        "depthwise_conv2d_NCHWc_unpadded.cpu",
        _unpadded,
        "topi.nn.depthwise_conv2d_NCHWc_unpadded",
        _unpadded_refused,
        "a wide image is read in place, without a padded copy",
    ),
    Row(
        "nn.dense",
        "cpu",
        "dense_packed_lanes.cpu",
        _dense_packed_lanes,
        "topi.nn.dense_packed_lanes",
        _dense_packed_lanes_refused,
        "dot-product instructions multiply packed lanes",
    ),
    Row(
        "nn.dense",
        "cpu",
        "dense_packed.cpu",
        _dense_packed,
        "topi.nn.dense_packed",
        _dense_packed_refused,
        "many rows repay packing the weight",
    ),
    Row(
        "nn.contrib_dense_pack",
        "cpu",
        "dense_pack_packed_lanes.cpu",
        _dense_pack_packed_lanes,
        "topi.nn.dense_pack_packed_lanes",
        _dense_pack_packed_lanes_refused,
        "dot-product instructions multiply packed lanes",
    ),
    Row(
        "nn.batch_matmul",
        "cpu",
        "batch_matmul_packed_lanes.cpu",
        _batch_matmul_packed_lanes,
        "topi.nn.batch_matmul_packed_lanes",
        _batch_matmul_packed_lanes_refused,
        "dot-product instructions multiply packed lanes",
    ),
    Row(
        "nn.batch_matmul",
        "cpu",
        "batch_matmul_transposed.cpu",
        _batch_matmul_transposed,
        "topi.nn.batch_matmul_transposed",
        _batch_matmul_transposed_refused,
        "many rows repay transposing the second matrix",
    ),
    Row(
        "nn.contrib_attention",
        "cpu",
        "attention.cpu",
        _attention,
        "schedule.cpu.attention",
        _always,
        "the scores of some queries at a time stay in the caches",
    ),
    Row(
        "nn.contrib_dense_weight_only",
        "cpu",
        "dense_weight_only.cpu",
        _weight_only,
        "schedule.cpu.weight_only",
        _weight_only_refused,
        "integers are unpacked in registers, and the weight is read once, in order",
    ),
    Row(
        "nn.contrib_recurrent",
        "cpu",
        "recurrent.cpu",
        _recurrent,
        "topi.nn.recurrent",
        _always,
        "rows by the registers, shares by the cores",
    ),
)
