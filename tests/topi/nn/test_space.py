"""Blocks of space moved into channels or the batch and back, and other moves, against NumPy and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import InvalidShapeError

DATA = np.arange(1 * 8 * 4 * 6, dtype="float32").reshape(1, 8, 4, 6)


def blocks_to_channels(data: np.ndarray, block: int) -> np.ndarray:
    n, c, h, w = data.shape
    split = data.reshape(n, c, h // block, block, w // block, block)
    return split.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * block * block, h // block, w // block)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_space_to_depth_and_back(layout: str, symbolic: bool) -> None:
    """Blocks lead the channels, and depth_to_space in mode DCR undoes it."""
    order = ["NCHW".index(letter) for letter in layout]
    expected = blocks_to_channels(DATA, 2).transpose(order)
    given = DATA.transpose(order).copy()
    made = apply(topi.nn.space_to_depth, given, block_size=2, layout=layout, symbolic=symbolic)
    np.testing.assert_array_equal(made, expected)
    back = apply(topi.nn.depth_to_space, made, block_size=2, layout=layout, symbolic=symbolic)
    np.testing.assert_array_equal(back, given)


def test_depth_to_space_with_channels_first() -> None:
    """The mode CRD is PyTorch's pixel shuffle."""
    made = apply(topi.nn.depth_to_space, DATA, block_size=2, mode="CRD")
    np.testing.assert_array_equal(made, F.pixel_shuffle(torch.tensor(DATA), 2).numpy())


@pytest.mark.parametrize(
    ("block", "before", "after"), [((2, 2), (0, 0), (0, 0)), ((3, 2), (1, 0), (1, 2)), ((2,), (1,), (1,))]
)
def test_space_to_batch_and_back(block: Any, before: Any, after: Any) -> None:
    """The place in a block leads the batch, and batch_to_space_nd undoes it and crops."""
    data = np.arange(2 * 4 * 6 * 3, dtype="float32").reshape(2, 4, 6, 3)
    count = len(block)
    pads = [(0, 0), *zip(before, after, strict=True), *[(0, 0)] * (3 - count)]
    padded = np.pad(data, pads, constant_values=9)
    split = [2]
    for extent, size in zip(padded.shape[1 : 1 + count], block, strict=True):
        split += [extent // size, size]
    split += padded.shape[1 + count :]
    axes = [2 * i + 2 for i in range(count)] + [0] + [2 * i + 1 for i in range(count)]
    axes += list(range(1 + 2 * count, len(split)))
    moved = padded.reshape(split).transpose(axes)
    sizes = [padded.shape[1 + axis] // block[axis] for axis in range(count)]
    expected = moved.reshape(2 * int(np.prod(block)), *sizes, *padded.shape[1 + count :])
    made = apply(
        topi.nn.space_to_batch_nd, data, block_shape=block, pad_before=before, pad_after=after, pad_value=9
    )
    np.testing.assert_array_equal(made, expected)
    back = apply(
        topi.nn.batch_to_space_nd, made, block_shape=block, crop_begin_list=before, crop_end_list=after
    )
    np.testing.assert_array_equal(back, data)


@pytest.mark.parametrize("symbolic", [False, True])
def test_flatten(symbolic: bool) -> None:
    """All dimensions but the first become one."""
    np.testing.assert_array_equal(apply(topi.nn.flatten, DATA, symbolic=symbolic), DATA.reshape(1, -1))
    line = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(apply(topi.nn.flatten, line), line.reshape(3, 1))


@pytest.mark.parametrize("symbolic", [False, True])
def test_dilate(symbolic: bool) -> None:
    """Neighbours stand apart, with a value between them."""
    data = np.arange(1, 7, dtype="float32").reshape(2, 3)
    made = apply(topi.nn.dilate, data, strides=(1, 3), dilation_value=-1.0, symbolic=symbolic)
    expected = np.full((2, 7), -1, "float32")
    expected[:, ::3] = data
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_fifo_buffer(axis: int) -> None:
    """Old elements leave at the front, new ones enter at the end."""
    buffer = np.arange(12, dtype="float32").reshape(4, 3)
    data = -np.ones((1, 3) if axis == 0 else (4, 1), "float32")
    made = apply(topi.nn.fifo_buffer, data, buffer, axis=axis)
    kept = buffer[1:] if axis == 0 else buffer[:, 1:]
    np.testing.assert_array_equal(made, np.concatenate([kept, data], axis=axis))


@pytest.mark.parametrize(
    ("operator", "shape", "channel"),
    [
        (topi.nn.scale_shift_nchw, (2, 3, 4, 4), (1, 3, 1, 1)),
        (topi.nn.scale_shift_nhwc, (2, 4, 4, 3), (1, 1, 1, 3)),
        (topi.nn.scale_shift_nchwc, (2, 3, 4, 4, 2), (1, 3, 1, 1, 2)),
    ],
)
def test_scale_and_shift(operator: Any, shape: tuple[int, ...], channel: tuple[int, ...]) -> None:
    """One scale and one shift for each channel."""
    random = np.random.default_rng(59)
    data = random.random(shape).astype("float32")
    scale, shift = random.random(channel).astype("float32"), random.random(channel).astype("float32")
    axes = tuple(axis for axis, extent in enumerate(channel) if extent == 1)
    made = apply(operator, data, scale.squeeze(axes), shift.squeeze(axes))
    np.testing.assert_allclose(made, data * scale + shift, rtol=1e-6)


def test_mistakes_are_refused() -> None:
    """Blocks that do not divide, and layouts that are not known."""
    data = te.placeholder((1, 3, 5, 6))
    with pytest.raises(InvalidShapeError, match="blocks of 2"):
        topi.nn.space_to_depth(data, 2)
    with pytest.raises(InvalidShapeError, match="3 channels are not a multiple of 4"):
        topi.nn.depth_to_space(data, 2)
    with pytest.raises(OpAttributeInvalid, match="NCHW and NHWC"):
        topi.nn.space_to_depth(data, 1, "HWCN")
    with pytest.raises(OpAttributeInvalid, match="DCR and CDR"):
        topi.nn.depth_to_space(data, 1, mode="RCD")
    with pytest.raises(InvalidShapeError, match="not a multiple of 2"):
        topi.nn.space_to_batch_nd(data, (2,), (0,), (0,))
    with pytest.raises(InvalidShapeError, match="a batch of 1"):
        topi.nn.batch_to_space_nd(data, (2,), (0,), (0,))
    with pytest.raises(InvalidShapeError, match="one stride for each"):
        topi.nn.dilate(data, (1, 2))
