"""Resizing and cropping of images, and the suppression of overlapping boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import TupleGetItem, const
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import all_known, vector
from tilewright.relay.frontend.tensorflow.registry import converter


def _sizes(node: GraphNode, size: Expr) -> Any:
    known = node.elements(size, "the size")
    if all(isinstance(one, int) for one in known):
        return [int(one) for one in known]  # type: ignore[arg-type]
    raise node.needs_value(size, "the size")


def _size(node: GraphNode, size: Expr) -> Any:
    """Rows and columns: numbers, or what the program computes."""
    known = node.elements(size, "the size")
    return _sizes(node, size) if all_known(known) else vector(known)


def _mode(node: GraphNode) -> str:
    if node.attr("align_corners", False):
        return "align_corners"
    return "half_pixel" if node.attr("half_pixel_centers", False) else "asymmetric"


@converter("ResizeBilinear", "RESIZE_BILINEAR")
def resize_bilinear(node: GraphNode, data: Expr, size: Expr) -> Expr:
    """Linear interpolation along rows and columns."""
    given = relay.cast(data, "float32") if node.dtype(data) != "float32" else data
    return relay.image.resize2d(given, _size(node, size), "NHWC", "linear", _mode(node))


@converter("ResizeNearestNeighbor", "RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(node: GraphNode, data: Expr, size: Expr) -> Expr:
    """The nearest pixel."""
    mode = _mode(node)
    rounding = {"align_corners": "round", "half_pixel": "round_prefer_ceil", "asymmetric": "floor"}[mode]
    return relay.image.resize2d(data, _size(node, size), "NHWC", "nearest_neighbor", mode, rounding)


@converter("ResizeBicubic")
def resize_bicubic(node: GraphNode, data: Expr, size: Expr) -> Expr:
    """Cubic interpolation: the kernel is another one where pixels are read at their centres."""
    centres = bool(node.attr("half_pixel_centers", False))
    return relay.image.resize2d(
        data,
        _size(node, size),
        "NHWC",
        "cubic",
        _mode(node),
        cubic_alpha=-0.5 if centres else -0.75,
        cubic_exclude=int(centres),
    )


@converter("DecodeJpeg", "DecodePng", "DecodeBmp", "DecodeImage")
def decode_image(node: GraphNode, image: Expr) -> Expr:
    """The image as it is: the program's input is the decoded one."""
    if node.rank(image) != 3:
        raise node.fail(
            "the shape that is given for the file has to be that of its image: rows, columns, channels"
        )
    dtype = str(node.attr("dtype", "uint8"))
    return image if dtype == "uint8" else relay.cast(image, dtype)


@converter("CropAndResize")
def crop_and_resize(node: GraphNode, images: Expr, boxes: Expr, places: Expr, size: Expr) -> Expr:
    """Boxes of images, each in one size."""
    method = str(node.attr("method", "bilinear"))
    return relay.image.crop_and_resize(
        images,
        boxes,
        places,
        _sizes(node, size),
        "NHWC",
        "nearest_neighbor" if method == "nearest" else method,
        float(node.attr("extrapolation_value", 0.0)),
    )


# Overlapping boxes


def _suppressed(
    node: GraphNode, boxes: Expr, scores: Expr, overlap: float, least: float | None
) -> tuple[Expr, Expr]:
    """The indices of the boxes that are left, best first, as a row of int32, and how many they are."""
    rows = relay.expand_dims(relay.concatenate([relay.expand_dims(scores, -1), boxes], axis=-1), 0)
    threshold = float(np.finfo("float32").min) if least is None else least
    counted = relay.vision.get_valid_counts(
        rows, score_threshold=const(threshold, "float32"), id_index=-1, score_index=0
    ).tuple_value
    count, data, indices = (TupleGetItem(counted, place) for place in range(3))
    left: Any = relay.vision.non_max_suppression(
        data,
        count,
        indices,
        max_output_size=-1,
        iou_threshold=overlap,
        force_suppress=True,
        top_k=-1,
        coord_start=1,
        score_index=0,
        id_index=-1,
        return_indices=True,
        invalid_to_bottom=False,
    )
    return relay.squeeze(left[0], axis=[0]), relay.reshape(left[1], (1,))


def _chosen(
    node: GraphNode, boxes: Expr, scores: Expr, limit: Expr, overlap: float, least: float | None
) -> Expr:
    indices, count = _suppressed(node, boxes, scores, overlap, least)
    most = relay.reshape(relay.cast(limit, "int32"), (1,))
    ends = relay.cast(relay.minimum(count, most), "int64")
    return relay.strided_slice(indices, const(np.zeros(1, "int64")), ends, slice_mode="size")


@converter("NonMaxSuppression")
def non_max_suppression(node: GraphNode, boxes: Expr, scores: Expr, limit: Expr) -> Expr:
    """The boxes that overlap no better one."""
    return _chosen(node, boxes, scores, limit, float(node.attr("iou_threshold", 0.5)), None)


@converter("NonMaxSuppressionV2", "NonMaxSuppressionV3")
def non_max_suppression_v3(
    node: GraphNode, boxes: Expr, scores: Expr, limit: Expr, overlap: Expr, least: Expr | None = None
) -> Expr:
    """The boxes that overlap no better one, and whose scores are large enough."""
    return _chosen(node, boxes, scores, limit, _number(node, overlap), _threshold(node, least))


def _number(node: GraphNode, given: Expr) -> float:
    return float(node.number(given, "the threshold"))


def _threshold(node: GraphNode, given: Expr | None) -> float | None:
    return None if given is None else _number(node, given)


@converter("NonMaxSuppressionV4", "NON_MAX_SUPPRESSION_V4")
def non_max_suppression_v4(
    node: GraphNode, boxes: Expr, scores: Expr, limit: Expr, overlap: Expr, least: Expr
) -> list[Expr]:
    """As version 3, and how many there are; the indices may be padded to their greatest number."""
    if not node.attr("pad_to_max_output_size", node.op_type.isupper()):
        made = _chosen(node, boxes, scores, limit, _number(node, overlap), _threshold(node, least))
        return [made, relay.squeeze(relay.shape_of(made, "int32"), axis=[0])]
    indices, count = _suppressed(node, boxes, scores, _number(node, overlap), _threshold(node, least))
    most = int(node.number(limit, "max_output_size"))
    total = node.static_shape(boxes)[0]
    if most > total:
        indices = relay.nn.pad(indices, [(0, most - total)], const(0, "int32"))
    valid = relay.minimum(count, const(np.asarray([most], "int32")))
    places = const(np.arange(most, dtype="int32"))
    head = relay.strided_slice(indices, [0], [most], [1])
    padded = relay.where(relay.less(places, valid), head, const(np.zeros(most, "int32")))
    return [padded, relay.squeeze(valid, axis=[0])]


@converter("NonMaxSuppressionV5", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression_v5(
    node: GraphNode, boxes: Expr, scores: Expr, limit: Expr, overlap: Expr, least: Expr, sigma: Expr
) -> list[Expr]:
    """As version 4, with the scores; scores that fade instead of vanishing (a sigma above zero) are not supported."""
    if _number(node, sigma) != 0:
        raise node.fail("soft suppression, with a sigma above zero, is not supported")
    made, count = non_max_suppression_v4(node, boxes, scores, limit, overlap, least)
    chosen = relay.take(scores, made, axis=0)
    if node.attr("pad_to_max_output_size", node.op_type.isupper()):
        places = const(np.arange(node.static_shape(made)[0], dtype="int32"))
        chosen = relay.where(relay.less(places, count), chosen, relay.zeros_like(chosen))
    return [made, chosen, count]


@converter("CombinedNonMaxSuppression")
def combined_non_max_suppression(
    node: GraphNode, boxes: Expr, scores: Expr, per_class: Expr, total: Expr, overlap: Expr, least: Expr
) -> list[Expr]:
    """The best boxes of all classes, in which each class is suppressed by itself: boxes, scores, classes, counts."""
    batch, count, shared, _ = node.static_shape(boxes)
    classes = node.static_shape(scores)[2]
    if shared != 1:
        raise node.fail("boxes of their own for each class are not supported")
    if node.attr("pad_per_class", False):
        raise node.fail("pad_per_class is not supported")
    most = int(node.number(total, "max_total_size"))
    places = relay.reshape(boxes, (batch, count, 4))
    found = relay.vision.all_class_non_max_suppression(
        places,
        relay.transpose(scores, (0, 2, 1)),
        int(node.number(per_class, "max_output_size_per_class")),
        _number(node, overlap),
        _number(node, least),
        output_format="tensorflow",
    )
    indices, kept, counts = found[0], found[1], found[2]
    order = const(np.arange(count * classes, dtype="int64")[None])
    inside = relay.less(order, relay.reshape(relay.cast(counts, "int64"), (batch, 1)))
    nothing = const(np.full((batch, count * classes), -np.inf, "float32"))
    width = min(most, count * classes)
    best: Any = relay.topk(relay.where(inside, kept, nothing), k=width, axis=1, dtype="int64")
    valid = relay.minimum(
        relay.reshape(relay.cast(counts, "int64"), (batch, 1)), const(np.asarray([[width]], "int64"))
    )
    shown = relay.less(const(np.arange(width, dtype="int64")[None]), valid)
    labels, rows = (
        relay.gather(relay.squeeze(part, axis=[2]), 1, best[1]) for part in relay.split(indices, 2, axis=2)
    )
    corners = relay.take(places, rows, axis=1, batch_dims=1)
    if node.attr("clip_boxes", True):
        corners = relay.clip(corners, 0, 1)
    masked = [
        relay.where(relay.expand_dims(shown, 2), corners, relay.zeros_like(corners)),
        relay.where(shown, best[0], relay.zeros_like(best[0])),
        relay.where(shown, relay.cast(labels, "float32"), relay.zeros_like(best[0])),
    ]
    extra = most - width
    if extra:
        widths = [(0, 0), (0, extra)]
        zero = const(np.float32(0))
        masked = [relay.nn.pad(one, widths + [(0, 0)] * (node.rank(one) - 2), zero) for one in masked]
    return [*masked, relay.cast(relay.squeeze(valid, axis=[1]), "int32")]
