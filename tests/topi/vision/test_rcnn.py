"""Operators on regions, against loops in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.topi.running import apply
from tests.topi.vision.test_nms import overlap

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.vision.rcnn.proposal import generate_anchor

RANDOM = np.random.default_rng(109)
IMAGE = RANDOM.standard_normal((2, 3, 8, 9)).astype("float32")
ROIS = np.array(
    [
        [0, 1.0, 2.0, 7.0, 6.0],
        [1, 0.0, 0.0, 17.0, 15.0],
        [1, 12.3, 3.1, 4.0, 22.0],
        [0, -5.0, -6.0, 2.0, 3.0],
    ],
    "float32",
)


def sampled(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """All channels at a place; the edge up to one pixel outside, zero beyond."""
    _, height, width = image.shape
    if y < -1 or x < -1 or y > height or x > width:
        return np.zeros(image.shape[0])
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    low_y, low_x = int(y), int(x)
    high_y, high_x = min(low_y + 1, height - 1), min(low_x + 1, width - 1)
    upper = image[:, low_y, low_x] * (1 - x + low_x) + image[:, low_y, high_x] * (x - low_x)
    lower = image[:, high_y, low_x] * (1 - x + low_x) + image[:, high_y, high_x] * (x - low_x)
    return upper * (1 - y + low_y) + lower * (y - low_y)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_aligned_regions(mode: str, ratio: int, layout: str) -> None:
    """Read between pixels, as often as asked for or as the region has pixels."""
    expected = np.zeros((4, 3, 2, 3))
    for r, (owner, left, top, right, bottom) in enumerate(ROIS.astype("float64") * [1, 0.5, 0.5, 0.5, 0.5]):
        height, width = max(bottom - top, 1) / 2, max(right - left, 1) / 3
        rows, columns = (ratio, ratio) if ratio > 0 else (math.ceil(height), math.ceil(width))
        for i in range(2):
            for j in range(3):
                values = [
                    sampled(
                        IMAGE[int(owner)],
                        top + (i + (a + 0.5) / rows) * height,
                        left + (j + (b + 0.5) / columns) * width,
                    )
                    for a in range(rows)
                    for b in range(columns)
                ]
                expected[r, :, i, j] = np.mean(values, 0) if mode == "avg" else np.max(values, 0)
    options = {"pooled_size": (2, 3), "spatial_scale": 0.5, "mode": mode, "sample_ratio": ratio}
    if layout == "NCHW":
        made = apply(topi.vision.roi_align_nchw, IMAGE, ROIS, **options)
    else:
        made = apply(topi.vision.roi_align_nhwc, IMAGE.transpose(0, 2, 3, 1).copy(), ROIS, **options)
        made = made.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_pooled_regions() -> None:
    """The largest pixel of each bin; bins outside of the image are zero."""
    expected = np.zeros((4, 3, 2, 3), "float32")
    for r, (owner, *sides) in enumerate(ROIS):
        left, top, right, bottom = (int(math.floor(abs(s * 0.5) + 0.5) * np.sign(s)) for s in sides)
        height, width = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i in range(2):
            for j in range(3):
                y1, y2 = top + i * height // 2, top + -(-(i + 1) * height // 2)
                x1, x2 = left + j * width // 3, left + -(-(j + 1) * width // 3)
                part = IMAGE[int(owner), :, max(y1, 0) : max(y2, 0), max(x1, 0) : max(x2, 0)]
                if part.size:
                    expected[r, :, i, j] = part.max(axis=(1, 2))
    made = apply(topi.vision.roi_pool_nchw, IMAGE, ROIS, pooled_size=(2, 3), spatial_scale=0.5)
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("owner", [-1.0, 2.0, 1e9])
def test_regions_of_no_image(owner: float) -> None:
    """They are zero, and nothing outside of the images is read."""
    rois = np.array([[owner, 1, 2, 7, 6]], "float32")
    made = apply(topi.vision.roi_align_nchw, IMAGE, rois, pooled_size=2, spatial_scale=1.0, mode="avg")
    assert made.shape == (1, 3, 2, 2) and not made.any()
    assert not apply(topi.vision.roi_pool_nchw, IMAGE, rois, pooled_size=2, spatial_scale=1.0).any()


def test_anchors() -> None:
    """The published anchors of a base of 16: (ratio 0.5, scale 8), (1, 16), (2, 32)."""
    assert generate_anchor(0.5, 8, 16) == (-84.0, -40.0, 99.0, 55.0)
    assert generate_anchor(1, 16, 16) == (-120.0, -120.0, 135.0, 135.0)
    assert generate_anchor(2, 32, 16) == (-168.0, -344.0, 183.0, 359.0)


@pytest.mark.parametrize("iou_loss", [False, True])
def test_proposals(iou_loss: bool) -> None:
    """The best predicted boxes that overlap no better one, repeated where there are too few."""
    scales, ratios, stride, wanted, looked_at = (2.0, 4.0), (0.5, 1.0), 8, 6, 12
    scores = RANDOM.permutation(2 * 8 * 3 * 4).reshape(2, 8, 3, 4).astype("float32") / 192
    moves = (RANDOM.standard_normal((2, 16, 3, 4)) * 0.3).astype("float32")
    info = np.array([[24, 32, 1.0], [20, 30, 1.5]], "float32")
    anchors = [generate_anchor(ratio, scale, stride) for ratio in ratios for scale in scales]
    expected = []
    for n in range(2):
        rows = []
        for h in range(3):
            for w in range(4):
                for k, anchor in enumerate(anchors):
                    corners = np.array(anchor) + np.array([w, h, w, h]) * stride
                    dx, dy, dw, dh = moves[n, 4 * k : 4 * k + 4, h, w].astype("float64")
                    if iou_loss:
                        box = corners + [dx, dy, dw, dh]
                    else:
                        size = corners[2:] - corners[:2] + 1
                        middle = corners[:2] + 0.5 * (size - 1) + size * [dx, dy]
                        half = 0.5 * (np.exp([dw, dh]) * size - 1)
                        box = np.concatenate([middle - half, middle + half])
                    limit = np.array([info[n, 1], info[n, 0]] * 2) - 1
                    box = np.maximum(np.minimum(box, limit), 0)
                    score = scores[n, 4 + k, h, w]
                    smallest = info[n, 2] * 4
                    if (box[2:] - box[:2] + 1 < smallest).any():
                        box, score = box + smallest / 2 * np.array([-1, -1, 1, 1]), -1
                    if h >= info[n, 0] // stride or w >= info[n, 1] // stride:
                        score = -1
                    rows.append((score, box))
        rows.sort(key=lambda row: -row[0])
        chosen: list[np.ndarray] = []
        for _, box in rows[:looked_at]:
            grown = [np.concatenate([b[:2], b[2:] + 1]) for b in chosen]
            if all(overlap(g, np.concatenate([box[:2], box[2:] + 1])) <= 0.5 for g in grown):
                chosen.append(box)
        expected += [[n, *chosen[i % len(chosen)]] for i in range(wanted)]
    made = apply(
        topi.vision.proposal,
        scores,
        moves,
        info,
        scales=scales,
        ratios=ratios,
        feature_stride=stride,
        threshold=0.5,
        rpn_pre_nms_top_n=looked_at,
        rpn_post_nms_top_n=wanted,
        rpn_min_size=4,
        iou_loss=iou_loss,
    )
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("symbolic", [False, True])
def test_reorganisation(symbolic: bool) -> None:
    """Darknet's order of pixels, which reads the input as a larger image of fewer channels."""
    data = np.arange(2 * 8 * 4 * 6, dtype="float32").reshape(2, 8, 4, 6)
    flat, expected = data.reshape(-1), []
    for b in range(2):
        for k in range(8):
            for j in range(4):
                for i in range(6):
                    offset = k // 2
                    column, row = i * 2 + offset % 2, j * 2 + offset // 2
                    expected.append(flat[column + 12 * (row + 8 * (k % 2 + 2 * b))])
    made = apply(topi.vision.reorg, data, stride=2, symbolic=symbolic)
    np.testing.assert_array_equal(made, np.array(expected).reshape(2, 32, 2, 3))


def test_mistakes_are_refused() -> None:
    """A pooling that is not known."""
    with pytest.raises(OpAttributeInvalid, match="avg"):
        topi.vision.roi_align_nchw(te.placeholder((1, 1, 4, 4)), te.placeholder((1, 5)), 2, 1.0, "min")
