"""Pooling over windows, against PyTorch or a window at a time in NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(29)


def pooled(
    data: np.ndarray,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    pool_type: str,
    ceil_mode: bool,
    count_include_pad: bool,
) -> np.ndarray:
    """Every window by itself; what lies beyond the padding is never counted."""
    count = len(kernel)
    before, after = padding[:count], padding[count:]
    sizes = []
    for axis in range(count):
        room = data.shape[2 + axis] + before[axis] + after[axis] - (kernel[axis] - 1) * dilation[axis] - 1
        sizes.append((math.ceil if ceil_mode else math.floor)(room / stride[axis]) + 1)
    result = np.zeros((*data.shape[:2], *sizes))
    for place in itertools.product(*[range(size) for size in sizes]):
        inside, padded = [], 0
        for tap in itertools.product(*[range(extent) for extent in kernel]):
            at = [
                place[axis] * stride[axis] + tap[axis] * dilation[axis] - before[axis]
                for axis in range(count)
            ]
            extents = data.shape[2:]
            if all(0 <= index < extent for index, extent in zip(at, extents, strict=True)):
                inside.append(data[(slice(None), slice(None), *at)])
            if all(index < extents[axis] + after[axis] for axis, index in enumerate(at)):
                padded += 1
        values = np.array(inside, "float64")
        where = (slice(None), slice(None), *place)
        if pool_type == "max":
            result[where] = values.max(axis=0)
        else:
            result[where] = values.sum(axis=0) / (padded if count_include_pad else len(inside))
    return result


CASES = [
    ((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), False),
    ((3, 2), (2, 1), (1, 1), (1, 0, 1, 1), False),
    ((3, 3), (2, 2), (1, 1), (1, 1, 1, 1), True),
    ((2, 3), (1, 2), (2, 1), (1, 1, 0, 1), False),
    ((2, 2), (3, 2), (2, 2), (0, 1, 1, 1), True),
]


KINDS = [("max", True), ("avg", True), ("avg", False)]


@pytest.mark.parametrize(("kernel", "stride", "dilation", "padding", "ceil_mode"), CASES)
def test_two_dimensions(kernel: Any, stride: Any, dilation: Any, padding: Any, ceil_mode: bool) -> None:
    """Any stride, dilation and padding; sizes rounded down or up; padding counted or not."""
    feeds = inputs(RANDOM.standard_normal((1, 2, 7, 8)).astype("float32"))
    ((data, values),) = feeds.items()
    outputs = [
        topi.nn.pool2d(data, kernel, stride, dilation, padding, pool_type, ceil_mode, "NCHW", include)
        for pool_type, include in KINDS
    ]
    for made, (pool_type, include) in zip(evaluate(outputs, feeds), KINDS, strict=True):
        expected = pooled(values, kernel, stride, dilation, padding, pool_type, ceil_mode, include)
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("pool_type", "include"), KINDS)
def test_layouts(pool_type: str, include: bool) -> None:
    """NHWC and channels in blocks give the same."""
    data = RANDOM.standard_normal((1, 4, 6, 5)).astype("float32")
    expected = pooled(data, (3, 2), (2, 2), (1, 1), (1, 0, 1, 1), pool_type, False, include)
    options = {
        "kernel": (3, 2),
        "stride": (2, 2),
        "dilation": (1, 1),
        "padding": (1, 0, 1, 1),
        "pool_type": pool_type,
        "count_include_pad": include,
    }
    nhwc = apply(topi.nn.pool2d, data.transpose(0, 2, 3, 1).copy(), layout="NHWC", **options)
    np.testing.assert_allclose(nhwc, expected.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-6)
    blocked = data.reshape(1, 2, 2, 6, 5).transpose(0, 1, 3, 4, 2).copy()
    made = apply(topi.nn.pool2d, blocked, layout="NCHW2c", **options)
    np.testing.assert_allclose(
        made.transpose(0, 1, 4, 2, 3).reshape(expected.shape), expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("pool_type", ["max", "avg"])
def test_one_and_three_dimensions(pool_type: str) -> None:
    """Signals and volumes."""
    line = RANDOM.standard_normal((2, 3, 9)).astype("float32")
    wide = torch.tensor(line.astype("float64"))
    expected = F.max_pool1d(wide, 3, 2, 1) if pool_type == "max" else F.avg_pool1d(wide, 3, 2, 1)
    made = apply(topi.nn.pool1d, line, kernel=3, stride=2, dilation=1, padding=(1, 1), pool_type=pool_type)
    np.testing.assert_allclose(made, expected.numpy(), rtol=1e-5, atol=1e-6)
    volume = RANDOM.standard_normal((1, 2, 4, 5, 6)).astype("float32")
    wide = torch.tensor(volume.astype("float64"))
    if pool_type == "max":
        expected = F.max_pool3d(wide, (2, 3, 2), (1, 2, 2), (1, 1, 0))
    else:
        expected = F.avg_pool3d(wide, (2, 3, 2), (1, 2, 2), (1, 1, 0), count_include_pad=False)
    made = apply(
        topi.nn.pool3d,
        volume,
        kernel=(2, 3, 2),
        stride=(1, 2, 2),
        dilation=1,
        padding=(1, 1, 0, 1, 1, 0),
        pool_type=pool_type,
        count_include_pad=False,
    )
    np.testing.assert_allclose(made, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_symbolic_sizes() -> None:
    """Height and width may be known only when the program runs."""
    height, width = te.size_var("h"), te.size_var("w")
    data = te.placeholder((1, 2, height, width))
    result = topi.nn.pool2d(
        data, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "avg", ceil_mode=True, count_include_pad=False
    )
    values = RANDOM.standard_normal((1, 2, 6, 7)).astype("float32")
    expected = pooled(values, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "avg", True, False)
    np.testing.assert_allclose(evaluate(result, {data: values}), expected, rtol=1e-5, atol=1e-6)


def test_types() -> None:
    """Half floats add in float32; integers stay integers, and padding never is the largest of them."""
    ones = np.ones((1, 1, 64, 64), "float16")
    made = apply(topi.nn.pool2d, ones, kernel=64, stride=1, dilation=1, padding=(0, 0, 0, 0), pool_type="avg")
    assert made.dtype == np.float16 and made.item() == 1.0
    lowest = np.full((1, 1, 2, 2), -100, "int8")
    made = apply(
        topi.nn.pool2d, lowest, kernel=2, stride=2, dilation=1, padding=(1, 1, 1, 1), pool_type="max"
    )
    assert made.dtype == np.int8 and made.ravel().tolist() == [-100] * 4


def test_tags() -> None:
    """A maximum is one stage; an average a sum and an element-wise division."""
    data = te.placeholder((1, 2, 6, 6))
    largest = topi.nn.pool2d(data, 2, 2, 1, 0, "max")
    assert largest.op.tag == "pool_max"
    average = topi.nn.pool2d(data, 2, 2, 1, 0, "avg")
    assert average.op.tag == "elemwise"
    assert average.op.input_tensors[0].op.tag == "pool_sum"


def test_mistakes_are_refused() -> None:
    """Unknown kinds, windows that do not fit, layouts without the axes."""
    data = te.placeholder((1, 2, 6, 6))
    with pytest.raises(OpAttributeInvalid, match="max"):
        topi.nn.pool2d(data, 2, 2, 1, 0, "min")
    with pytest.raises(InvalidShapeError, match="along H"):
        topi.nn.pool2d(data, 7, 2, 1, 0, "max")
    with pytest.raises(OpAttributeInvalid, match="must not be split"):
        topi.nn.pool2d(te.placeholder((1, 2, 3, 6, 2)), 2, 2, 1, 0, "max", layout="NCHW2h")
