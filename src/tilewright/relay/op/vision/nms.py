"""Score thresholds and non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, TupleWrapper, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import as_it_is
from tilewright.relay.op.shapes import dims, product, same, tensor, tensors
from tilewright.relay.op.vision.boxes import overlap
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te.tensor import Tensor


@attributes
class GetValidCountsAttrs(OpAttrs):
    """get_valid_counts: where class and score of a box are."""

    id_index: int = 0
    score_index: int = 1


@attributes
class NonMaximumSuppressionAttrs(OpAttrs):
    """non_max_suppression: which boxes compete, where their values are, and what is given."""

    force_suppress: bool = False
    top_k: int = -1
    coord_start: int = 2
    score_index: int = 1
    id_index: int = 0
    return_indices: bool = True
    invalid_to_bottom: bool = False


@attributes
class AllClassNonMaximumSuppressionAttrs(OpAttrs):
    """all_class_non_max_suppression: the form of the result."""

    output_format: str = "onnx"

    def check(self) -> None:
        """The form must be a known one."""
        if self.output_format not in ("onnx", "tensorflow"):
            raise OpAttributeInvalid(
                f'the output format is "onnx" or "tensorflow", not {self.output_format!r}'
            )


def _boxes(given: Type) -> TensorType | None:
    data = tensor(given, "the data")
    if data is not None and len(data.shape) != 3:
        raise RelationError(f"boxes are (batch, boxes, values), not of {len(data.shape)} dimensions")
    return data


def _number(value: Any) -> Any:
    """The value of an array of one element."""
    return np.asarray(value).reshape(-1)[0]


def _as_expression(value: Any, dtype: str) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else const(value, dtype)


def one_element(tensor: Tensor) -> Tensor:
    """A scalar as a vector of one element, as the kernels read numbers."""
    return tensor if tensor.shape else topi.expand_dims(tensor, axis=0)


# Valid counts


def valid_counts_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The counts, the boxes, and where they were."""
    data = _boxes(types[0])
    if data is None:
        return None
    batch, count, _ = dims(data)
    return TupleType((TensorType((batch,), "int32"), data, TensorType((batch, count), "int32")))


def _valid_counts_reference(attrs: Any, data: Any, threshold: Any) -> Any:
    batch, count, _ = data.shape
    counts = np.zeros(batch, "int32")
    kept, places = np.full_like(data, -1), np.full((batch, count), -1, "int32")
    for i in range(batch):
        takes = data[i, :, attrs.score_index] > _number(threshold)
        if attrs.id_index >= 0:
            takes &= data[i, :, attrs.id_index] >= 0
        found = np.flatnonzero(takes)
        counts[i] = len(found)
        kept[i, : len(found)] = data[i, found]
        places[i, : len(found)] = found
    return counts, kept, places


def _valid_counts_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    threshold = one_element(inputs[1])
    return list(topi.vision.get_valid_counts(inputs[0], threshold, attrs.id_index, attrs.score_index))


GET_VALID_COUNTS = define(
    "vision.get_valid_counts",
    arguments=("data", "score_threshold"),
    attrs=GetValidCountsAttrs,
    relation=valid_counts_relation,
    compute=_valid_counts_compute,
    reference=_valid_counts_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=5,
    description="The boxes whose score is above a threshold, moved to the front.",
)


def get_valid_counts(
    data: RelayExpr, score_threshold: Any, id_index: int = 0, score_index: int = 1
) -> TupleWrapper:
    """How many boxes of each item score above the threshold, those boxes in front, and where they were."""
    threshold = _as_expression(score_threshold, "float32")
    attrs = GetValidCountsAttrs(id_index, score_index)
    return TupleWrapper(Call(GET_VALID_COUNTS, (data, threshold), attrs), 3)


# Suppression


def suppression_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The indices kept and their number, or the boxes."""
    data, counts = _boxes(types[0]), tensor(types[1], "the counts")
    if data is None or counts is None:
        return None
    if len(counts.shape) != 1:
        raise RelationError(f"the counts are a vector, not of {len(counts.shape)} dimensions")
    batch, count, _ = dims(data)
    same(dims(counts)[0], batch, "the counts, and the batch")
    if not attrs.return_indices:
        return data
    return TupleType((TensorType((batch, count), "int32"), TensorType((batch, 1), "int32")))


def _suppressed(attrs: Any, boxes: Any, count: int, limit: int, threshold: float) -> tuple[Any, Any]:
    """The boxes of one item in order, -1 where suppressed, and which they were."""
    made, places = np.full_like(boxes, -1), np.full(len(boxes), -1, "int32")
    count = min(max(count, 0), len(boxes))
    if threshold <= 0:
        made[:count], places[:count] = boxes[:count], np.arange(count)
        return made, places
    order = np.argsort(-boxes[:count, attrs.score_index], kind="stable")
    if attrs.top_k > 0:
        order = order[: attrs.top_k]
    made[: len(order)], places[: len(order)] = boxes[order], order
    kept = 0
    start = attrs.coord_start
    for j in range(len(order)):
        if 0 <= limit <= kept:
            made[j], places[j] = -1, -1
            continue
        if made[j, attrs.score_index] <= 0:
            continue
        kept += 1
        for other in range(j + 1, len(order)):
            if made[other, attrs.score_index] <= 0:
                continue
            rivals = attrs.force_suppress or attrs.id_index < 0
            if not rivals and made[j, attrs.id_index] != made[other, attrs.id_index]:
                continue
            if overlap(made[j, start : start + 4], made[other, start : start + 4]) >= threshold:
                made[other, attrs.score_index] = -1
                if attrs.id_index >= 0:
                    made[other, attrs.id_index] = -1
                places[other] = -1
    return made, places


def _suppression_reference(
    attrs: Any, data: Any, counts: Any, indices: Any, max_output_size: Any, iou_threshold: Any
) -> Any:
    limit, threshold = int(_number(max_output_size)), float(np.float32(_number(iou_threshold)))
    made, places = np.full_like(data, -1), np.full(data.shape[:2], -1, "int32")
    totals = np.zeros((len(data), 1), "int32")
    for i in range(len(data)):
        boxes, found = _suppressed(attrs, data[i], int(counts[i]), limit, threshold)
        if attrs.invalid_to_bottom:
            boxes = boxes[np.argsort(boxes[:, 0] < 0, kind="stable")]
            boxes[boxes[:, 0] < 0] = -1
        made[i] = boxes
        found = found[found >= 0]
        totals[i] = len(found)
        if attrs.return_indices:
            places[i, : len(found)] = indices[i, found]
    return (places, totals) if attrs.return_indices else made


def _suppression_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, counts, indices, limit, threshold = inputs
    made = topi.vision.non_max_suppression(
        data,
        counts,
        indices,
        one_element(limit),
        one_element(threshold),
        attrs.force_suppress,
        attrs.top_k,
        attrs.coord_start,
        attrs.score_index,
        attrs.id_index,
        attrs.return_indices,
        attrs.invalid_to_bottom,
    )
    return list(made) if attrs.return_indices else [made]


NON_MAX_SUPPRESSION = define(
    "vision.non_max_suppression",
    arguments=("data", "valid_count", "indices", "max_output_size", "iou_threshold"),
    attrs=NonMaximumSuppressionAttrs,
    relation=suppression_relation,
    compute=_suppression_compute,
    reference=_suppression_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=5,
    description="The boxes of best score that overlap no better one.",
)


def non_max_suppression(
    data: RelayExpr,
    valid_count: RelayExpr,
    indices: RelayExpr,
    max_output_size: Any = -1,
    iou_threshold: Any = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Call | TupleWrapper:
    """Keep the boxes of the best scores that overlap no better box (of the same class, unless ``force_suppress``).

    Gives the indices kept, best first, -1 after them, and their number; or, without ``return_indices``, the boxes in
    order of their score, with -1 as class and score of those suppressed.
    """
    numbers = (_as_expression(max_output_size, "int32"), _as_expression(iou_threshold, "float32"))
    attrs = NonMaximumSuppressionAttrs(
        force_suppress, top_k, coord_start, score_index, id_index, return_indices, invalid_to_bottom
    )
    made = Call(NON_MAX_SUPPRESSION, (data, valid_count, indices, *numbers), attrs)
    return TupleWrapper(made, 2) if return_indices else made


# Class by class


def all_class_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Triples and their number, or pairs, scores and numbers."""
    found = tensors(types[:2], "the boxes", "the scores")
    if found is None:
        return None
    boxes, scores = found
    if len(boxes.shape) != 3 or len(scores.shape) != 3:
        raise RelationError("boxes are (batch, boxes, 4), scores (batch, classes, boxes)")
    batch, classes, count = dims(scores)
    same(dims(boxes)[0], batch, "the batches of boxes and scores")
    same(dims(boxes)[1], count, "the boxes, and their scores")
    if attrs.output_format == "onnx":
        most = product((batch, classes, count))
        return TupleType((TensorType((most, 3), "int64"), TensorType((1,), "int64")))
    most = product((classes, count))
    return TupleType(
        (
            TensorType((batch, most, 2), "int64"),
            TensorType((batch, most), scores.dtype),
            TensorType((batch,), "int64"),
        )
    )


def _kept(boxes: Any, scores: Any, limit: int, threshold: float, lowest: float) -> list[int]:
    """The boxes of one item and class that are kept, best first."""
    kept: list[int] = []
    for box in np.argsort(-scores, kind="stable"):
        if len(kept) >= limit or scores[box] <= lowest:
            break
        if all(overlap(boxes[box], boxes[other]) <= threshold for other in kept):
            kept.append(int(box))
    return kept


def _all_class_reference(
    attrs: Any, boxes: Any, scores: Any, max_output: Any, iou_threshold: Any, score_threshold: Any
) -> Any:
    numbers = int(_number(max_output)), float(_number(iou_threshold)), float(_number(score_threshold))
    batch, classes, count = scores.shape
    found = [
        [(n, c, box) for c in range(classes) for box in _kept(boxes[n], scores[n, c], *numbers)]
        for n in range(batch)
    ]
    if attrs.output_format == "onnx":
        triples = np.zeros((batch * classes * count, 3), "int64")
        flat = [triple for item in found for triple in item]
        triples[: len(flat)] = np.asarray(flat, "int64").reshape(-1, 3)
        return triples, np.array([len(flat)], "int64")
    pairs = np.zeros((batch, classes * count, 2), "int64")
    values = np.zeros((batch, classes * count), scores.dtype)
    for n, item in enumerate(found):
        for place, (_, c, box) in enumerate(item):
            pairs[n, place] = c, box
            values[n, place] = scores[n, c, box]
    return pairs, values, np.array([len(item) for item in found], "int64")


def _all_class_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    limit, threshold, lowest = (one_element(number) for number in inputs[2:])
    return list(
        topi.vision.all_class_non_max_suppression(
            inputs[0], inputs[1], limit, threshold, lowest, attrs.output_format
        )
    )


ALL_CLASS_NON_MAX_SUPPRESSION = define(
    "vision.all_class_non_max_suppression",
    arguments=("boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"),
    attrs=AllClassNonMaximumSuppressionAttrs,
    relation=all_class_relation,
    compute=_all_class_compute,
    reference=_all_class_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=5,
    description="The boxes of best score that overlap no better one, class by class.",
)


def all_class_non_max_suppression(
    boxes: RelayExpr,
    scores: RelayExpr,
    max_output_boxes_per_class: Any = -1,
    iou_threshold: Any = -1.0,
    score_threshold: Any = -1.0,
    output_format: str = "onnx",
) -> TupleWrapper:
    """For each item and class, the boxes of best score above the threshold that overlap no better one too much.

    "onnx" gives triples (item, class, box) and their number; "tensorflow" pairs (class, box), their scores and their
    numbers, for each item.
    """
    numbers = (
        _as_expression(max_output_boxes_per_class, "int32"),
        _as_expression(iou_threshold, "float32"),
        _as_expression(score_threshold, "float32"),
    )
    attrs = AllClassNonMaximumSuppressionAttrs(output_format)
    made = Call(ALL_CLASS_NON_MAX_SUPPRESSION, (boxes, scores, *numbers), attrs)
    return TupleWrapper(made, 2 if output_format == "onnx" else 3)
