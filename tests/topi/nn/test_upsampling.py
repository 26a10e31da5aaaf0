"""Images enlarged by a factor, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply

from tilewright import topi

DATA = np.random.default_rng(89).standard_normal((1, 2, 3, 4)).astype("float32")


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_nearest(layout: str, symbolic: bool) -> None:
    """Each pixel becomes a block."""
    order = ["NCHW".index(letter) for letter in layout]
    made = apply(
        topi.nn.upsampling,
        DATA.transpose(order).copy(),
        scale_h=2,
        scale_w=3,
        layout=layout,
        symbolic=symbolic,
    )
    expected = DATA.repeat(2, axis=2).repeat(3, axis=3).transpose(order)
    np.testing.assert_array_equal(made, expected)


def test_bilinear() -> None:
    """With the corners kept in place."""
    made = apply(topi.nn.upsampling, DATA, scale_h=2.0, scale_w=2.0, method="bilinear", align_corners=True)
    expected = F.interpolate(
        torch.tensor(DATA.astype("float64")), scale_factor=2, mode="bilinear", align_corners=True
    ).numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


def test_volumes() -> None:
    """Blocks of space, and trilinear interpolation between centres of pixels."""
    data = DATA.reshape(1, 1, 2, 3, 4)
    made = apply(
        topi.nn.upsampling3d,
        data,
        scale_d=2,
        scale_h=2,
        scale_w=2,
        coordinate_transformation_mode="asymmetric",
    )
    np.testing.assert_array_equal(made, data.repeat(2, axis=2).repeat(2, axis=3).repeat(2, axis=4))
    made = apply(topi.nn.upsampling3d, data, scale_d=2, scale_h=2, scale_w=2, method="trilinear")
    expected = F.interpolate(
        torch.tensor(data.astype("float64")), scale_factor=2, mode="trilinear", align_corners=False
    ).numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)
