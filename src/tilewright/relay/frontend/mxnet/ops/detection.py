"""Detection: anchors, boxes without those that overlap better ones, and pooling of regions."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


@converter("_contrib_MultiBoxPrior", "MultiBoxPrior")
def multibox_prior(node: SymbolNode, data: Expr) -> Expr:
    """Anchors around each pixel."""
    return relay.vision.multibox_prior(
        data,
        sizes=node.reals("sizes", (1.0,)),
        ratios=node.reals("ratios", (1.0,)),
        steps=node.reals("steps", (-1.0, -1.0)),
        offsets=node.reals("offsets", (0.5, 0.5)),
        clip=node.flag("clip"),
    )


@converter("_contrib_MultiBoxDetection", "MultiBoxDetection")
def multibox_detection(node: SymbolNode, classes: Expr, moves: Expr, anchors: Expr) -> Expr:
    """Boxes from anchors and how far they are moved, without those that overlap better ones of their class."""
    if node.integer("background_id", 0) != 0:
        raise node.fail("only background_id 0 is supported")
    boxes, count = relay.vision.multibox_transform_loc(
        classes,
        moves,
        anchors,
        clip=node.flag("clip", True),
        threshold=node.number("threshold", 0.01),
        variances=node.reals("variances", (0.1, 0.1, 0.2, 0.2)),
    )
    return relay.vision.non_max_suppression(
        boxes,
        count,
        count,
        iou_threshold=node.number("nms_threshold", 0.5),
        force_suppress=node.flag("force_suppress"),
        top_k=node.integer("nms_topk", -1),
        return_indices=False,
        invalid_to_bottom=False,
    )  # type: ignore[return-value]


@converter("_contrib_box_nms", "_contrib_box_non_maximum_suppression")
def box_nms(node: SymbolNode, data: Expr) -> Expr:
    """Boxes by their scores without those that overlap better ones, which are -1 and come last."""
    for name in ("in_format", "out_format"):
        if node.text(name, "corner") != "corner":
            raise node.fail(f"{name} {node.text(name, '')!r} is not supported, only 'corner'")
    if node.integer("background_id", -1) != -1:
        raise node.fail("background_id is not supported")
    shape = node.static_shape(data)
    if len(shape) < 2:
        raise node.fail(f"boxes of the shape {shape} are not rows of numbers")
    stacked = data if len(shape) == 3 else relay.reshape(data, (-1, *shape[-2:]))
    score, kind = node.integer("score_index", 1), node.integer("id_index", -1)
    count, valid, indices = relay.vision.get_valid_counts(
        stacked, node.number("valid_thresh", 0.0), id_index=kind, score_index=score
    )
    made: Expr = relay.vision.non_max_suppression(
        valid,
        count,
        indices,
        iou_threshold=node.number("overlap_thresh", 0.5),
        force_suppress=node.flag("force_suppress"),
        top_k=node.integer("topk", -1),
        coord_start=node.integer("coord_start", 2),
        score_index=score,
        id_index=kind,
        return_indices=False,
        invalid_to_bottom=True,
    )  # type: ignore[assignment]
    return made if len(shape) == 3 else relay.reshape(made, shape)


@converter("_contrib_ROIAlign")
def roi_align(node: SymbolNode, data: Expr, regions: Expr) -> Expr:
    """Means of interpolated points of regions."""
    if node.flag("position_sensitive"):
        raise node.fail("position_sensitive is not supported")
    return relay.vision.roi_align(
        data,
        regions,
        node.window("pooled_size", 2, 1),
        node.number("spatial_scale"),
        sample_ratio=node.integer("sample_ratio", -1),
        aligned=node.flag("aligned"),
    )


@converter("ROIPooling")
def roi_pooling(node: SymbolNode, data: Expr, regions: Expr) -> Expr:
    """The largest elements of parts of regions."""
    return relay.vision.roi_pool(
        data, regions, node.window("pooled_size", 2, 1), node.number("spatial_scale")
    )
