"""Convolutions for x86 against torch, with what a fused function puts around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.scheduling import Loops, placeholder, random_feeds, run

from tilewright import te, topi
from tilewright.target import Target
from tilewright.te import Tensor
from tilewright.topi import x86

RANDOM = np.random.default_rng(3)


def in_blocks(array: np.ndarray, axis: int, block: int) -> np.ndarray:
    """One axis as two, the inner one moved to the end."""
    shape = list(array.shape)
    shape[axis : axis + 1] = [shape[axis] // block, block]
    return np.ascontiguousarray(np.moveaxis(array.reshape(shape), axis + 1, -1))


def convolved(data: np.ndarray, kernel: np.ndarray, stride: int, padding: int, groups: int = 1) -> np.ndarray:
    """The convolution in float64."""
    wide = torch.tensor(data.astype("float64")), torch.tensor(kernel.astype("float64"))
    return F.conv2d(*wide, stride=stride, padding=padding, groups=groups).numpy()


def draw(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


def epilogue(product: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    """A bias, a residual and a relu, as a fused function has them."""
    return topi.nn.relu(topi.add(topi.add(product, bias), residual))


BLOCKED = [
    # batch, channels, height = width, outputs, kernel, stride, padding
    (1, 16, 14, 32, 3, 1, 1),
    (1, 32, 7, 48, 3, 1, 1),
    (2, 16, 9, 16, 3, 2, 1),
    (1, 64, 7, 64, 1, 1, 0),
    (1, 32, 8, 24, 1, 2, 0),
    (1, 3, 15, 16, 7, 2, 3),
    (1, 40, 5, 58, 1, 1, 0),
]


@pytest.mark.parametrize(("batch", "channels", "size", "outputs", "kernel", "stride", "padding"), BLOCKED)
def test_blocked_convolution_with_its_epilogue(
    batch: int, channels: int, size: int, outputs: int, kernel: int, stride: int, padding: int
) -> None:
    """Bias, residual and activation are applied to the tile, whatever does not divide."""
    layouts = x86.conv2d_layouts(channels, outputs)
    assert layouts is not None
    values, weights = draw(batch, channels, size, size), draw(outputs, channels, kernel, kernel)
    expected = convolved(values, weights, stride, padding)
    bias, residual = draw(1, outputs, 1, 1), draw(*expected.shape)
    packed = in_blocks(in_blocks(weights, 1, layouts.ic_bn), 0, layouts.oc_bn)
    arrays = [
        in_blocks(values, 1, layouts.ic_bn),
        packed,
        in_blocks(bias, 1, layouts.oc_bn),
        in_blocks(residual, 1, layouts.oc_bn),
    ]
    tensors = [placeholder(*array.shape, name=name) for array, name in zip(arrays, "dkbr", strict=True)]
    product = x86.conv2d_NCHWc(
        tensors[0], tensors[1], stride, padding, 1, layouts.data_layout, layouts.out_layout
    )
    out = epilogue(product, tensors[2], tensors[3])
    (found,) = run(x86.schedule_conv2d_NCHWc, out, dict(zip(tensors, arrays, strict=True)))
    reference = in_blocks(np.maximum(expected + bias + residual, 0), 1, layouts.oc_bn)
    np.testing.assert_allclose(found, reference, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm -mcpu=x86-64"])
def test_blocked_convolution_on_narrower_machines(target: str) -> None:
    """Blocks and tiles follow the target's vectors."""
    layouts = x86.conv2d_layouts(16, 24, target=target)
    assert layouts is not None and layouts.ic_bn == layouts.oc_bn == (8 if "haswell" in target else 4)
    values, weights = draw(1, 16, 9, 9), draw(24, 16, 3, 3)
    packed = in_blocks(in_blocks(weights, 1, layouts.ic_bn), 0, layouts.oc_bn)
    data, kernel = in_blocks(values, 1, layouts.ic_bn), packed
    tensors = [placeholder(*data.shape, name="d"), placeholder(*kernel.shape, name="k")]
    out = topi.nn.relu(x86.conv2d_NCHWc(*tensors, 1, 1, 1, layouts.data_layout, layouts.out_layout))
    feeds = dict(zip(tensors, (data, kernel), strict=True))
    (found,) = run(x86.schedule_conv2d_NCHWc, out, feeds, target)
    reference = in_blocks(np.maximum(convolved(values, weights, 1, 1), 0), 1, layouts.oc_bn)
    np.testing.assert_allclose(found, reference, rtol=1e-4, atol=1e-3)


def nchw(data: Any, kernel: Any, stride: int, padding: int, groups: int) -> Tensor:
    return x86.conv2d_nchw(data, kernel, stride, padding, 1)


def grouped(data: Any, kernel: Any, stride: int, padding: int, groups: int) -> Tensor:
    return x86.group_conv2d_nchw(data, kernel, stride, padding, 1, groups)


def plain(data: Any, kernel: Any, stride: int, padding: int, groups: int) -> Tensor:
    return topi.nn.conv2d_nchw(data, kernel, stride, padding, 1)


@pytest.mark.parametrize(
    ("operator", "channels", "outputs", "stride", "groups"),
    [
        (nchw, 16, 32, 1, 1),
        (nchw, 6, 10, 2, 1),
        (nchw, 5, 101, 1, 1),
        (plain, 6, 10, 1, 1),
        (plain, 6, 10, 2, 1),
        (grouped, 16, 32, 1, 2),
        (grouped, 12, 12, 1, 12),
    ],
)
def test_convolution_in_nchw(operator: Any, channels: int, outputs: int, stride: int, groups: int) -> None:
    """Through blocks where they help, as it is where they do not."""
    values, weights = draw(1, channels, 11, 9), draw(outputs, channels // groups, 3, 3)
    bias = draw(1, outputs, 1, 1)
    tensors = [
        placeholder(*array.shape, name=name)
        for array, name in zip((values, weights, bias), "dkb", strict=True)
    ]
    out = topi.nn.relu(topi.add(operator(tensors[0], tensors[1], stride, 1, groups), tensors[2]))
    feeds = dict(zip(tensors, (values, weights, bias), strict=True))
    (found,) = run(x86.schedule_conv2d_nchw, out, feeds)
    expected = np.maximum(convolved(values, weights, stride, 1, groups) + bias, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_convolution_in_nhwc() -> None:
    """Channels last, the kernel packed on the way."""
    values, weights = draw(1, 13, 8, 8), draw(48, 13, 3, 3)
    data = placeholder(1, 8, 8, 13, name="d")
    kernel = placeholder(3, 3, 13, 48, name="k")
    out = topi.nn.relu(x86.conv2d_nhwc(data, kernel, 1, 1, 1))
    feeds = {
        data: np.ascontiguousarray(values.transpose(0, 2, 3, 1)),
        kernel: np.ascontiguousarray(weights.transpose(2, 3, 1, 0)),
    }
    (found,) = run(x86.schedule_conv2d_nhwc, out, feeds)
    expected = np.maximum(convolved(values, weights, 1, 1), 0).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("channels", "stride"), [(16, 1), (32, 2), (24, 1)])
def test_blocked_depthwise_convolution(channels: int, stride: int) -> None:
    """Every channel by itself, its padding made in the same loop."""
    layouts = x86.conv2d_layouts(channels, channels, channels)
    assert layouts is not None
    block = layouts.oc_bn
    values, weights = draw(1, channels, 10, 10), draw(channels, 1, 3, 3)
    data, kernel = in_blocks(values, 1, block), in_blocks(weights, 0, block)[:, :, :, :, None]
    tensors = [placeholder(*data.shape, name="d"), placeholder(*kernel.shape, name="k")]
    product = x86.depthwise_conv2d_NCHWc(*tensors, stride, 1, 1, layouts.data_layout, layouts.out_layout)
    out = topi.clip(product, 0.0, 6.0)
    feeds = dict(zip(tensors, (data, kernel), strict=True))
    (found,) = run(x86.schedule_depthwise_conv2d_NCHWc, out, feeds)
    expected = np.clip(convolved(values, weights, stride, 1, channels), 0, 6)
    np.testing.assert_allclose(found, in_blocks(expected, 1, block), rtol=1e-4, atol=1e-4)


def test_the_epilogue_is_in_the_tile() -> None:
    """One parallel loop over slices, which computes their padding too; the sum never leaves the local buffer."""
    data, kernel = placeholder(1, 4, 28, 28, 16, name="d"), placeholder(4, 4, 3, 3, 16, 16, name="k")
    out = topi.nn.relu(x86.conv2d_NCHWc(data, kernel, 1, 1, 1, "NCHW16c", "NCHW16c"))
    with Target("llvm -num-cores=2"):
        loops = Loops(x86.schedule_conv2d_NCHWc(out), [data, kernel, out])
    assert loops.parallel == 1 and loops.widest_store >= 16
    assert "conv2d_NCHWc = T.allocate" in loops.text and '"local"' in loops.text


def test_symbolic_batch() -> None:
    """A blocked convolution whose batch is known when it runs."""
    n = te.size_var("n")
    data, kernel = placeholder(n, 2, 6, 6, 8, name="d"), placeholder(2, 2, 3, 3, 8, 8, name="k")
    out = topi.nn.relu(x86.conv2d_NCHWc(data, kernel, 1, 1, 1, "NCHW8c", "NCHW8c"))
    values, weights = draw(3, 16, 6, 6), draw(16, 16, 3, 3)
    feeds = {data: in_blocks(values, 1, 8), kernel: in_blocks(in_blocks(weights, 1, 8), 0, 8)}
    (found,) = run(x86.schedule_conv2d_NCHWc, out, feeds, shapes=[(3, 2, 6, 6, 8)])
    expected = in_blocks(np.maximum(convolved(values, weights, 1, 1), 0), 1, 8)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 4, 13, 13), (1, 2, 13, 13, 8)])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling(shape: tuple[int, ...], kind: str) -> None:
    """Padded pooling in NCHW and with channels in blocks."""
    data = placeholder(*shape)
    layout = "NCHW" if len(shape) == 4 else "NCHW8c"
    out = topi.nn.pool2d(data, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), kind, layout=layout)
    feeds = random_feeds(data)
    flat = feeds[data] if len(shape) == 4 else feeds[data].transpose(0, 1, 4, 2, 3).reshape(1, 16, 13, 13)
    wide = torch.tensor(flat.astype("float64"))
    pooled = F.max_pool2d(wide, 3, 2, 1) if kind == "max" else F.avg_pool2d(wide, 3, 2, 1)
    expected = pooled.numpy() if len(shape) == 4 else in_blocks(pooled.numpy(), 1, 8)
    (found,) = run(x86.schedule_pool, out, feeds)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
