"""Images read at given places, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(101)
IMAGE = RANDOM.standard_normal((2, 3, 5, 6)).astype("float32")
GRID = (RANDOM.random((2, 2, 4, 7)) * 3.6 - 1.8).astype("float32")


@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [True, False])
def test_images(method: str, padding: str, align: bool) -> None:
    """Every interpolation and padding, for places inside and outside of the image."""
    expected = F.grid_sample(
        torch.tensor(IMAGE.astype("float64")),
        torch.tensor(GRID.transpose(0, 2, 3, 1).astype("float64")),
        mode=method,
        padding_mode=padding,
        align_corners=align,
    ).numpy()
    made = apply(
        topi.image.grid_sample, IMAGE, GRID, method=method, padding_mode=padding, align_corners=align
    )
    np.testing.assert_allclose(made, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("method", "padding"), [("bilinear", "zeros"), ("nearest", "border")])
def test_volumes(method: str, padding: str) -> None:
    """Three coordinates: horizontal, vertical, depth."""
    volume = RANDOM.standard_normal((1, 2, 3, 4, 5)).astype("float32")
    grid = (RANDOM.random((1, 3, 2, 3, 4)) * 2.4 - 1.2).astype("float32")
    expected = F.grid_sample(
        torch.tensor(volume.astype("float64")),
        torch.tensor(grid.transpose(0, 2, 3, 4, 1).astype("float64")),
        mode=method,
        padding_mode=padding,
        align_corners=True,
    ).numpy()
    made = apply(topi.image.grid_sample, volume, grid, method=method, layout="NCDHW", padding_mode=padding)
    np.testing.assert_allclose(made, expected, rtol=1e-3, atol=1e-4)


def test_places_that_are_no_numbers() -> None:
    """Infinite and undefined places read padding, and nothing outside of memory."""
    grid = np.full((1, 2, 1, 3), 0.0, "float32")
    grid[0, 0, 0] = [np.inf, -np.inf, np.nan]
    for method in ("bilinear", "nearest", "bicubic"):
        made = apply(topi.image.grid_sample, IMAGE[:1], grid, method=method)
        np.testing.assert_array_equal(made, np.zeros_like(made))
    made = apply(topi.image.grid_sample, IMAGE[:1], grid, padding_mode="border")
    np.testing.assert_allclose(made[0, :, 0], IMAGE[0, :, 2, [5, 0, 0]].T, rtol=1e-6)


def test_affine_grids() -> None:
    """The places of pixels under affine maps; a single row lies in the middle."""
    maps = RANDOM.standard_normal((2, 2, 3)).astype("float32")
    made = apply(topi.image.affine_grid, maps, target_shape=(3, 4))
    expected = F.affine_grid(torch.tensor(maps.astype("float64")), [2, 1, 3, 4], align_corners=True)
    np.testing.assert_allclose(made, expected.permute(0, 3, 1, 2).numpy(), rtol=1e-5, atol=1e-5)
    made = apply(topi.image.affine_grid, maps, target_shape=(1, 5))
    expected = maps[:, :, :1] * np.linspace(-1, 1, 5) + maps[:, :, 2:]
    np.testing.assert_allclose(made[:, :, 0], expected, rtol=1e-5, atol=1e-5)


def test_symbolic_sizes() -> None:
    """The image and the grid may have sizes that are known only when the program runs."""
    made = apply(topi.image.grid_sample, IMAGE, GRID, symbolic=True)
    np.testing.assert_allclose(made, apply(topi.image.grid_sample, IMAGE, GRID), rtol=1e-5, atol=1e-6)


def test_mistakes_are_refused() -> None:
    """Unknown methods, paddings and layouts."""
    image, grid = te.placeholder((1, 1, 3, 3)), te.placeholder((1, 2, 2, 2))
    with pytest.raises(OpAttributeInvalid, match="no method 'cubic'"):
        topi.image.grid_sample(image, grid, "cubic")
    with pytest.raises(OpAttributeInvalid, match="zeros, border or reflection"):
        topi.image.grid_sample(image, grid, padding_mode="wrap")
    with pytest.raises(OpAttributeInvalid, match="NCHW and NCDHW"):
        topi.image.grid_sample(image, grid, layout="NHWC")
    with pytest.raises(InvalidShapeError, match="5 dimensions"):
        topi.image.grid_sample(image, grid, layout="NCDHW")
