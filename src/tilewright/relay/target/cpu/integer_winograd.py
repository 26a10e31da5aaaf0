"""Winograd convolutions of 8-bit integers on CPUs: which are faster so, and their transformed weights.

Transformed data and weights are int16, of which x86 multiplies pairs: half as many a lane as dot products of bytes, or
as many where there is no VNNI. Results are exact, which the weights prove: see ``IntegerTransforms``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Constant, const
from tilewright.relay.op.calls import call
from tilewright.relay.op.nn.windows import pad_sides
from tilewright.relay.target.cpu.shapes import constant_shape
from tilewright.schedule.cpu.layouts import Conv2DLayouts
from tilewright.schedule.cpu.low_precision import widened_weight
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.schedule.cpu.matrix_unit import has_matrix_unit
from tilewright.schedule.cpu.winograd_model import Convolution, choose_winograd_tile
from tilewright.tir.packed_lanes import numbers_per_lane
from tilewright.topi.nn.winograd_util import INTEGER_TILES, integer_winograd_transforms

_LARGEST_DATA: Final = {"uint8": (0, 255), "int8": (-128, 127)}


def integer_winograd(
    attrs: Any,
    inputs: Sequence[RelayExpr],
    data: tuple[int, ...],
    tinfos: Sequence[Any],
    layouts: Conv2DLayouts,
) -> RelayExpr | None:
    """The Winograd convolution of ``data`` (channels, height, width) with a constant weight; None if it does not
    qualify or would not be faster."""
    weight, dtype = inputs[1], str(tinfos[0].dtype)
    if not isinstance(weight, Constant) or str(tinfos[1].dtype) != "int8" or dtype not in _LARGEST_DATA:
        return None
    kernel = weight.data.numpy()
    cpu = current_cpu()
    if cpu.family != "x86" or has_matrix_unit(cpu, dtype) or str(attrs.out_dtype) != "int32":
        return None
    steps = (attrs.groups, tuple(attrs.strides), tuple(attrs.dilation), kernel.shape[2:])
    if steps != (1, (1, 1), (1, 1), (3, 3)):
        return None
    tile = _tile(attrs, tinfos, data, kernel, layouts)
    if tile is None:
        return None
    return call(
        "nn.contrib_conv2d_winograd_without_weight_transform",
        inputs[0],
        const(_transformed(kernel, tile, layouts.oc_bn)),
        tile_size=tile,
        padding=attrs.padding,
        channels=kernel.shape[0],
        kernel_size=(3, 3),
        data_layout=layouts.data_layout,
        out_layout=layouts.out_layout,
        out_dtype=attrs.out_dtype,
    )


def _tile(
    attrs: Any, tinfos: Sequence[Any], data: tuple[int, ...], kernel: Any, layouts: Conv2DLayouts
) -> int | None:
    """The tile with which the convolution is fastest, of those with which it is exact."""
    cpu, dtype = current_cpu(), str(tinfos[0].dtype)
    before, after = pad_sides(attrs.padding, 2)
    height, width = (
        extent + first + last - 2 for extent, first, last in zip(data[1:], before, after, strict=True)
    )
    lanes, numbers = lanes_of(cpu, "int32"), numbers_per_lane("int16")
    is_widened = widened_weight(cpu, dtype, "int8") is not None
    (batch,) = constant_shape(tinfos[0].shape[:1]) or (1,)
    convolution = Convolution(
        *(batch, data[0], kernel.shape[0], height, width, layouts.oc_bn),
        element_bytes=2,
        vectors=-(-layouts.oc_bn // lanes),
        products=numbers,
        direct_products=numbers if is_widened else numbers_per_lane(dtype),
    )
    bound = largest_sum(kernel, dtype)
    tiles = [tile for tile in INTEGER_TILES if bound < integer_winograd_transforms(tile).limit]
    largest = PassContext.current().get("relay.winograd.largest_tile")
    return choose_winograd_tile(cpu, convolution, largest, tiles=tiles) if tiles else None


def largest_sum(kernel: Any, dtype: str) -> int:
    """The largest absolute value that a sum of data of this type with a channel of a kernel OIHW can have."""
    least, most = _LARGEST_DATA[dtype]
    flat = kernel.reshape(len(kernel), -1).astype(np.int64)
    positive, negative = np.maximum(flat, 0).sum(axis=1), np.minimum(flat, 0).sum(axis=1)
    upper, lower = most * positive + least * negative, least * positive + most * negative
    return int(max(np.abs(upper).max(), np.abs(lower).max()))


def _transformed(kernel: Any, tile: int, block: int) -> Any:
    """A kernel OIHW as (n, n, O/o, I/2, o, 2)."""
    g = integer_winograd_transforms(tile).g
    both = np.kron(g, g).astype(np.int32)
    outputs, inputs = kernel.shape[:2]
    made = (both @ kernel.reshape(-1, 9).T.astype(np.int32)).astype(np.int16)
    packed = made.reshape(len(g), len(g), outputs // block, block, inputs // 2, 2)
    return np.ascontiguousarray(packed.transpose(0, 1, 2, 4, 3, 5))
