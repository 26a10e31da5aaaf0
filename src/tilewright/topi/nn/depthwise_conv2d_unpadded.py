"""Blocked depthwise convolution that reads the image in place, without a padded copy."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi.nn.utils import pad_amounts, per_axis
from tilewright.topi.utils import get_const_tuple


def depthwise_conv2d_NCHWc_unpadded(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """As ``topi.nn.depthwise_conv2d_NCHWc`` of constant shape with one output channel for each input channel.

    The border is handled by a condition that is marked likely, so that loop partitioning splits it off.
    """
    batch, blocks, height, width, block = get_const_tuple(data.shape)
    taps = get_const_tuple(kernel.shape)[2:4]
    (top, left), (down, right) = pad_amounts(padding, taps)
    steps, spread = per_axis(strides, 2, "strides"), per_axis(dilation, 2, "dilation")
    rows, columns = depthwise_result(data, kernel, strides, padding, dilation)
    wide = out_dtype or str(data.dtype)
    down_taps = te.reduce_axis((0, taps[0]), name="kh")
    right_taps = te.reduce_axis((0, taps[1]), name="kw")

    def element(n: Any, c: Any, h: Any, w: Any, b: Any) -> Any:
        y = h * steps[0] + down_taps.var * spread[0] - top
        x = w * steps[1] + right_taps.var * spread[1] - left
        inside = [y >= 0] * (top > 0) + [y < height] * (down > 0)
        inside += [x >= 0] * (left > 0) + [x < width] * (right > 0)
        value = tir.if_then_else(
            tir.all(*[tir.likely(one) for one in inside]), data(n, c, y, x, b), tir.const(0, data.dtype)
        )
        weight = kernel(c, 0, down_taps, right_taps, 0, b)
        return te.sum(value.astype(wide) * weight.astype(wide), axis=[down_taps, right_taps])

    made: Tensor = te.compute(
        (batch, blocks, rows, columns, block),
        element,
        name="DepthwiseConv2d",
        tag="depthwise_conv2d_NCHWc",
        attrs={"layout_free_placeholders": [kernel]},
    )
    return made


def depthwise_result(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any
) -> tuple[int, int]:
    """Rows and columns of the result."""
    extents, taps = get_const_tuple(data.shape)[2:4], get_const_tuple(kernel.shape)[2:4]
    first, last = pad_amounts(padding, taps)
    rows, columns = (
        (extent + before + after - spread * (count - 1) - 1) // step + 1
        for extent, count, before, after, step, spread in zip(
            extents,
            taps,
            first,
            last,
            per_axis(strides, 2, "strides"),
            per_axis(dilation, 2, "dilation"),
            strict=True,
        )
    )
    return rows, columns
