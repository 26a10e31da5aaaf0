"""Suppression of overlapping boxes, class by class, as ONNX and TensorFlow have it."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.kernel import loop_kernel, scalar
from tilewright.topi.sort import argsort
from tilewright.topi.utils import InvalidShapeError, simplify
from tilewright.topi.vision.boxes import Inputs, overlap


def _select(
    boxes: Tensor,
    scores: Tensor,
    order: Tensor,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
) -> list[Tensor]:
    """For each item and class, the boxes kept, best first, and how many there are."""
    batch, classes, count = scores.shape
    inputs = Inputs(boxes, scores, order)
    limit = inputs.number(max_output_boxes_per_class, "int32")
    threshold = inputs.number(iou_threshold, boxes.dtype)
    lowest = inputs.number(score_threshold, scores.dtype)

    def body(builder: Any, ins: Any, outs: Any) -> None:
        given, score, by_score = ins[:3]
        kept, counts = outs
        with builder.for_range(0, batch * classes, name="row", kind="parallel") as row:
            n, c = row // classes, row % classes
            total = scalar(builder, "int32", "total", 0)
            with builder.for_range(0, count, name="j") as j:
                kept[row, j] = tir.const(-1, "int32")
            with builder.for_range(0, count, name="j") as j:
                box = builder.let("box", by_score[row, j])
                with builder.if_scope(tir.all(total[0] < limit(ins), score[n, c, box] > lowest(ins))):
                    free = scalar(builder, "int32", "free", 1)
                    rival = scalar(builder, "int32", "rival", 0)
                    with builder.while_loop(tir.all(rival[0] < total[0], free[0] > 0)):
                        other = builder.let("other", kept[row, rival[0]])
                        shared = overlap(
                            [given[n, box, side] for side in range(4)],
                            [given[n, other, side] for side in range(4)],
                        )
                        with builder.if_scope(shared > threshold(ins)):
                            free[0] = tir.const(0, "int32")
                        rival[0] = rival[0] + 1
                    with builder.if_scope(free[0] > 0):
                        kept[row, total[0]] = box
                        total[0] = total[0] + 1
            counts[row] = total[0]

    rows = simplify(batch * classes)
    return loop_kernel(
        "all_class_nms", inputs.tensors, [((rows, count), "int32"), ((rows,), "int32")], body, tag="nms"
    )


def _as_onnx(kept: Tensor, counts: Tensor, scores: Tensor) -> list[Tensor]:
    """Triples (item, class, box) of all boxes kept, zeros after them, and how many there are."""
    batch, classes, count = scores.shape
    most = simplify(batch * classes * count)

    def body(builder: Any, ins: Any, outs: Any) -> None:
        triples, total = outs
        total[0] = tir.const(0, "int64")
        with (
            builder.for_range(0, batch * classes, name="row") as row,
            builder.for_range(0, ins[1][row], name="j") as j,
        ):
            place = builder.let("place", total[0])
            triples[place, 0] = tir.Cast("int64", row // classes)
            triples[place, 1] = tir.Cast("int64", row % classes)
            triples[place, 2] = ins[0][row, j].astype("int64")
            total[0] = place + tir.const(1, "int64")
        with builder.for_range(total[0], tir.Cast("int64", most), name="j", dtype="int64") as j:
            for part in range(3):
                triples[j, part] = tir.const(0, "int64")

    return loop_kernel("collect_boxes", [kept, counts], [((most, 3), "int64"), ((1,), "int64")], body)


def _as_tensorflow(kept: Tensor, counts: Tensor, scores: Tensor) -> list[Tensor]:
    """For each item the pairs (class, box) of the boxes kept, their scores, and how many there are."""
    batch, classes, count = scores.shape
    most = simplify(classes * count)

    def body(builder: Any, ins: Any, outs: Any) -> None:
        pairs, values, totals = outs
        with builder.for_range(0, batch, name="n", kind="parallel") as n:
            totals[n] = tir.const(0, "int64")
            with builder.for_range(0, classes, name="c") as c:
                row = n * classes + c
                with builder.for_range(0, ins[1][row], name="j") as j:
                    place = builder.let("place", totals[n])
                    pairs[n, place, 0] = tir.Cast("int64", c)
                    pairs[n, place, 1] = ins[0][row, j].astype("int64")
                    values[n, place] = ins[2][n, c, ins[0][row, j]]
                    totals[n] = place + tir.const(1, "int64")
            with builder.for_range(totals[n], tir.Cast("int64", most), name="j", dtype="int64") as j:
                for part in range(2):
                    pairs[n, j, part] = tir.const(0, "int64")
                values[n, j] = tir.const(0, scores.dtype)

    return loop_kernel(
        "collect_boxes",
        [kept, counts, scores],
        [((batch, most, 2), "int64"), ((batch, most), scores.dtype), ((batch,), "int64")],
        body,
    )


def all_class_non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    output_format: str = "onnx",
) -> list[Tensor]:
    """For each item and class, the boxes of best score above the threshold that overlap no better one too much.

    Boxes are (batch, boxes, 4), two opposite corners each; scores (batch, classes, boxes). The format "onnx" gives
    triples (item, class, box) and their number; "tensorflow" for each item pairs (class, box), scores and their number.
    """
    if output_format not in ("onnx", "tensorflow"):
        raise OpAttributeInvalid(f'the output format is "onnx" or "tensorflow", not {output_format!r}')
    if len(boxes.shape) != 3 or len(scores.shape) != 3:
        raise InvalidShapeError("all_class_non_max_suppression takes boxes and scores of three dimensions")
    batch, classes, count = scores.shape
    flat = te.compute(
        (simplify(batch * classes), count),
        lambda row, j: scores(row // classes, row % classes, j),
        name="flat_scores",
        tag=tag.INJECTIVE,
    )
    order = argsort(flat, axis=1, is_ascend=0, dtype="int32")
    kept, counts = _select(boxes, scores, order, max_output_boxes_per_class, iou_threshold, score_threshold)
    if output_format == "onnx":
        return _as_onnx(kept, counts, scores)
    return _as_tensorflow(kept, counts, scores)
