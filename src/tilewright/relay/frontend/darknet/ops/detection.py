"""Heads of detectors. Boxes are what a program makes of their results, which come with anchors and sizes."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.darknet.node import LayerNode
from tilewright.relay.frontend.darknet.registry import converter


def _parts(node: LayerNode, data: Expr, boxes: int, places: list[int]) -> tuple[list[Expr], tuple[int, ...]]:
    """The numbers of each box, parted at places; also the shape that is parted."""
    batch, channels, height, width = node.static_shape(data)
    size = places[-1]
    if boxes < 1 or channels != boxes * size:
        raise node.fail(f"{channels} channels are not {boxes} boxes of {size} numbers")
    shape = (batch, boxes, size, height, width)
    apart = relay.reshape(data, shape)
    return list(relay.split(apart, places[:-1], axis=2)), shape


def _joined(node: LayerNode, parts: list[Expr], data: Expr) -> Expr:
    return relay.reshape(relay.concatenate(parts, 2), node.static_shape(data))


def _sizes(*numbers: int) -> Expr:
    return const(np.asarray(numbers, "int32"))


@converter("yolo")
def yolo(node: LayerNode, data: Expr) -> Expr:
    """Places, objectness and classes as probabilities. Adds the mask, the anchors and the sizes."""
    if node.integer("new_coords", 0):
        raise node.fail("new_coords is not supported")
    total = node.integer("num", 1)
    classes = node.integer("classes", 20)
    mask = node.integers("mask") or list(range(total))
    anchors = node.reals("anchors") or [0.5] * (2 * total)
    if total < 1 or len(anchors) != 2 * total or not all(0 <= one < total for one in mask):
        raise node.fail(f"{len(anchors)} anchors and the mask {mask} are not those of {total} boxes")
    (places, extents, rest), shape = _parts(node, data, len(mask), [2, 4, 5 + classes])
    places = relay.sigmoid(places)
    scale = node.real("scale_x_y", 1.0)
    if scale != 1.0:
        moved = relay.multiply(places, node.constant(scale, places))
        places = relay.subtract(moved, node.constant((scale - 1) / 2, places))
    node.extra = [
        _sizes(*mask),
        const(np.asarray(anchors, "float32")),
        _sizes(len(mask), shape[1] * shape[2], shape[3], shape[4], classes, total),
    ]
    return _joined(node, [places, extents, relay.sigmoid(rest)], data)


@converter("region")
def region(node: LayerNode, data: Expr) -> Expr:
    """Places and objectness as probabilities, classes by softmax. Adds the anchors and the sizes."""
    boxes, coords = node.integer("num", 1), node.integer("coords", 4)
    classes, background = node.integer("classes", 20), node.integer("background", 0)
    anchors = node.reals("anchors") or [0.5] * (2 * boxes)
    if coords != 4 or len(anchors) != 2 * boxes:
        raise node.fail(f"{len(anchors)} anchors and {coords} coordinates are not those of {boxes} boxes")
    (places, extents, object_, kinds), shape = _parts(node, data, boxes, [2, 4, 5, 5 + classes])
    if not background:
        object_ = relay.sigmoid(object_)
    kinds = relay.nn.softmax(kinds, axis=2) if node.integer("softmax", 0) else relay.sigmoid(kinds)
    node.extra = [
        const(np.asarray(anchors, "float32")),
        _sizes(boxes, shape[1] * shape[2], shape[3], shape[4], classes, coords, background),
    ]
    return _joined(node, [relay.sigmoid(places), extents, object_, kinds], data)
