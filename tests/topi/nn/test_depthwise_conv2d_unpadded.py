"""Depthwise convolutions with channels in blocks, read without a padded copy where they are wide."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi


def reference(data: Any, kernel: Any, stride: int, pads: tuple[int, int, int, int], dilation: int) -> Any:
    """By the definition, in float64, on (blocks, height, width, block)."""
    top, left, down, right = pads
    padded = np.pad(data[0].astype("float64"), ((0, 0), (top, down), (left, right), (0, 0)))
    size = kernel.shape[2]
    span = dilation * (size - 1) + 1
    rows, columns = ((padded.shape[axis] - span) // stride + 1 for axis in (1, 2))
    made = np.zeros((padded.shape[0], rows, columns, padded.shape[3]))
    for y in range(size):
        for x in range(size):
            part = padded[:, y * dilation :, x * dilation :][
                :, : stride * rows : stride, : stride * columns : stride
            ]
            made += part * kernel[:, 0, y, x, 0][:, None, None, :]
    return made[None]


@pytest.mark.parametrize(
    ("size", "taps", "stride", "pads", "dilation"),
    [
        ((9, 40), 3, 1, (1, 1, 1, 1), 1),
        ((30, 47), 3, 2, (1, 1, 1, 1), 1),
        ((7, 33), 5, 1, (2, 2, 2, 2), 1),
        ((12, 41), 3, 2, (0, 1, 2, 0), 1),
        ((20, 64), 3, 1, (2, 2, 2, 2), 2),
        ((3, 26), 7, 1, (3, 3, 3, 3), 1),
        ((8, 12), 3, 1, (1, 1, 1, 1), 1),
    ],
)
def test_values(
    size: tuple[int, int], taps: int, stride: int, pads: tuple[int, int, int, int], dilation: int
) -> None:
    """Every edge, for strides, dilations and borders of any width, with what follows the convolution."""
    generator = np.random.default_rng(5)
    data = generator.standard_normal((1, 3, *size, 16)).astype("float32")
    kernel = generator.standard_normal((3, 1, taps, taps, 1, 16)).astype("float32")
    places = [te.placeholder(array.shape, name=name) for array, name in ((data, "data"), (kernel, "kernel"))]
    with tvm.target.Target("llvm"):
        made = topi.x86.depthwise_conv2d_NCHWc(
            *places, (stride, stride), pads, (dilation, dilation), "NCHW16c", "NCHW16c", "float32"
        )
        result = topi.nn.relu(made)
        function = tvm.build(topi.x86.schedule_depthwise_conv2d_NCHWc([result]), [*places, result])
    out = tvm.nd.array(np.empty([int(extent) for extent in result.shape], "float32"))
    function(tvm.nd.array(data), tvm.nd.array(kernel), out)
    expected = np.maximum(reference(data, kernel, stride, pads, dilation), 0)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "size", "stride"), [(384, 14, 1), (576, 14, 2), (960, 7, 1)])
def test_nothing_is_spilled(channels: int, size: int, stride: int) -> None:
    """All accumulators stay in registers: no vector goes to the stack and back."""
    target = tvm.target.Target("llvm -mcpu=skylake-avx512")
    with target:
        data = te.placeholder((1, channels // 16, size, size, 16), name="data")
        kernel = te.placeholder((channels // 16, 1, 3, 3, 1, 16), name="kernel")
        made = topi.x86.depthwise_conv2d_NCHWc(data, kernel, stride, 1, 1, "NCHW16c", "NCHW16c", "float32")
        schedule = topi.x86.schedule_depthwise_conv2d_NCHWc([made])
        assembly = tvm.build(schedule, [data, kernel, made], target).get_source("asm")
    assert assembly.count("vfmadd") > 20
    assert not re.findall(r"vmov\w+\s+%zmm\d+, -?\d*\(%r[sb]p", assembly)
