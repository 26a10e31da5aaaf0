"""Regions of an image, each pooled to a given size by the largest pixel."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import maximum, minimum
from tilewright.te import Tensor
from tilewright.topi.nn.utils import per_axis


def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float) -> Tensor:
    """Regions (batch index, left, top, right, bottom) of an NCHW image, cut into bins of which each gives its largest.

    The sides of a region are rounded to pixels and belong to it; an empty bin gives zero.
    """
    pooled_height, pooled_width = per_axis(pooled_size, 2, "pooled_size")
    _, channels, height, width = data.shape
    kind = rois.dtype

    def bounds(roi: Any, index: Any, low_side: int, count: int, size: Any) -> tuple[Any, Any]:
        """Where a bin begins and ends along an axis."""
        scale = tir.const(spatial_scale, kind)
        begin = te.round(rois(roi, low_side) * scale).astype("int32")
        end = te.round(rois(roi, low_side + 2) * scale).astype("int32")
        length = maximum(end - begin + 1, 1)
        # The bin's ends are exact quotients of integers: floor below, ceiling above.
        first = (index * length) // count
        last = ((index + 1) * length + count - 1) // count
        return minimum(maximum(begin + first, 0), size), minimum(maximum(begin + last, 0), size)

    def element(roi: Any, c: Any, i: Any, j: Any) -> Any:
        top, bottom = bounds(roi, i, 2, pooled_height, height)
        left, right = bounds(roi, j, 1, pooled_width, width)
        ry = te.reduce_axis((0, maximum(bottom - top, 1)), name="rh")
        rx = te.reduce_axis((0, maximum(right - left, 1)), name="rw")
        batch = rois(roi, 0).astype("int32")
        filled = tir.all(bottom > top, right > left, batch >= 0)
        value = tir.if_then_else(
            filled, data(batch, c, top + ry.var, left + rx.var), tir.const(0, data.dtype)
        )
        return te.max(value, axis=[ry, rx])

    made: Tensor = te.compute(
        (rois.shape[0], channels, pooled_height, pooled_width),
        element,
        name="roi_pool_nchw",
        tag="pool,roi_pool_nchw",
    )
    return made
