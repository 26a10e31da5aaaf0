"""Pooling to a given size, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(31)


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (4, 5), (7, 3), (9, 10)])
def test_two_dimensions(size: Any) -> None:
    """Sizes that divide the image, that do not, and that are larger; in either layout."""
    values = RANDOM.standard_normal((2, 3, 6, 8)).astype("float32")
    feeds = inputs(values, values.transpose(0, 2, 3, 1).copy())
    nchw, nhwc = feeds
    made = evaluate(
        [
            topi.nn.adaptive_pool(nchw, size, "max"),
            topi.nn.adaptive_pool(nchw, size, "avg"),
            topi.nn.adaptive_pool(nhwc, size, "avg", "NHWC"),
        ],
        feeds,
    )
    wide = torch.tensor(values.astype("float64"))
    average = F.adaptive_avg_pool2d(wide, size).numpy()
    np.testing.assert_array_equal(made[0], F.adaptive_max_pool2d(wide, size).numpy())
    np.testing.assert_allclose(made[1], average, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made[2], average.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pool_type", ["max", "avg"])
def test_one_and_three_dimensions(pool_type: str) -> None:
    """Signals and volumes."""
    line = RANDOM.standard_normal((1, 2, 7)).astype("float32")
    function = F.adaptive_max_pool1d if pool_type == "max" else F.adaptive_avg_pool1d
    expected = function(torch.tensor(line.astype("float64")), 3).numpy()
    made = apply(topi.nn.adaptive_pool1d, line, output_size=3, pool_type=pool_type)
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)
    volume = RANDOM.standard_normal((1, 2, 4, 5, 3)).astype("float32")
    function = F.adaptive_max_pool3d if pool_type == "max" else F.adaptive_avg_pool3d
    expected = function(torch.tensor(volume.astype("float64")), (2, 3, 3)).numpy()
    made = apply(topi.nn.adaptive_pool3d, volume, output_size=(2, 3, 3), pool_type=pool_type)
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pool_type", ["max", "avg"])
def test_the_whole_image(pool_type: str) -> None:
    """Global pooling, of symbolic sizes too."""
    data = RANDOM.standard_normal((2, 3, 4, 5)).astype("float32")
    expected = getattr(data, "max" if pool_type == "max" else "mean")(axis=(2, 3), keepdims=True)
    for symbolic in (False, True):
        made = apply(topi.nn.global_pool, data, pool_type=pool_type, symbolic=symbolic)
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


def test_symbolic_image() -> None:
    """A size that is known only when the program runs, pooled to a constant one."""
    height = te.size_var("h")
    data = te.placeholder((1, 1, height, 5))
    values = RANDOM.standard_normal((1, 1, 7, 5)).astype("float32")
    made = evaluate(topi.nn.adaptive_pool(data, (3, 2), "avg"), {data: values})
    expected = F.adaptive_avg_pool2d(torch.tensor(values.astype("float64")), (3, 2)).numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


def test_mistakes_are_refused() -> None:
    """An output without pixels."""
    with pytest.raises(InvalidShapeError, match="size of 0"):
        topi.nn.adaptive_pool(te.placeholder((1, 1, 4, 4)), (0, 2), "avg")
