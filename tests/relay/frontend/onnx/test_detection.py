"""Boxes and regions of images give what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import check_like_onnx_runtime, node_model, run


def boxes(count: int, seed: int) -> Any:
    """Boxes by two corners, either of which may be the lower one."""
    return np.random.default_rng(seed).random((2, count, 4)).astype("float32")


@pytest.mark.parametrize("centre", [0, 1])
def test_non_max_suppression(centre: int) -> None:
    """Boxes by corners or by centre and size; as many rows come out as boxes are kept."""
    inputs = {
        "boxes": boxes(12, 1),
        "scores": np.random.default_rng(2).random((2, 3, 12)).astype("float32"),
        "limit": np.array([4], "int64"),
        "overlap": np.array([0.3], "float32"),
        "lowest": np.array([0.4], "float32"),
    }
    check_like_onnx_runtime("NonMaxSuppression", inputs, opset=11, center_point_box=centre)


def test_a_limit_of_64_bits() -> None:
    """PyTorch's exporter writes the greatest int64 where every box may be kept."""
    inputs = {
        "boxes": boxes(6, 1),
        "scores": np.random.default_rng(2).random((2, 1, 6)).astype("float32"),
        "limit": np.array([np.iinfo("int64").max]),
        "overlap": np.array([0.3], "float32"),
    }
    check_like_onnx_runtime("NonMaxSuppression", inputs, opset=11)


def test_no_limit_is_none() -> None:
    """Without a limit no box is asked for, and none is given."""
    inputs = {"boxes": boxes(3, 1), "scores": floats(2, 1, 3)}
    found = run(node_model("NonMaxSuppression", inputs, opset=11), inputs)[0]
    assert found.shape == (0, 3) and found.dtype == np.int64


REGIONS = np.array([[0.5, 0.2, 4.2, 3.9], [1.0, 2.0, 1.3, 2.1], [-3.0, -1.0, 9.0, 5.0]], "float32")


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align(mode: str, coordinates: str, ratio: int) -> None:
    """Regions larger and smaller than a pixel, and beyond the image."""
    inputs = {"x": floats(2, 2, 6, 7), "rois": REGIONS, "items": np.array([0, 1, 1], "int64")}
    check_like_onnx_runtime(
        "RoiAlign",
        inputs,
        opset=16,
        unknown=False,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        output_height=3,
        output_width=2,
        sampling_ratio=ratio,
        spatial_scale=0.8,
    )


def test_max_roi_pool() -> None:
    """The largest element of each part."""
    rois = np.array([[0, 0, 0, 3, 4], [1, 1, 2, 5, 5]], "float32")
    inputs = {"x": floats(2, 2, 6, 7), "rois": rois}
    check_like_onnx_runtime("MaxRoiPool", inputs, unknown=False, pooled_shape=[2, 2], spatial_scale=1.0)
