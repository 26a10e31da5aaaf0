"""Regions of an image, read bilinearly and pooled to a given size."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import least, maximum, minimum
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi.kernel import loop_kernel, scalar
from tilewright.topi.nn.utils import per_axis

_POOLING = {
    "avg": "avg",
    b"avg": "avg",
    0: "avg",
    "max": "max",
    b"max": "max",
    1: "max",
    "max_of_corners": "max_of_corners",
}


class _Axis:
    """One axis of a region: where it starts, how large a bin of it is, and how often a bin is read."""

    def __init__(self, builder: Any, begin: Any, end: Any, bins: int, samples: int, aligned: bool) -> None:
        kind = begin.dtype
        extent = end - begin
        if aligned:
            begin = begin - tir.const(0.5, kind)
        else:
            # A region is at least one pixel large.
            extent = tir.Max(extent, tir.const(1, kind))
        self.begin = builder.let("begin", begin)
        self.size = builder.let("size", extent / tir.const(bins, kind))
        count = tir.const(samples, "int32") if samples > 0 else te.ceil(self.size).astype("int32")
        self.count = builder.let("count", count)

    def place(self, index: Any, step: Any) -> Any:
        """Where a step of a bin reads."""
        kind = self.size.dtype
        part = (step.astype(kind) + tir.const(0.5, kind)) / self.count.astype(kind)
        return self.begin + (index.astype(kind) + part) * self.size


def _between(builder: Any, place: Any, size: Any) -> tuple[Any, Any, Any, Any]:
    """The pixels below and above a place, how far above the lower one it is, and whether it is on the image.

    Up to one pixel outside the image is its edge.
    """
    kind = place.dtype
    last = tir.Cast(kind, size - 1)
    given = builder.let("place", place)
    exists = tir.all(given >= tir.const(-1, kind), given <= last + tir.const(1, kind))
    inside = builder.let("inside", tir.Min(tir.Max(given, tir.const(0, kind)), last))
    low = builder.let("low", te.floor(inside).astype("int32"))
    return low, minimum(low + 1, size - 1), inside - low.astype(kind), exists


def _roi_align(
    data: Tensor,
    rois: Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int,
    layout: str,
    aligned: bool,
) -> Tensor:
    if mode not in _POOLING:
        raise OpAttributeInvalid(f'roi_align pools by "avg", "max" or "max_of_corners", not {mode!r}')
    average = _POOLING[mode] == "avg"
    pooled_height, pooled_width = per_axis(pooled_size, 2, "pooled_size")
    extent = dict(zip(layout, data.shape, strict=True))
    kind = rois.dtype
    one, zero = tir.const(1, kind), tir.const(0, kind)

    def at(n: Any, c: Any, h: Any, w: Any) -> list[Any]:
        found = {"N": n, "C": c, "H": h, "W": w}
        return [found[letter] for letter in layout]

    def body(builder: Any, ins: Any, outs: Any) -> None:
        image, regions = ins

        def pool(roi: Any, c: Any, rows: _Axis, columns: _Axis, i: Any, j: Any) -> None:
            """Write one element of the output."""
            item = builder.let("item", regions[roi, 0].astype("int32"))
            reads = rows.count * columns.count
            start = tir.if_then_else(reads > 0, least(kind), zero)
            total = scalar(builder, kind, "total", zero if average else start)
            with (
                builder.for_range(0, rows.count, name="ry") as ry,
                builder.for_range(0, columns.count, name="rx") as rx,
            ):
                top, bottom, down, on_rows = _between(builder, rows.place(i, ry), extent["H"])
                left, right, across, on_columns = _between(builder, columns.place(j, rx), extent["W"])
                upper = [image[at(item, c, top, x)].astype(kind) for x in (left, right)]
                lower = [image[at(item, c, bottom, x)].astype(kind) for x in (left, right)]
                above = [upper[0] * (one - across), upper[1] * across]
                below = [lower[0] * (one - across), lower[1] * across]
                corners = [each * (one - down) for each in above] + [each * down for each in below]
                join = tir.Max if _POOLING[mode] == "max_of_corners" else operator.add
                value = tir.if_then_else(
                    tir.all(on_rows, on_columns, item >= 0, item < extent["N"]), reduce(join, corners), zero
                )
                total[0] = total[0] + value if average else tir.Max(total[0], value)
            count = maximum(reads, 1).astype(kind)
            result = total[0] / count if average else total[0]
            outs[0][at(roi, c, i, j)] = result.astype(data.dtype)

        scale = tir.const(spatial_scale, kind)
        with builder.for_range(0, rois.shape[0], name="roi", kind="parallel") as roi:
            left, top, right, bottom = (regions[roi, side] * scale for side in (1, 2, 3, 4))
            rows = _Axis(builder, top, bottom, pooled_height, sample_ratio, aligned)
            columns = _Axis(builder, left, right, pooled_width, sample_ratio, aligned)
            with (
                builder.for_range(0, extent["C"], name="c") as c,
                builder.for_range(0, pooled_height, name="i") as i,
                builder.for_range(0, pooled_width, name="j") as j,
            ):
                pool(roi, c, rows, columns, i, j)

    shape = at(rois.shape[0], extent["C"], pooled_height, pooled_width)
    name = f"roi_align_{layout.lower()}"
    return loop_kernel(name, [data, rois], [(shape, data.dtype)], body, tag=f"pool,{name}")[0]


def roi_align_nchw(
    data: Tensor,
    rois: Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Regions (batch index, left, top, right, bottom) of an NCHW image, pooled by "avg" or "max".

    Each element of the output reads ``sample_ratio`` squared places, or as many as its part of the region has pixels.
    A region of an image that does not exist is zero. ``aligned`` regions have the centre of the first pixel at 0.5, and
    may be smaller than a pixel. "max_of_corners" takes the largest of the weighted corners of every place that is read.
    """
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NCHW", aligned)


def roi_align_nhwc(
    data: Tensor,
    rois: Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """The same for NHWC."""
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NHWC", aligned)
