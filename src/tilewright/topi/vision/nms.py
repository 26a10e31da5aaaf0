"""Boxes that pass a threshold, and the suppression of boxes that overlap a better one."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.kernel import loop_kernel, scalar
from tilewright.topi.sort import argsort
from tilewright.topi.utils import InvalidShapeError
from tilewright.topi.vision.all_class_nms import all_class_non_max_suppression
from tilewright.topi.vision.boxes import Inputs, overlap

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "non_max_suppression",
]


def _require_boxes(data: Tensor, operator: str) -> None:
    if len(data.shape) != 3:
        raise InvalidShapeError(
            f"{operator} takes boxes of shape (batch, boxes, values of a box), not of {len(data.shape)} dimensions"
        )


def get_valid_counts(
    data: Tensor, score_threshold: Any = 0, id_index: int = 0, score_index: int = 1
) -> list[Tensor]:
    """The boxes whose score is above the threshold and whose class is not negative, moved to the front.

    Returns how many there are in each item, the boxes, and where they were; the rest of both is -1. A negative
    ``id_index`` means that boxes have no class.
    """
    _require_boxes(data, "get_valid_counts")
    batch, count, length = data.shape
    inputs = Inputs(data)
    threshold = inputs.number(score_threshold, data.dtype)

    def body(builder: Any, ins: Any, outs: Any) -> None:
        boxes = ins[0]
        valid, kept, places = outs
        minus_one = tir.const(-1, data.dtype)
        with builder.for_range(0, batch, name="i", kind="parallel") as i:
            valid[i] = tir.const(0, "int32")
            with builder.for_range(0, count, name="j") as j:
                takes = boxes[i, j, score_index] > threshold(ins)
                if id_index >= 0:
                    takes = tir.all(takes, boxes[i, j, id_index] >= tir.const(0, data.dtype))
                with builder.if_scope(takes):
                    place = builder.let("place", valid[i])
                    with builder.for_range(0, length, name="k") as k:
                        kept[i, place, k] = boxes[i, j, k]
                    places[i, place] = tir.Cast("int32", j)
                    valid[i] = place + 1
            with builder.for_range(valid[i], count, name="j") as j:
                with builder.for_range(0, length, name="k") as k:
                    kept[i, j, k] = minus_one
                places[i, j] = tir.const(-1, "int32")

    return loop_kernel(
        "get_valid_counts",
        inputs.tensors,
        [((batch,), "int32"), (data.shape, data.dtype), ((batch, count), "int32")],
        body,
    )


def suppress_boxes(
    data: Tensor,
    order: Tensor,
    valid_count: Tensor,
    indices: Tensor,
    max_output_size: Any,
    iou_threshold: Any,
    force_suppress: bool,
    top_k: int,
    coord_start: int,
    score_index: int,
    id_index: int,
    return_indices: bool,
) -> list[Tensor]:
    """The boxes in order of their score, -1 in the place of those suppressed; and where they came from."""
    batch, count, length = data.shape
    inputs = Inputs(data, order, valid_count, *([indices] if return_indices else []))
    limit = inputs.number(max_output_size, "int32")
    threshold = inputs.number(iou_threshold, data.dtype)
    minus_one, zero = tir.const(-1, data.dtype), tir.const(0, data.dtype)
    nowhere = tir.const(-1, "int32")

    def body(builder: Any, ins: Any, outs: Any) -> None:
        boxes, by_score, valid = ins[:3]
        result, places = outs

        def clear(i: Any, j: Any) -> None:
            with builder.for_range(0, length, name="k") as k:
                result[i, j, k] = minus_one
            places[i, j] = nowhere

        def box(i: Any, j: Any) -> list[Any]:
            return [result[i, j, coord_start + side] for side in range(4)]

        with builder.for_range(0, batch, name="i", kind="parallel") as i:
            given = tir.Max(tir.Min(valid[i].astype("int32"), tir.Cast("int32", count)), 0)
            applies = threshold(ins) > zero
            taken = given if top_k <= 0 else tir.if_then_else(applies, tir.Min(given, top_k), given)
            total = builder.let("total", taken)
            with builder.for_range(0, total, name="j") as j:
                source = builder.let("source", tir.if_then_else(applies, by_score[i, j], j))
                with builder.for_range(0, length, name="k") as k:
                    result[i, j, k] = boxes[i, source, k]
                places[i, j] = source
            with builder.for_range(total, count, name="j") as j:
                clear(i, j)
            with builder.if_scope(applies):
                kept = scalar(builder, "int32", "kept", 0)
                with builder.for_range(0, total, name="j") as j:
                    with builder.if_scope(tir.all(limit(ins) >= 0, kept[0] >= limit(ins))):
                        clear(i, j)
                    with builder.else_scope(), builder.if_scope(result[i, j, score_index] > zero):
                        kept[0] = kept[0] + 1
                        with builder.for_range(j + 1, total, name="other") as other:
                            rival = result[i, other, score_index] > zero
                            if not force_suppress and id_index >= 0:
                                same = result[i, j, id_index].equal(result[i, other, id_index])
                                rival = tir.all(rival, same)
                            with builder.if_scope(rival):
                                shared = overlap(box(i, j), box(i, other))
                                with builder.if_scope(shared >= threshold(ins)):
                                    result[i, other, score_index] = minus_one
                                    if id_index >= 0:
                                        result[i, other, id_index] = minus_one
                                    places[i, other] = nowhere
            if return_indices:
                with builder.for_range(0, total, name="j") as j, builder.if_scope(places[i, j] >= 0):
                    places[i, j] = ins[3][i, places[i, j]].astype("int32")

    return loop_kernel(
        "non_max_suppression",
        inputs.tensors,
        [(data.shape, data.dtype), ((batch, count), "int32")],
        body,
        tag="nms",
    )


def compact_boxes(data: Tensor) -> Tensor:
    """The boxes whose first value is not negative, moved to the front; -1 after them."""
    batch, count, length = data.shape

    def body(builder: Any, ins: Any, outs: Any) -> None:
        with builder.for_range(0, batch, name="i", kind="parallel") as i:
            place = scalar(builder, "int32", "place", 0)
            with (
                builder.for_range(0, count, name="j") as j,
                builder.if_scope(ins[0][i, j, 0] >= tir.const(0, data.dtype)),
            ):
                with builder.for_range(0, length, name="k") as k:
                    outs[0][i, place[0], k] = ins[0][i, j, k]
                place[0] = place[0] + 1
            with (
                builder.for_range(place[0], count, name="j") as j,
                builder.for_range(0, length, name="k") as k,
            ):
                outs[0][i, j, k] = tir.const(-1, data.dtype)

    return loop_kernel("compact_boxes", [data], [(data.shape, data.dtype)], body)[0]


def compact_indices(places: Tensor) -> list[Tensor]:
    """The indices that are not negative, moved to the front, -1 after them; and how many there are, (batch, 1)."""
    batch, count = places.shape

    def body(builder: Any, ins: Any, outs: Any) -> None:
        compacted, counts = outs
        with builder.for_range(0, batch, name="i", kind="parallel") as i:
            counts[i, 0] = tir.const(0, "int32")
            with builder.for_range(0, count, name="j") as j, builder.if_scope(ins[0][i, j] >= 0):
                compacted[i, counts[i, 0]] = ins[0][i, j]
                counts[i, 0] = counts[i, 0] + 1
            with builder.for_range(counts[i, 0], count, name="j") as j:
                compacted[i, j] = tir.const(-1, "int32")

    return loop_kernel("compact_indices", [places], [(places.shape, "int32"), ((batch, 1), "int32")], body)


def non_max_suppression(
    data: Tensor,
    valid_count: Tensor,
    indices: Tensor,
    max_output_size: Any = -1,
    iou_threshold: Any = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Any:
    """Keep the boxes of the best scores that overlap no better box (of the same class, unless ``force_suppress``).

    Boxes are (batch, boxes, values); ``valid_count`` of each item count. Of those the best ``top_k`` are considered and
    at most ``max_output_size`` are kept. With ``return_indices``, returns the indices (through ``indices``) of the
    boxes kept, best first, then -1; and how many there are. Otherwise returns the boxes in order of their score, with
    -1 as class and score of those suppressed, which ``invalid_to_bottom`` replaces by -1 after all others.
    """
    _require_boxes(data, "non_max_suppression")
    scores = te.compute(
        data.shape[:2], lambda i, j: data(i, j, score_index), name="nms_score", tag=tag.INJECTIVE
    )
    order = argsort(scores, valid_count, axis=1, is_ascend=0, dtype="int32")
    boxes, places = suppress_boxes(
        data,
        order,
        valid_count,
        indices,
        max_output_size,
        iou_threshold,
        force_suppress,
        int(top_k),
        coord_start,
        score_index,
        id_index,
        return_indices,
    )
    if return_indices:
        return compact_indices(places)
    return compact_boxes(boxes) if invalid_to_bottom else boxes
