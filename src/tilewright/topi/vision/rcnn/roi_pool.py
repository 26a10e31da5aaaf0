"""Regions of an image, each pooled to a given size by the largest pixel."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import least, maximum, minimum
from tilewright.te import Tensor
from tilewright.topi.kernel import loop_kernel, scalar
from tilewright.topi.nn.utils import per_axis


def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float) -> Tensor:
    """Regions (batch index, left, top, right, bottom) of an NCHW image, cut into bins of which each gives its largest.

    The sides of a region are rounded to pixels and belong to it. An empty bin gives zero, and so does a region of an
    image that is not there.
    """
    pooled_height, pooled_width = per_axis(pooled_size, 2, "pooled_size")
    batch, channels, height, width = data.shape
    kind = rois.dtype

    def body(builder: Any, ins: Any, outs: Any) -> None:
        image, regions = ins

        def side(roi: Any, number: int) -> Any:
            return te.round(regions[roi, number] * tir.const(spatial_scale, kind)).astype("int32")

        def bounds(roi: Any, index: Any, number: int, count: int, size: Any) -> tuple[Any, Any]:
            """Where a bin begins and ends along an axis: exact quotients, rounded down and up."""
            begin = side(roi, number)
            length = maximum(side(roi, number + 2) - begin + 1, 1)
            first = begin + (index * length) // count
            last = begin + ((index + 1) * length + count - 1) // count
            return (
                builder.let("first", minimum(maximum(first, 0), size)),
                builder.let("last", minimum(maximum(last, 0), size)),
            )

        with (
            builder.for_range(0, rois.shape[0], name="roi", kind="parallel") as roi,
            builder.for_range(0, pooled_height, name="i") as i,
            builder.for_range(0, pooled_width, name="j") as j,
        ):
            top, bottom = bounds(roi, i, 2, pooled_height, height)
            left, right = bounds(roi, j, 1, pooled_width, width)
            item = builder.let("item", regions[roi, 0].astype("int32"))
            filled = builder.let("filled", tir.all(bottom > top, right > left, item >= 0, item < batch))
            with builder.for_range(0, channels, name="c") as c:
                largest = scalar(builder, data.dtype, "largest", tir.const(0, data.dtype))
                with builder.if_scope(filled):
                    largest[0] = least(data.dtype)
                    with (
                        builder.for_range(top, bottom, name="y") as y,
                        builder.for_range(left, right, name="x") as x,
                    ):
                        largest[0] = tir.Max(largest[0], image[item, c, y, x])
                outs[0][roi, c, i, j] = largest[0]

    shape = (rois.shape[0], channels, pooled_height, pooled_width)
    return loop_kernel("roi_pool_nchw", [data, rois], [(shape, data.dtype)], body, tag="pool,roi_pool_nchw")[
        0
    ]
