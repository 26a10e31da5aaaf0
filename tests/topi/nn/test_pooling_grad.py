"""Gradients of pooling, against automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import evaluate, inputs

from tilewright import topi

RANDOM = np.random.default_rng(37)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "ceil_mode"),
    [
        ((2, 2), (2, 2), 0, False),
        ((3, 3), (2, 2), 1, False),
        ((3, 2), (1, 2), 1, True),
        ((2, 2), (3, 3), 0, False),
    ],
)
@pytest.mark.parametrize(("pool_type", "include"), [("max", True), ("avg", True), ("avg", False)])
def test_by_the_input(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: int,
    ceil_mode: bool,
    pool_type: str,
    include: bool,
) -> None:
    """The gradient goes to the largest element, or evenly to all that were averaged."""
    # Few distinct values make ties, of which the first takes the gradient.
    data = RANDOM.integers(0, 4, (1, 2, 6, 7)).astype("float32")
    image = torch.tensor(data.astype("float64"), requires_grad=True)
    if pool_type == "max":
        output = F.max_pool2d(image, kernel, stride, padding, ceil_mode=ceil_mode)
    else:
        output = F.avg_pool2d(image, kernel, stride, padding, ceil_mode, include)
    gradient = RANDOM.standard_normal(tuple(output.shape)).astype("float32")
    output.backward(torch.tensor(gradient.astype("float64")))
    feeds = inputs(gradient, data)
    made = topi.nn.pool_grad(*feeds, kernel, stride, (padding,) * 4, pool_type, ceil_mode, "NCHW", include)
    assert made.op.tag == f"pool_grad_{pool_type}"
    np.testing.assert_allclose(evaluate(made, feeds), image.grad.numpy(), rtol=1e-5, atol=1e-6)
