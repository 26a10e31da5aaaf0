"""Depthwise convolution with channels in blocks: a wide image is read where it lies, without a padded copy."""

from __future__ import annotations

from typing import Any, Final

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi.nn.depthwise_conv2d import depthwise_conv2d_NCHWc as padded_depthwise_conv2d_NCHWc
from tilewright.topi.nn.utils import pad_amounts, per_axis
from tilewright.topi.utils import get_const_tuple

WIDE: Final = 20
"""Columns of a result from which its edges are few beside its inside: the edges are code of their own."""


def depthwise_conv2d_NCHWc(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> Tensor:
    """As ``topi.nn.depthwise_conv2d_NCHWc``. What lies beyond the image is zero by a condition that is marked likely,
    so that loops are split where it holds."""
    shape, taps = get_const_tuple(data.shape), get_const_tuple(kernel.shape)
    (top, left), (down, right) = pad_amounts(padding, taps[2:4])
    plain = (
        all(isinstance(extent, int) for extent in (*shape, *taps))
        and len(shape) == 5
        and shape[1] == taps[0]
        and shape[4] == taps[5]
        and (out_dtype or data.dtype) == data.dtype
        and str(data.dtype) == "float32"
        and max(top, left, down, right) > 0
    )
    if plain:
        steps, spread = per_axis(strides, 2, "strides"), per_axis(dilation, 2, "dilation")
        _, _, height, width, _ = shape
        rows = (height + top + down - spread[0] * (taps[2] - 1) - 1) // steps[0] + 1
        columns = (width + left + right - spread[1] * (taps[3] - 1) - 1) // steps[1] + 1
    if not plain or columns < WIDE:
        return padded_depthwise_conv2d_NCHWc(
            data, kernel, strides, padding, dilation, layout, out_layout, out_dtype
        )
    down_taps = te.reduce_axis((0, taps[2]), name="kh")
    right_taps = te.reduce_axis((0, taps[3]), name="kw")

    def element(n: Any, c: Any, h: Any, w: Any, b: Any) -> Any:
        y = h * steps[0] + down_taps.var * spread[0] - top
        x = w * steps[1] + right_taps.var * spread[1] - left
        inside = [y >= 0] * (top > 0) + [y < height] * (down > 0)
        inside += [x >= 0] * (left > 0) + [x < width] * (right > 0)
        value = tir.if_then_else(
            tir.all(*[tir.likely(one) for one in inside]), data(n, c, y, x, b), tir.const(0, data.dtype)
        )
        return te.sum(value * kernel(c, 0, down_taps, right_taps, 0, b), axis=[down_taps, right_taps])

    made: Tensor = te.compute(
        (shape[0], shape[1], rows, columns, shape[4]),
        element,
        name="DepthwiseConv2d",
        tag="depthwise_conv2d_NCHWc",
        attrs={"layout_free_placeholders": [kernel]},
    )
    return made
