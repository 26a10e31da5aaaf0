"""Depthwise convolution and its gradients, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.nn.test_conv2d import in_blocks
from tests.topi.running import apply, evaluate, inputs

from tilewright import topi

RANDOM = np.random.default_rng(13)


def draw(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


def wide(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array.astype("float64"))


CASES = [(1, 1, 0, 1), (2, 2, 1, 1), (3, 1, 2, 2), (1, (2, 1), (1, 0), (1, 2))]


@pytest.mark.parametrize(("multiplier", "stride", "padding", "dilation"), CASES)
def test_layouts(multiplier: int, stride: Any, padding: Any, dilation: Any) -> None:
    """Channel c gives the channels from c * multiplier, in NCHW and NHWC."""
    data, kernel = draw(2, 3, 7, 6), draw(3, multiplier, 3, 2)
    flat = kernel.reshape(3 * multiplier, 1, 3, 2)
    expected = F.conv2d(
        wide(data), wide(flat), stride=stride, padding=padding, dilation=dilation, groups=3
    ).numpy()
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    nchw = apply(topi.nn.depthwise_conv2d_nchw, data, kernel, **options)
    np.testing.assert_allclose(nchw, expected, rtol=1e-5, atol=1e-5)
    nhwc = apply(
        topi.nn.depthwise_conv2d_nhwc,
        data.transpose(0, 2, 3, 1).copy(),
        kernel.transpose(2, 3, 0, 1).copy(),
        **options,
    )
    np.testing.assert_allclose(nhwc, expected.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("multiplier", "in_block", "out_block"), [(1, 4, 4), (1, 4, 2), (2, 2, 4)])
def test_blocks(multiplier: int, in_block: int, out_block: int) -> None:
    """Channels in blocks, of the same or of another size than the output's."""
    data, kernel = draw(1, 8, 6, 6), draw(8 * multiplier, 1, 3, 3)
    expected = F.conv2d(wide(data), wide(kernel), padding=1, groups=8).numpy()
    packed = in_blocks(in_blocks(kernel, 1, 1), 0, out_block)
    made = apply(
        topi.nn.depthwise_conv2d_NCHWc,
        in_blocks(data, 1, in_block),
        packed,
        stride=1,
        padding=1,
        dilation=1,
        layout=f"NCHW{in_block}c",
        out_layout=f"NCHW{out_block}c",
    )
    np.testing.assert_allclose(made, in_blocks(expected, 1, out_block), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("stride", "padding", "multiplier"), [(1, 1, 1), (2, 0, 2), (2, 1, 1), (3, (1, 0), 2)]
)
def test_gradients(stride: int, padding: Any, multiplier: int) -> None:
    """By the input and by the kernel, as automatic differentiation gives them."""
    data, kernel = draw(2, 6, 7, 3), draw(3, 2, 3, multiplier)
    image = wide(data.transpose(0, 3, 1, 2)).requires_grad_()
    weights = wide(kernel.transpose(2, 3, 0, 1).reshape(3 * multiplier, 1, 3, 2)).requires_grad_()
    output = F.conv2d(image, weights, stride=stride, padding=padding, groups=3)
    gradient = draw(*output.permute(0, 2, 3, 1).shape)
    output.backward(wide(gradient).permute(0, 3, 1, 2))
    feeds = inputs(kernel, gradient)
    by_input = topi.nn.depthwise_conv2d_backward_input_nhwc(
        *feeds, gradient.shape, data.shape, stride, padding
    )
    expected = image.grad.permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(evaluate(by_input, feeds), expected, rtol=1e-4, atol=1e-5)
    feeds = inputs(data, gradient)
    by_kernel = topi.nn.depthwise_conv2d_backward_weight_nhwc(
        *feeds, gradient.shape, kernel.shape, stride, padding
    )
    expected = weights.grad.reshape(3, multiplier, 3, 2).permute(2, 3, 0, 1).numpy()
    np.testing.assert_allclose(evaluate(by_kernel, feeds), expected, rtol=1e-4, atol=1e-5)
