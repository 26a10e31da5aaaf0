"""Operators of single-shot detectors: prior boxes, decoding of predictions, and detection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi.kernel import loop_kernel, scalar
from tilewright.topi.utils import simplify
from tilewright.topi.vision.nms import non_max_suppression


def _numbers(values: Any) -> list[float]:
    """Python floats from numbers or constant expressions."""
    given: Sequence[Any] = values if isinstance(values, (tuple, list)) else [values]
    return [float(getattr(value, "value", value)) for value in given]


def multibox_prior(
    data: Tensor,
    sizes: Any = (1,),
    ratios: Any = (1,),
    steps: Any = (-1, -1),
    offsets: Any = (0.5, 0.5),
    clip: bool = False,
) -> Tensor:
    """Boxes around each pixel of an NCHW feature map: (1, height * width * boxes of a pixel, 4), in parts of the image.

    There is one box of each size, and one of the first size for each ratio but the first. Steps that are not positive
    are one pixel.
    """
    all_sizes, all_ratios = _numbers(sizes), _numbers(ratios)
    step_y, step_x = _numbers(steps)
    offset_y, offset_x = _numbers(offsets)
    height, width = data.shape[2], data.shape[3]
    count = len(all_sizes) + len(all_ratios) - 1
    kind = data.dtype
    # Half heights of the boxes, and half widths before the aspect of the image.
    halves = [(size / 2, size / 2) for size in all_sizes]
    halves += [
        (all_sizes[0] / math.sqrt(ratio) / 2, all_sizes[0] * math.sqrt(ratio) / 2) for ratio in all_ratios[1:]
    ]

    def body(builder: Any, ins: Any, outs: Any) -> None:
        rows, columns = (tir.Cast(kind, extent) for extent in (height, width))
        with builder.for_range(0, height, name="i", kind="parallel") as i:
            for_y = tir.const(step_y, kind) if step_y > 0 else tir.const(1, kind) / rows
            for_x = tir.const(step_x, kind) if step_x > 0 else tir.const(1, kind) / columns
            y = builder.let("y", (i.astype(kind) + tir.const(offset_y, kind)) * for_y)
            with builder.for_range(0, width, name="j") as j:
                x = builder.let("x", (j.astype(kind) + tir.const(offset_x, kind)) * for_x)
                for number, (half_height, half_width) in enumerate(halves):
                    across = tir.const(half_width, kind) * rows / columns
                    along = tir.const(half_height, kind)
                    place = (i * width + j) * count + number
                    for side, value in enumerate((x - across, y - along, x + across, y + along)):
                        if clip:
                            value = tir.Min(tir.Max(value, tir.const(0, kind)), tir.const(1, kind))
                        outs[0][0, place, side] = value

    shape = (1, simplify(height * width * count), 4)
    return loop_kernel("multibox_prior", [data], [(shape, kind)], body)[0]


def multibox_transform_loc(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Any = (0.1, 0.1, 0.2, 0.2),
) -> list[Tensor]:
    """Boxes decoded from anchors: (batch, anchors, 6) of (class, score, left, top, right, bottom), and how many count.

    ``cls_prob`` is (batch, classes, anchors) with the background first, ``loc_pred`` (batch, anchors * 4), ``anchor``
    (1, anchors, 4). Boxes of the background and those with a score below the threshold are left out.
    """
    batch, classes, count = cls_prob.shape
    kind = cls_prob.dtype
    spread = _numbers(variances)

    def body(builder: Any, ins: Any, outs: Any) -> None:
        scores, moves, anchors = ins
        boxes, valid = outs
        half = tir.const(0.5, kind)
        with builder.for_range(0, batch, name="i", kind="parallel") as i:
            valid[i] = tir.const(0, "int32")
            with builder.for_range(0, count, name="j") as j:
                best = scalar(builder, kind, "best", tir.const(-1, kind))
                which = scalar(builder, "int32", "which", 0)
                with (
                    builder.for_range(1, classes, name="c") as c,
                    builder.if_scope(scores[i, c, j] > best[0]),
                ):
                    best[0] = scores[i, c, j]
                    which[0] = tir.Cast("int32", c)
                with builder.if_scope(tir.all(which[0] > 0, best[0] >= tir.const(threshold, kind))):
                    place = builder.let("place", valid[i])
                    left, top, right, bottom = (anchors[0, j, side] for side in range(4))
                    width, height = right - left, bottom - top
                    dx, dy, dw, dh = (
                        moves[i, j * 4 + side] * tir.const(spread[side], kind) for side in range(4)
                    )
                    x, y = dx * width + (left + right) * half, dy * height + (top + bottom) * half
                    across, along = te.exp(dw) * width * half, te.exp(dh) * height * half
                    boxes[i, place, 0] = (which[0] - 1).astype(kind)
                    boxes[i, place, 1] = best[0]
                    for side, value in enumerate((x - across, y - along, x + across, y + along)):
                        if clip:
                            value = tir.Min(tir.Max(value, tir.const(0, kind)), tir.const(1, kind))
                        boxes[i, place, side + 2] = value
                    valid[i] = place + 1
            with builder.for_range(valid[i], count, name="j") as j:
                for part in range(6):
                    boxes[i, j, part] = tir.const(-1, kind)

    return loop_kernel(
        "multibox_transform_loc",
        [cls_prob, loc_pred, anchor],
        [((batch, count, 6), kind), ((batch,), "int32")],
        body,
    )


def multibox_detection(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Any = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> Tensor:
    """The boxes of ``multibox_transform_loc`` in order of their score, those that overlap a better one suppressed.

    Boxes that are suppressed have the class -1.
    """
    boxes, valid = multibox_transform_loc(cls_prob, loc_pred, anchor, clip, threshold, variances)
    made: Tensor = non_max_suppression(
        boxes,
        valid,
        valid,
        max_output_size=-1,
        iou_threshold=nms_threshold,
        force_suppress=force_suppress,
        top_k=nms_topk,
        return_indices=False,
    )
    return made
