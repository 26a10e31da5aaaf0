"""Operators of single-shot detectors, against loops in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.topi.running import apply
from tests.topi.vision.test_nms import kept

from tilewright import topi

RANDOM = np.random.default_rng(113)


@pytest.mark.parametrize(
    ("clip", "steps", "offsets", "symbolic"),
    [
        (False, (-1, -1), (0.5, 0.5), False),
        (True, (0.2, 0.3), (0.25, 0.75), False),
        (False, (-1, -1), (0.25, 0.75), True),
    ],
)
def test_prior_boxes(
    clip: bool, steps: tuple[float, float], offsets: tuple[float, float], symbolic: bool
) -> None:
    """A box of each size and of each further ratio around each pixel."""
    sizes, ratios = (0.3, 0.8), (1.0, 2.0, 0.5)
    height, width = 3, 4
    expected = []
    for i in range(height):
        for j in range(width):
            y = (i + offsets[0]) * (steps[0] if steps[0] > 0 else 1 / height)
            x = (j + offsets[1]) * (steps[1] if steps[1] > 0 else 1 / width)
            shapes = [(size, size) for size in sizes]
            shapes += [(sizes[0] * math.sqrt(ratio), sizes[0] / math.sqrt(ratio)) for ratio in ratios[1:]]
            for across, along in shapes:
                across *= height / width
                expected.append([x - across / 2, y - along / 2, x + across / 2, y + along / 2])
    wanted = np.clip(expected, 0, 1) if clip else np.array(expected)
    made = apply(
        topi.vision.multibox_prior,
        np.zeros((1, 2, height, width), "float32"),
        sizes=sizes,
        ratios=ratios,
        steps=steps,
        offsets=offsets,
        clip=clip,
        symbolic=symbolic,
    )
    np.testing.assert_allclose(made, wanted[None], rtol=1e-5, atol=1e-6)


def decoded(
    scores: np.ndarray, moves: np.ndarray, anchors: np.ndarray, threshold: float, clip: bool
) -> np.ndarray:
    """Rows (class, score, box) of one item."""
    rows = []
    for j, (left, top, right, bottom) in enumerate(anchors.astype("float64")):
        label = int(scores[1:, j].argmax()) + 1
        if scores[label, j] < threshold:
            continue
        dx, dy, dw, dh = moves[4 * j : 4 * j + 4].astype("float64") * [0.1, 0.1, 0.2, 0.2]
        width, height = right - left, bottom - top
        x, y = (left + right) / 2 + dx * width, (top + bottom) / 2 + dy * height
        across, along = math.exp(dw) * width / 2, math.exp(dh) * height / 2
        box = np.array([x - across, y - along, x + across, y + along])
        rows.append([label - 1, scores[label, j], *(np.clip(box, 0, 1) if clip else box)])
    return np.array(rows)


@pytest.mark.parametrize("clip", [False, True])
def test_detection(clip: bool) -> None:
    """Predictions become boxes, weak ones are left out, and overlapping ones suppressed."""
    scores = RANDOM.random((2, 3, 7)).astype("float32")
    scores[:, :, 2] *= 0.1
    moves = RANDOM.standard_normal((2, 28)).astype("float32")
    corners = RANDOM.random((7, 2)) * 0.5
    anchors = np.concatenate([corners, corners + 0.4], axis=1).astype("float32")
    options = {"clip": clip, "threshold": 0.3}
    boxes, counts = apply(topi.vision.multibox_transform_loc, scores, moves, anchors[None], **options)
    made = apply(topi.vision.multibox_detection, scores, moves, anchors[None], nms_threshold=0.4, **options)
    for item in range(2):
        rows = decoded(scores[item], moves[item], anchors, 0.3, clip)
        assert 0 < counts[item] == len(rows) < 7
        np.testing.assert_allclose(boxes[item, : len(rows)], rows, rtol=1e-4, atol=1e-5)
        assert (boxes[item, len(rows) :] == -1).all()
        alive = made[item][made[item, :, 0] >= 0]
        np.testing.assert_allclose(alive, rows[kept(rows, 0.4, False, -1, -1, True)], rtol=1e-4, atol=1e-5)
