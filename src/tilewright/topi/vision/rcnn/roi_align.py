"""Regions of an image, read bilinearly and pooled to a given size."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import maximum, minimum
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.utils import per_axis


def _roi_align(
    data: Tensor,
    rois: Tensor,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int,
    layout: str,
) -> Tensor:
    kinds = {"avg": "avg", b"avg": "avg", 0: "avg", "max": "max", b"max": "max", 1: "max"}
    if mode not in kinds:
        raise OpAttributeInvalid(f'roi_align pools by "avg" or "max", not {mode!r}')
    average = kinds[mode] == "avg"
    pooled_height, pooled_width = per_axis(pooled_size, 2, "pooled_size")
    extent = dict(zip(layout, data.shape, strict=True))
    kind = rois.dtype
    one = tir.const(1, kind)

    def region(roi: Any) -> tuple[Any, Any, Any, Any]:
        """The region's left, top, width and height, in pixels; it is at least one pixel large."""
        left, top, right, bottom = (rois(roi, side) * tir.const(spatial_scale, kind) for side in (1, 2, 3, 4))
        return left, top, tir.Max(right - left, one), tir.Max(bottom - top, one)

    def samples(roi: Any) -> tuple[Any, Any]:
        """How many rows and columns are read for an element of the output."""
        if sample_ratio > 0:
            return tir.const(sample_ratio, "int32"), tir.const(sample_ratio, "int32")
        _, _, width, height = region(roi)
        rows = te.ceil(height / tir.const(pooled_height, kind)).astype("int32")
        return rows, te.ceil(width / tir.const(pooled_width, kind)).astype("int32")

    def read(n: Any, c: Any, y: Any, x: Any) -> Any:
        """The image at a place; up to one pixel outside it is its edge, farther zero."""
        last_y, last_x = (tir.Cast(kind, extent[letter] - 1) for letter in "HW")
        outside = tir.any(y < -1.0, x < -1.0, y > last_y + one, x > last_x + one)
        place_y = tir.Min(tir.Max(y, tir.const(0, kind)), last_y)
        place_x = tir.Min(tir.Max(x, tir.const(0, kind)), last_x)
        low_y, low_x = te.floor(place_y), te.floor(place_x)
        part_y, part_x = place_y - low_y, place_x - low_x

        def pixel(down: int, right: int) -> Any:
            at = {
                "N": n,
                "C": c,
                "H": maximum(minimum(low_y.astype("int32") + down, extent["H"] - 1), 0),
                "W": maximum(minimum(low_x.astype("int32") + right, extent["W"] - 1), 0),
            }
            return data(*[at[letter] for letter in layout]).astype(kind)

        upper = pixel(0, 0) * (one - part_x) + pixel(0, 1) * part_x
        lower = pixel(1, 0) * (one - part_x) + pixel(1, 1) * part_x
        value = upper * (one - part_y) + lower * part_y
        return tir.if_then_else(outside, tir.const(0, kind), value)

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        roi = at["N"]
        left, top, width, height = region(roi)
        rows, columns = samples(roi)
        ry, rx = te.reduce_axis((0, rows), name="rh"), te.reduce_axis((0, columns), name="rw")
        bin_height = height / tir.const(pooled_height, kind)
        bin_width = width / tir.const(pooled_width, kind)
        half = tir.const(0.5, kind)
        y = top + (at["H"].astype(kind) + (ry.var.astype(kind) + half) / rows.astype(kind)) * bin_height
        x = left + (at["W"].astype(kind) + (rx.var.astype(kind) + half) / columns.astype(kind)) * bin_width
        batch = rois(roi, 0).astype("int32")
        value = tir.if_then_else(batch >= 0, read(batch, at["C"], y, x), tir.const(0, kind))
        return (te.sum if average else te.max)(value, axis=[ry, rx])

    shape = {"N": rois.shape[0], "C": extent["C"], "H": pooled_height, "W": pooled_width}
    name = f"roi_align_{layout.lower()}"
    pooled = te.compute([shape[letter] for letter in layout], element, name=name, tag=f"pool,{name}")

    def finish(*indices: Any) -> Any:
        value = pooled(*indices)
        if average:
            rows, columns = samples(indices[0])
            value = value / (rows * columns).astype(kind)
        return value.astype(data.dtype)

    made: Tensor = te.compute(pooled.shape, finish, name=f"{name}_mean", tag=tag.INJECTIVE)
    return made


def roi_align_nchw(
    data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float, mode: Any, sample_ratio: int = -1
) -> Tensor:
    """Regions (batch index, left, top, right, bottom) of an NCHW image, pooled by "avg" or "max".

    Each element of the output reads ``sample_ratio`` squared places, or as many as its part of the region has pixels.
    """
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NCHW")


def roi_align_nhwc(
    data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float, mode: Any, sample_ratio: int = -1
) -> Tensor:
    """The same for NHWC."""
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, "NHWC")
