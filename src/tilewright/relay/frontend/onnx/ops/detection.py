"""Boxes and regions of images."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partial_shapes import part
from tilewright.relay.frontend.onnx.registry import converter


@converter("NonMaxSuppression", since=10)
def non_max_suppression(
    node: Node,
    boxes: Expr,
    scores: Expr,
    limit: Expr | None = None,
    overlap: Expr | None = None,
    lowest: Expr | None = None,
) -> Expr:
    """For each item and class, the best boxes that overlap no better one; as many rows as there are."""
    if limit is None:
        return relay.zeros((0, 3), "int64")
    found = relay.vision.all_class_non_max_suppression(
        _corners(node, boxes),
        scores,
        _number(_at_most(limit, int(np.iinfo("int32").max)), "int32"),
        const(0.0, "float32") if overlap is None else _number(overlap, "float32"),
        # Without a threshold every score counts.
        const(-3.0e38, "float32") if lowest is None else _number(lowest, "float32"),
    )
    count = relay.concatenate([found[1], const([3], "int64")], axis=0)
    return relay.strided_slice(found[0], const([0, 0], "int64"), count, const([1, 1], "int64"))


def _at_most(value: Expr, greatest: int) -> Expr:
    """A limit that fits fewer bits: PyTorch writes the greatest int64 where there is none."""
    return relay.minimum(relay.cast(value, "int64"), const(greatest, "int64"))


def _number(value: Expr, dtype: str) -> Expr:
    """An input of one element, a scalar or not, as a vector of one element."""
    return relay.reshape(relay.cast(value, dtype), (1,))


def _corners(node: Node, boxes: Expr) -> Expr:
    """Boxes as their lower and upper corners, whichever way they are given."""
    first, second = part(boxes, 0, 2, 2), part(boxes, 2, 4, 2)
    if node.attr("center_point_box", 0):
        half = second * node.constant(0.5, boxes)
        return relay.concatenate([first - half, first + half], axis=2)
    return relay.concatenate([relay.minimum(first, second), relay.maximum(first, second)], axis=2)


def _regions(node: Node, rois: Expr, items: Expr) -> Expr:
    """Regions with the number of their image before them."""
    numbers = relay.expand_dims(relay.cast(items, node.dtype(rois)), axis=1)
    return relay.concatenate([numbers, rois], axis=1)


@converter("RoiAlign", since=10)
def roi_align_by_pixels(node: Node, data: Expr, rois: Expr, items: Expr) -> Expr:
    """Up to opset 15 pixel 0 is at 0."""
    return _roi_align(node, data, rois, items, aligned=False)


@converter("RoiAlign", since=16)
def roi_align(node: Node, data: Expr, rois: Expr, items: Expr) -> Expr:
    """Regions read between pixels and pooled to one size."""
    mode = node.attr("coordinate_transformation_mode", "half_pixel")
    if mode not in ("half_pixel", "output_half_pixel"):
        raise node.fail(f"the coordinate transformation {mode!r} is not known")
    return _roi_align(node, data, rois, items, aligned=mode == "half_pixel")


def _roi_align(node: Node, data: Expr, rois: Expr, items: Expr, aligned: bool) -> Expr:
    mode = node.attr("mode", "avg")
    if mode not in ("avg", "max"):
        raise node.fail(f"the mode {mode!r} is not known")
    return relay.vision.roi_align(
        data,
        _regions(node, rois, items),
        (int(node.attr("output_height", 1)), int(node.attr("output_width", 1))),
        float(node.attr("spatial_scale", 1.0)),
        int(node.attr("sampling_ratio", 0)) or -1,
        mode="avg" if mode == "avg" else "max_of_corners",
        aligned=aligned,
    )


@converter("MaxRoiPool")
def max_roi_pool(node: Node, data: Expr, rois: Expr) -> Expr:
    """The largest element of each part of each region."""
    return relay.vision.roi_pool(
        data, rois, tuple(node.attr("pooled_shape")), float(node.attr("spatial_scale", 1.0))
    )
