"""The custom operator that decodes the boxes of a detector and suppresses those that overlap."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import TupleGetItem, const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.tflite.node import LiteNode
from tilewright.relay.frontend.tflite.quantization import dequantized, real
from tilewright.relay.frontend.tflite.registry import lite_converter

_INTEGERS: Final = {0: "b", 1: "h", 2: "i", 3: "q"}
_UNSIGNED: Final = {0: "B", 1: "H", 2: "I", 3: "Q"}
_FLOATS: Final = {1: "e", 2: "f", 3: "d"}


def flexible_map(content: bytes) -> dict[str, Any]:
    """The names and numbers of a map as a flexible buffer holds them."""
    try:
        return _map(content)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, ValueError):
        return {}


def _unsigned(content: bytes, position: int, width: int) -> int:
    return int.from_bytes(content[position : position + width], "little")


def _map(content: bytes) -> dict[str, Any]:
    root_width = content[-1]
    width = 1 << (content[-2] & 3)
    end = len(content) - 2 - root_width
    values = end - _unsigned(content, end, root_width)
    count = _unsigned(content, values - width, width)
    keys_width = _unsigned(content, values - 2 * width, width)
    keys_at = values - 3 * width
    keys = keys_at - _unsigned(content, keys_at, width)
    found: dict[str, Any] = {}
    for place in range(count):
        key_at = keys + place * keys_width
        begin = key_at - _unsigned(content, key_at, keys_width)
        name = content[begin : content.index(0, begin)].decode()
        kind = content[values + count * width + place]
        found[name] = _scalar(content, values + place * width, width, kind >> 2)
    return found


def _scalar(content: bytes, position: int, width: int, kind: int) -> Any:
    size = width.bit_length() - 1
    form = {1: _INTEGERS, 2: _UNSIGNED, 3: _FLOATS, 26: _UNSIGNED}.get(kind)
    if form is None:
        return None
    value = struct.unpack_from("<" + form[size], content, position)[0]
    return bool(value) if kind == 26 else value


def _decoded(node: LiteNode, codes: Expr, anchors: Expr, options: dict[str, Any]) -> Expr:
    """Boxes as corners, from their distances to anchors."""
    center_y, center_x, height, width = (
        relay.squeeze(part, axis=[-1]) for part in relay.split(codes, 4, axis=-1)
    )
    anchor = [relay.squeeze(part, axis=[-1]) for part in relay.split(anchors, 4, axis=-1)]
    scales = [float(options[f"{name}_scale"]) for name in "yxhw"]

    def scaled(data: Expr, scale: float) -> Expr:
        return relay.divide(data, const(scale, "float32"))

    middle_y = relay.add(relay.multiply(scaled(center_y, scales[0]), anchor[2]), anchor[0])
    middle_x = relay.add(relay.multiply(scaled(center_x, scales[1]), anchor[3]), anchor[1])
    half = const(0.5, "float32")
    half_height = relay.multiply(half, relay.multiply(relay.exp(scaled(height, scales[2])), anchor[2]))
    half_width = relay.multiply(half, relay.multiply(relay.exp(scaled(width, scales[3])), anchor[3]))
    corners = [
        relay.subtract(middle_y, half_height),
        relay.subtract(middle_x, half_width),
        relay.add(middle_y, half_height),
        relay.add(middle_x, half_width),
    ]
    return relay.stack(corners, axis=-1)


@lite_converter("CUSTOM:TFLite_Detection_PostProcess")
def detection_postprocess(node: LiteNode, boxes: Expr, scores: Expr, anchors: Expr) -> list[Expr]:
    """The best boxes, their classes, their scores, and how many there are."""
    options = flexible_map(node.operator.custom_options)
    needed = ("max_detections", "num_classes", "nms_iou_threshold", "nms_score_threshold", "y_scale", "x_scale",
              "h_scale", "w_scale")  # fmt: skip
    missing = [name for name in needed if name not in options]
    if missing:
        raise node.fail(f"the options {', '.join(missing)} are missing")
    if options.get("use_regular_nms"):
        raise node.fail("suppression class by class (use_regular_nms) is not supported")
    most, classes = int(options["max_detections"]), int(options["num_classes"])
    numbers = [real(node, data, node.input(place)) for place, data in enumerate((boxes, scores))]
    anchor = dequantized(node, anchors, node.input(2)) if node.dtype(anchors) != "float32" else anchors
    corners = _decoded(node, numbers[0], anchor, options)
    total = node.static_shape(scores)[2]
    likely = numbers[1]
    if total > classes:
        # The first class is the background.
        likely = relay.strided_slice(likely, [total - classes], [total], [1], axes=[2])
    best = relay.max(likely, axis=[2])
    which = relay.cast(relay.argmax(likely, axis=[2]), "float32")
    rows = relay.concatenate([relay.expand_dims(one, -1) for one in (which, best)] + [corners], axis=-1)
    counted = relay.vision.get_valid_counts(
        rows,
        score_threshold=const(float(options["nms_score_threshold"]), "float32"),
        id_index=0,
        score_index=1,
    ).tuple_value
    count, data, indices = (TupleGetItem(counted, place) for place in range(3))
    left: Any = relay.vision.non_max_suppression(
        data,
        count,
        indices,
        max_output_size=most,
        iou_threshold=float(options["nms_iou_threshold"]),
        force_suppress=True,
        top_k=-1,
        coord_start=2,
        score_index=1,
        id_index=0,
        return_indices=False,
        invalid_to_bottom=True,
    )
    head = _first(node, left, most)
    valid = relay.greater(relay.strided_slice(head, [1], [2], [1], axes=[2]), const(0.0, "float32"))
    kept = relay.where(valid, head, relay.zeros_like(head))
    labels, likelihood = (
        relay.squeeze(relay.strided_slice(kept, [place], [place + 1], [1], axes=[2]), axis=[2])
        for place in (0, 1)
    )
    found = relay.strided_slice(kept, [2], [6], [1], axes=[2])
    number = relay.cast(relay.sum(relay.cast(valid, "int32"), axis=[1, 2]), "float32")
    return [found, labels, likelihood, number]


def _first(node: LiteNode, rows: Expr, count: int) -> Expr:
    """The first rows; rows of zeros where there are fewer."""
    have = node.static_shape(rows)[1]
    if have < count:
        return relay.nn.pad(rows, [(0, 0), (0, count - have), (0, 0)], const(np.float32(-1)))
    return relay.strided_slice(rows, [0], [count], [1], axes=[1])
