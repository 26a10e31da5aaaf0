"""Cases of object detection."""

from __future__ import annotations

import numpy as np
from tests.relay.op.cases import Case, Input

from tilewright import relay

# class, score, left, top, right, bottom
BOXES = Input(
    (1, 6, 6),
    values=[
        [
            [0, 0.8, 1, 20, 25, 45],
            [1, 0.7, 30, 60, 50, 80],
            [0, 0.4, 4, 21, 19, 40],
            [2, 0.9, 35, 61, 52, 79],
            [1, 0.5, 100, 60, 70, 110],
            [-1, 0.95, 0, 0, 9, 9],
        ]
    ],
)
COUNT = Input((1,), "int32", values=[5])
INDICES = Input((1, 6), "int32", values=[[0, 1, 2, 3, 4, 5]])
CORNERS = Input((2, 5, 4), low=0.0, high=1.0)
SCORES = Input((2, 3, 5), low=0.0, high=1.0)
REGIONS = Input((3, 5), values=[[0, 1, 1, 8, 7], [1, 0.5, 2.5, 9.0, 6.25], [1, -3, -2, 4, 30]])


SUPPRESSION = [
    Case(
        "get_valid_counts",
        lambda x: relay.vision.get_valid_counts(x, 0.45).astuple(),
        [BOXES],
        lambda x: (
            np.array([4], "int32"),
            np.concatenate([x[:, [0, 1, 3, 4]], np.full((1, 2, 6), -1, x.dtype)], axis=1),
            np.array([[0, 1, 3, 4, -1, -1]], "int32"),
        ),
    ),
    Case(
        "get_valid_counts_without_class",
        lambda x: relay.vision.get_valid_counts(x, 0.0, id_index=-1, score_index=0).astuple(),
        [Input((2, 4, 5))],
    ),
    Case(
        "non_max_suppression_indices",
        lambda x, count, indices: relay.vision.non_max_suppression(
            x, count, indices, iou_threshold=0.3
        ).astuple(),
        [BOXES, COUNT, INDICES],
        lambda x, count, indices: (
            np.array([[3, 0, 1, 4, -1, -1]], "int32"),
            np.array([[4]], "int32"),
        ),
    ),
    Case(
        "non_max_suppression_forced",
        lambda x, count, indices: relay.vision.non_max_suppression(
            x, count, indices, max_output_size=2, iou_threshold=0.3, force_suppress=True
        ).astuple(),
        [BOXES, COUNT, INDICES],
        lambda x, count, indices: (
            np.array([[3, 0, -1, -1, -1, -1]], "int32"),
            np.array([[2]], "int32"),
        ),
    ),
    Case(
        "non_max_suppression_boxes",
        lambda x, count, indices: relay.vision.non_max_suppression(
            x, count, indices, iou_threshold=0.3, top_k=4, return_indices=False
        ),
        [BOXES, COUNT, INDICES],
    ),
    Case(
        "non_max_suppression_to_bottom",
        lambda x, count, indices: relay.vision.non_max_suppression(
            x,
            count,
            indices,
            iou_threshold=0.3,
            force_suppress=True,
            return_indices=False,
            invalid_to_bottom=True,
        ),
        [BOXES, COUNT, INDICES],
    ),
    *(
        Case(
            f"all_class_non_max_suppression_{form}",
            lambda boxes, scores, form=form: relay.vision.all_class_non_max_suppression(
                boxes, scores, 3, 0.25, 0.3, form
            ).astuple(),
            [CORNERS, SCORES],
        )
        for form in ("onnx", "tensorflow")
    ),
]

DETECTORS = [
    Case(
        "multibox_prior",
        lambda x: relay.vision.multibox_prior(x, (0.3, 0.7), (1, 2, 0.5), offsets=(0.25, 0.75)),
        [Input((1, 2, 3, 4))],
    ),
    Case(
        "multibox_prior_clipped",
        lambda x: relay.vision.multibox_prior(x, 0.9, (1, 3), steps=(0.3, 0.2), clip=True),
        [Input((1, 2, 2, 3))],
    ),
    Case(
        "multibox_transform_loc",
        lambda p, m, a: relay.vision.multibox_transform_loc(p, m, a, threshold=0.4).astuple(),
        [
            Input((2, 3, 4), low=0.0, high=1.0),
            Input((2, 16), low=-1.0, high=1.0),
            Input(
                (1, 4, 4),
                values=[[[0, 0, 0.5, 0.5], [0.1, 0.2, 0.4, 0.8], [0.3, 0.3, 0.9, 1], [0, 0.5, 1, 1]]],
            ),
        ],
    ),
    *(
        Case(
            f"roi_align_{mode}_{ratio}",
            lambda x, rois, mode=mode, ratio=ratio: relay.vision.roi_align(
                x, rois, (3, 2), 0.5, ratio, mode=mode
            ),
            [Input((2, 2, 6, 7)), REGIONS],
            rtol=1e-4,
            atol=1e-5,
        )
        for mode, ratio in (("avg", 2), ("avg", -1), ("max", 2))
    ),
    *(
        Case(
            f"roi_align_aligned_{mode}_{ratio}",
            lambda x, rois, mode=mode, ratio=ratio: relay.vision.roi_align(
                x, rois, (3, 2), 0.5, ratio, mode=mode, aligned=True
            ),
            [Input((2, 2, 6, 7)), REGIONS],
            rtol=1e-4,
            atol=1e-5,
        )
        for mode, ratio in (("avg", -1), ("max_of_corners", 2))
    ),
    Case(
        "roi_align_nhwc",
        lambda x, rois: relay.vision.roi_align(x, rois, 2, 1.0, 2, layout="NHWC"),
        [Input((2, 6, 7, 2)), REGIONS],
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        "roi_pool",
        lambda x, rois: relay.vision.roi_pool(x, rois, (2, 3), 0.5),
        [Input((2, 2, 6, 7)), REGIONS],
    ),
    *(
        Case(
            f"proposal_{'corners' if corners else 'centres'}",
            lambda p, m, s, corners=corners: relay.vision.proposal(
                p, m, s, (4, 8), (0.5, 1), 8, 0.6, 20, 6, 4, corners
            ),
            [
                Input((1, 8, 3, 4), low=0.0, high=1.0),
                Input((1, 16, 3, 4), low=-0.5, high=0.5),
                Input((1, 3), values=[[24, 32, 1]]),
            ],
            rtol=1e-4,
            atol=1e-3,
            dynamic=False,
        )
        for corners in (False, True)
    ),
    Case("yolo_reorg", lambda x: relay.vision.yolo_reorg(x, 2), [Input((1, 4, 4, 6))]),
]

CASES = [*SUPPRESSION, *DETECTORS]
