"""Region proposals: boxes predicted at every place of a feature map, the best of which are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright import te, tir
from tilewright.ir.buffer import Buffer
from tilewright.te import Tensor
from tilewright.tir.ir_builder import IRBuilder
from tilewright.tir.stmt import Stmt
from tilewright.topi import tag
from tilewright.topi.kernel import scalar
from tilewright.topi.sort import argsort
from tilewright.topi.utils import get_const_int, get_const_tuple, simplify
from tilewright.topi.vision.boxes import overlap

Box = tuple[Any, Any, Any, Any]


def generate_anchor(ratio: float, scale: float, base_size: int) -> tuple[float, float, float, float]:
    """The box of a ratio of height to width and a scale, around a square of ``base_size`` pixels."""
    centre = 0.5 * (base_size - 1.0)
    width = math.floor(math.sqrt(math.floor(base_size * base_size / ratio)) + 0.5)
    height = math.floor(width * ratio + 0.5)
    half_width, half_height = 0.5 * (width * scale - 1.0), 0.5 * (height * scale - 1.0)
    return centre - half_width, centre - half_height, centre + half_width, centre + half_height


def reg_bbox(x1: Any, y1: Any, x2: Any, y2: Any, dx: Any, dy: Any, dw: Any, dh: Any) -> Box:
    """A box moved by a part of its size and scaled by exponents."""
    width, height = x2 - x1 + 1.0, y2 - y1 + 1.0
    centre_x, centre_y = x1 + 0.5 * (width - 1.0), y1 + 0.5 * (height - 1.0)
    moved_x, moved_y = dx * width + centre_x, dy * height + centre_y
    half_width, half_height = 0.5 * (te.exp(dw) * width - 1.0), 0.5 * (te.exp(dh) * height - 1.0)
    return moved_x - half_width, moved_y - half_height, moved_x + half_width, moved_y + half_height


def reg_iou(x1: Any, y1: Any, x2: Any, y2: Any, dx1: Any, dy1: Any, dx2: Any, dy2: Any) -> Box:
    """A box whose corners are moved."""
    return x1 + dx1, y1 + dy1, x2 + dx2, y2 + dy2


def predict_bbox_ir(
    cls_prob_buf: Buffer,
    bbox_pred_buf: Buffer,
    im_info_buf: Buffer,
    out_buf: Buffer,
    scales: Sequence[Any],
    ratios: Sequence[Any],
    feature_stride: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> Stmt:
    """Loops that write (x1, y1, x2, y2, score) of each anchor at each place, clipped to the image.

    The score is -1 for places beyond the image and for boxes that are too small.
    """
    batch, channels, height, width = get_const_tuple(cls_prob_buf.shape)
    anchors = channels // 2
    builder = IRBuilder()
    scores, moves, info, out = (
        builder.buffer_ptr(buffer) for buffer in (cls_prob_buf, bbox_pred_buf, im_info_buf, out_buf)
    )
    kind = cls_prob_buf.dtype
    move = reg_iou if iou_loss else reg_bbox
    with builder.for_range(0, batch * height, name="row", kind="parallel") as row:
        n, h = row // height, row % height
        image_height, image_width = info[n, 0], info[n, 1]
        smallest = info[n, 2] * tir.const(float(rpn_min_size), kind)
        with builder.for_range(0, width, name="w") as w:
            for k in range(anchors):
                ratio, scale = ratios[k // len(scales)], scales[k % len(scales)]
                anchor = generate_anchor(_number(ratio), _number(scale), feature_stride)
                shift = [(w * feature_stride).astype(kind), (h * feature_stride).astype(kind)] * 2
                corners = [tir.const(side, kind) + by for side, by in zip(anchor, shift, strict=True)]
                box = move(*corners, *[moves[n, k * 4 + part, h, w] for part in range(4)])
                limits = [image_width - 1.0, image_height - 1.0] * 2
                x1, y1, x2, y2 = (
                    builder.let(name, tir.Max(tir.Min(side, limit), tir.const(0, kind)))
                    for name, side, limit in zip(("x1", "y1", "x2", "y2"), box, limits, strict=True)
                )
                small = builder.let("small", tir.any(x2 - x1 + 1.0 < smallest, y2 - y1 + 1.0 < smallest))
                beyond = tir.any(
                    h.astype(kind) >= te.floor(image_height / float(feature_stride)),
                    w.astype(kind) >= te.floor(image_width / float(feature_stride)),
                )
                grow = builder.let(
                    "grow", tir.Select(small, smallest * tir.const(0.5, kind), tir.const(0, kind))
                )
                place = (h * width + w) * anchors + k
                for part, value in enumerate((x1 - grow, y1 - grow, x2 + grow, y2 + grow)):
                    out[n, place, part] = value
                out[n, place, 4] = tir.Select(
                    tir.any(small, beyond), tir.const(-1, kind), scores[n, anchors + k, h, w]
                )
    return builder.get()


def _number(value: Any) -> float:
    """A Python float from a number or a constant expression."""
    return float(getattr(value, "value", value))


def nms_ir(sorted_bbox_buf: Buffer, out_buf: Buffer, nms_threshold: float) -> Stmt:
    """Loops that set ``out`` to 1 for each box that overlaps a better one, which is not suppressed itself, too much."""
    batch, count = get_const_tuple(out_buf.shape)
    builder = IRBuilder()
    boxes, removed = builder.buffer_ptr(sorted_bbox_buf), builder.buffer_ptr(out_buf)
    with builder.for_range(0, batch, name="n", kind="parallel") as n:
        with builder.for_range(0, count, name="j") as j:
            removed[n, j] = tir.const(0, out_buf.dtype)
        with (
            builder.for_range(0, count - 1, name="j") as j,
            builder.if_scope(removed[n, j].equal(0)),
            builder.for_range(j + 1, count, name="other") as other,
        ):
            shared = overlap(
                [boxes[n, j, side] for side in range(4)],
                [boxes[n, other, side] for side in range(4)],
                pixel=1,
            )
            with builder.if_scope(shared > tir.const(nms_threshold, shared.dtype)):
                removed[n, other] = tir.const(1, out_buf.dtype)
    return builder.get()


def prepare_output_ir(sorted_bbox_buf: Buffer, remove_mask_buf: Buffer, out_buf: Buffer) -> Stmt:
    """Loops that write (batch index, x1, y1, x2, y2) of the boxes that are not removed.

    Where there are fewer than requested, they are repeated from the first.
    """
    batch, count, _ = get_const_tuple(sorted_bbox_buf.shape)
    wanted = get_const_int(out_buf.shape[0]) // batch
    builder = IRBuilder()
    boxes, removed, out = (
        builder.buffer_ptr(buffer) for buffer in (sorted_bbox_buf, remove_mask_buf, out_buf)
    )
    with builder.for_range(0, batch, name="n") as n:
        place = scalar(builder, "int32", "place", 0)
        # The best box is never removed, so that each round over the boxes writes one or more.
        with (
            builder.while_loop(place[0] < wanted),
            builder.for_range(0, count, name="j") as j,
            builder.if_scope(tir.all(removed[n, j].equal(0), place[0] < wanted)),
        ):
            row = n * wanted + place[0]
            out[row, 0] = tir.Cast(out_buf.dtype, n)
            for side in range(4):
                out[row, side + 1] = boxes[n, j, side]
            place[0] = place[0] + 1
    return builder.get()


def proposal(
    cls_prob: Tensor,
    bbox_pred: Tensor,
    im_info: Tensor,
    scales: Sequence[Any],
    ratios: Sequence[Any],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> Tensor:
    """The best boxes, (batch * rpn_post_nms_top_n, 5), each with the index of its item first.

    ``cls_prob`` is (batch, 2 * anchors, height, width), scores in its second half; ``bbox_pred`` (batch, 4 * anchors,
    height, width); ``im_info`` (batch, 3): height, width and scale of the image. Of all boxes the best
    ``rpn_pre_nms_top_n`` are considered.
    """
    batch, channels, height, width = get_const_tuple(cls_prob.shape)
    count = height * width * (channels // 2)
    looked_at = count if rpn_pre_nms_top_n <= 0 else min(rpn_pre_nms_top_n, count)
    boxes = te.extern(
        (batch, count, 5),
        [cls_prob, bbox_pred, im_info],
        lambda ins, outs: predict_bbox_ir(
            ins[0], ins[1], ins[2], outs[0], scales, ratios, feature_stride, rpn_min_size, iou_loss
        ),
        dtype=bbox_pred.dtype,
        name="predict_bbox",
        tag="predict_bbox",
    )
    scores = te.compute((batch, count), lambda n, j: boxes(n, j, 4), name="score", tag=tag.INJECTIVE)
    order = argsort(scores, axis=1, is_ascend=0, dtype="int32")
    ordered = te.compute(
        (batch, looked_at, 5),
        lambda n, j, part: boxes(n, order(n, j), part),
        name="sorted_bbox",
        tag=tag.INJECTIVE,
    )
    removed = te.extern(
        (batch, looked_at),
        [ordered],
        lambda ins, outs: nms_ir(ins[0], outs[0], threshold),
        dtype="int32",
        name="remove_mask",
        tag="nms",
    )
    made: Tensor = te.extern(
        (simplify(batch * rpn_post_nms_top_n), 5),
        [ordered, removed],
        lambda ins, outs: prepare_output_ir(ins[0], ins[1], outs[0]),
        dtype=bbox_pred.dtype,
        name="proposal",
        tag="proposal",
    )
    return made
