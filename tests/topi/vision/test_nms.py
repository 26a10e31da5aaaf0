"""Suppression of overlapping boxes, against a few lines of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(107)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union of boxes given by opposite corners."""
    low_a, high_a = np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])
    low_b, high_b = np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])
    shared = np.prod(np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b), 0))
    together = np.prod(high_a - low_a) + np.prod(high_b - low_b) - shared
    return float(shared / together) if together > 0 else 0.0


def kept(
    boxes: np.ndarray, threshold: float, force: bool, top_k: int, limit: int, classes: bool
) -> list[int]:
    """The rows (class, score, box) that survive, best first."""
    order = sorted(range(len(boxes)), key=lambda row: -boxes[row, 1])
    order = order[:top_k] if top_k > 0 else order
    found: list[int] = []
    for row in order:
        if limit >= 0 and len(found) == limit:
            break
        rivals = [
            other
            for other in found
            if (force or not classes or boxes[other, 0] == boxes[row, 0])
            and overlap(boxes[other, 2:], boxes[row, 2:]) >= threshold
        ]
        if not rivals:
            found.append(row)
    return found


def draw(batch: int, count: int) -> np.ndarray:
    """Rows (class, score, box) with many overlaps."""
    corners = RANDOM.random((batch, count, 2)) * 3
    sizes = RANDOM.random((batch, count, 2)) * 2 + 0.3
    classes = RANDOM.integers(0, 2, (batch, count, 1))
    scores = RANDOM.permutation(batch * count).reshape(batch, count, 1) / (batch * count) + 0.01
    return np.concatenate([classes, scores, corners, corners + sizes], axis=2).astype("float32")


@pytest.mark.parametrize("threshold", [0.4, -1.0])
@pytest.mark.parametrize("id_index", [0, -1])
def test_valid_counts(threshold: float, id_index: int) -> None:
    """Boxes above the threshold, with a class, move to the front."""
    data = draw(2, 7)
    data[0, 3, 0] = -1
    made = apply(
        topi.vision.get_valid_counts, data, score_threshold=threshold, id_index=id_index, score_index=1
    )
    for item in range(2):
        rows = [
            row
            for row in range(7)
            if data[item, row, 1] > threshold and (id_index < 0 or data[item, row, 0] >= 0)
        ]
        assert made[0][item] == len(rows)
        np.testing.assert_array_equal(made[1][item, : len(rows)], data[item, rows])
        assert (made[1][item, len(rows) :] == -1).all()
        assert made[2][item].tolist() == rows + [-1] * (7 - len(rows))


CASES = [
    (0.5, False, -1, -1, 0),
    (0.3, True, -1, -1, 0),
    (0.3, False, 6, -1, -1),
    (0.3, False, -1, 2, 0),
    (0.3, False, -1, 0, 0),
]


@pytest.mark.parametrize(("threshold", "force", "top_k", "limit", "id_index"), CASES)
def test_suppression(threshold: float, force: bool, top_k: int, limit: int, id_index: int) -> None:
    """The best boxes that overlap no better one; by index, as rows in place, and as rows at the front."""
    data = draw(2, 9)
    valid = np.array([9, 6], "int32")
    places = np.tile(np.arange(100, 109, dtype="int32"), (2, 1))
    feeds = inputs(data, valid, places)
    options: dict[str, Any] = {
        "max_output_size": limit,
        "iou_threshold": threshold,
        "force_suppress": force,
        "top_k": top_k,
        "id_index": id_index,
    }
    by_index = topi.vision.non_max_suppression(*feeds, **options)
    as_rows = topi.vision.non_max_suppression(
        *feeds, return_indices=False, invalid_to_bottom=id_index >= 0, **options
    )
    indices, counts, rows = evaluate([*by_index, as_rows], feeds)
    for item in range(2):
        found = kept(data[item, : valid[item]], threshold, force, top_k, limit, id_index >= 0)
        assert counts[item, 0] == len(found)
        assert indices[item].tolist() == [100 + row for row in found] + [-1] * (9 - len(found))
        alive = rows[item][rows[item, :, 1] > 0]
        np.testing.assert_array_equal(alive, data[item, found])
        if id_index >= 0:
            np.testing.assert_array_equal(rows[item, : len(alive)], alive)
            assert (rows[item, len(alive) :] == -1).all()


def test_a_threshold_of_zero_keeps_all() -> None:
    """Nothing is suppressed, and boxes stay in their order."""
    data = draw(1, 4)
    valid, places = np.array([3], "int32"), np.arange(4, dtype="int32").reshape(1, 4)
    indices, counts = apply(topi.vision.non_max_suppression, data, valid, places, iou_threshold=0.0)
    assert indices.tolist() == [[0, 1, 2, -1]] and counts.item() == 3


def test_attributes_may_be_tensors() -> None:
    """The threshold and the number of boxes may be known only when the program runs; so may the sizes."""
    data = draw(2, 8)
    valid = np.array([8, 8], "int32")
    places = np.tile(np.arange(8, dtype="int32"), (2, 1))
    feeds = inputs(data, valid, places, np.int32(3), np.float32(0.3), symbolic=True)
    boxes, count, indices, limit, threshold = feeds
    made = topi.vision.non_max_suppression(boxes, count, indices, limit, threshold)
    result, counts = evaluate(made, feeds, [(2, 8), (2, 1)])
    for item in range(2):
        found = kept(data[item], 0.3, False, -1, 3, True)
        assert result[item, : counts[item, 0]].tolist() == found


@pytest.mark.parametrize(("limit", "threshold", "lowest"), [(3, 0.5, 0.0), (10, 0.2, 0.5), (0, 0.5, 0.0)])
def test_all_classes(limit: int, threshold: float, lowest: float) -> None:
    """Each class by itself, in the formats of ONNX and TensorFlow."""
    boxes = draw(2, 6)[:, :, 2:].copy()
    boxes[:, ::2] = boxes[:, ::2, [2, 3, 0, 1]]
    scores = (RANDOM.permutation(36).reshape(2, 3, 6) / 36).astype("float32")
    found = []
    for item in range(2):
        for label in range(3):
            chosen: list[int] = []
            for box in sorted(range(6), key=lambda row: -scores[item, label, row]):
                free = all(overlap(boxes[item, box], boxes[item, other]) <= threshold for other in chosen)
                if scores[item, label, box] > lowest and free and len(chosen) < limit:
                    chosen.append(box)
                    found.append((item, label, box))
    options = {
        "max_output_boxes_per_class": limit,
        "iou_threshold": threshold,
        "score_threshold": lowest,
    }
    triples, count = apply(topi.vision.all_class_non_max_suppression, boxes, scores, **options)
    assert count.tolist() == [len(found)]
    assert [tuple(row) for row in triples[: len(found)]] == found
    assert not triples[len(found) :].any()
    pairs, values, counts = apply(
        topi.vision.all_class_non_max_suppression, boxes, scores, output_format="tensorflow", **options
    )
    for item in range(2):
        own = [(label, box) for owner, label, box in found if owner == item]
        assert counts[item] == len(own)
        assert [tuple(row) for row in pairs[item, : len(own)]] == own
        assert values[item, : len(own)].tolist() == [scores[item, label, box] for label, box in own]


def test_mistakes_are_refused() -> None:
    """Shapes and formats that are not known."""
    with pytest.raises(InvalidShapeError, match="batch, boxes"):
        topi.vision.get_valid_counts(te.placeholder((3, 6)))
    with pytest.raises(OpAttributeInvalid, match="onnx"):
        topi.vision.all_class_non_max_suppression(
            te.placeholder((1, 2, 4)), te.placeholder((1, 1, 2)), 1, 0.5, 0.0, "coco"
        )
