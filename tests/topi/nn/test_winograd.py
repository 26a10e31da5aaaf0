"""Winograd convolution agrees with the direct one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.nn.winograd_util import winograd_matrices

RANDOM = np.random.default_rng(17)


def reference(data: np.ndarray, kernel: np.ndarray, padding: int) -> np.ndarray:
    wide = torch.tensor(data.astype("float64")), torch.tensor(kernel.astype("float64"))
    return F.conv2d(*wide, padding=padding).numpy()


@pytest.mark.parametrize(
    ("tile", "taps", "tolerance", "layout"),
    [(2, 3, 1e-5, "NCHW"), (4, 3, 2e-5, "NHWC"), (6, 3, 1e-4, "NCHW"), (2, 5, 1e-4, "NHWC")],
)
def test_tiles_and_layouts(tile: int, taps: int, tolerance: float, layout: str) -> None:
    """Any tile, any kernel, images that are no multiple of the tile; the kernel transformed before or not."""
    data = RANDOM.standard_normal((2, 3, 7, 9)).astype("float32")
    kernel = RANDOM.standard_normal((4, 3, taps, taps)).astype("float32")
    expected = reference(data, kernel, 1)
    plain, before = topi.nn.conv2d_winograd_nchw, topi.nn.conv2d_winograd_nchw_without_weight_transform
    given, weights = data, kernel
    if layout == "NHWC":
        plain, before = topi.nn.conv2d_winograd_nhwc, topi.nn.conv2d_winograd_nhwc_without_weight_transform
        given, weights = data.transpose(0, 2, 3, 1).copy(), kernel.transpose(2, 3, 1, 0).copy()
        expected = expected.transpose(0, 2, 3, 1)
    made = apply(plain, given, weights, strides=1, padding=1, dilation=1, out_dtype="float32", tile_size=tile)
    np.testing.assert_allclose(made, expected, rtol=tolerance, atol=10 * tolerance)
    transformed = apply(topi.nn.conv2d_winograd_weight_transform, kernel, tile_size=tile)
    made = apply(
        before,
        given,
        transformed,
        strides=1,
        padding=1,
        dilation=1,
        out_dtype="float32",
        kernel_size=taps,
    )
    np.testing.assert_allclose(made, expected, rtol=tolerance, atol=10 * tolerance)


def test_symbolic_batch_and_size() -> None:
    """The number of tiles may be known only when the program runs."""
    batch, height = te.size_var("n"), te.size_var("h")
    data, kernel = te.placeholder((batch, 2, height, 8)), te.placeholder((3, 2, 3, 3))
    result = topi.nn.conv2d_winograd_nchw(data, kernel, 1, 1, 1, "float32", tile_size=2)
    values = RANDOM.standard_normal((2, 2, 5, 8)).astype("float32")
    weights = RANDOM.standard_normal((3, 2, 3, 3)).astype("float32")
    made = evaluate(result, {data: values, kernel: weights})
    np.testing.assert_allclose(made, reference(values, weights, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("depth", [1, 3])
def test_transformed_volumes(depth: int) -> None:
    """A cube is transformed along its three axes, a plate along two."""
    kernel = RANDOM.standard_normal((2, 3, depth, 3, 3)).astype("float32")
    made = apply(topi.nn.conv3d_winograd_weight_transform, kernel, tile_size=2)
    _, _, g = winograd_matrices(2, 3)
    if depth == 3:
        expected = np.einsum("oidhw,xd,yh,zw->xyzoi", kernel, g, g, g)
    else:
        expected = np.einsum("oidhw,yh,zw->yzdoi", kernel, g, g)
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


def test_what_it_cannot_do_is_refused() -> None:
    """Strides, dilations and oblong kernels."""
    data, kernel = te.placeholder((1, 2, 8, 8)), te.placeholder((3, 2, 3, 3))
    with pytest.raises(OpAttributeInvalid, match="needs strides of 1"):
        topi.nn.conv2d_winograd_nchw(data, kernel, 2, 1, 1, None)
    with pytest.raises(OpAttributeInvalid, match="needs dilation of 1"):
        topi.nn.conv2d_winograd_nchw(data, kernel, 1, 1, 2, None)
    with pytest.raises(OpAttributeInvalid, match="equal extents"):
        topi.nn.conv2d_winograd_nchw(data, te.placeholder((3, 2, 3, 1)), 1, 1, 1, None)
    feeds = inputs(np.zeros((3, 2, 3, 3), "float32"))
    with pytest.raises(OpAttributeInvalid, match="together at most"):
        topi.nn.conv2d_winograd_weight_transform(*feeds, 20)
