"""Convolution with channels in blocks, and kernels rearranged for matrix products."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(11)


def in_blocks(array: np.ndarray, axis: int, block: int) -> np.ndarray:
    """One axis as two, the inner one moved to the end."""
    shape = list(array.shape)
    shape[axis : axis + 1] = [shape[axis] // block, block]
    return np.ascontiguousarray(np.moveaxis(array.reshape(shape), axis + 1, -1))


def reference(data: np.ndarray, kernel: np.ndarray, groups: int) -> np.ndarray:
    wide = torch.tensor(data.astype("float64")), torch.tensor(kernel.astype("float64"))
    return F.conv2d(*wide, stride=2, padding=1, groups=groups).numpy()


@pytest.mark.parametrize(("in_block", "out_block", "groups"), [(4, 2, 1), (2, 4, 1), (2, 2, 2)])
def test_blocked_convolution(in_block: int, out_block: int, groups: int) -> None:
    """Blocks of input and output channels may differ; fewer input blocks in the kernel make groups."""
    data = RANDOM.standard_normal((1, 8, 6, 5)).astype("float32")
    kernel = RANDOM.standard_normal((8, 8 // groups, 3, 3)).astype("float32")
    packed = in_blocks(in_blocks(kernel, 1, in_block), 0, out_block)
    made = apply(
        topi.nn.conv2d_NCHWc,
        in_blocks(data, 1, in_block),
        packed,
        stride=2,
        padding=1,
        dilation=1,
        layout=f"NCHW{in_block}c",
        out_layout=f"NCHW{out_block}c",
    )
    expected = in_blocks(reference(data, kernel, groups), 1, out_block)
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)
    back = apply(topi.nn.unpack_NCHWc_to_nchw, made, out_dtype="float64")
    np.testing.assert_allclose(back, reference(data, kernel, groups), rtol=1e-5, atol=1e-5)


def test_blocked_convolution_of_bytes() -> None:
    """Four products to a lane, added in int32."""
    data = RANDOM.integers(0, 255, (1, 8, 5, 5)).astype("uint8")
    kernel = RANDOM.integers(-128, 127, (4, 8, 3, 3)).astype("int8")
    lanes = in_blocks(in_blocks(in_blocks(kernel, 1, 4), 1, 2), 0, 4)
    # (output blocks, input blocks, kh, kw, part, lane, output) -> (..., lane, output, part)
    packed = np.ascontiguousarray(lanes.transpose(0, 1, 2, 3, 5, 6, 4))
    made = apply(
        topi.nn.conv2d_NCHWc_int8,
        in_blocks(data, 1, 8),
        packed,
        stride=2,
        padding=1,
        dilation=1,
        layout="NCHW8c",
        out_layout="NCHW4c",
    )
    expected = in_blocks(reference(data, kernel, 1), 1, 4)
    assert made.dtype == np.int32
    np.testing.assert_array_equal(made, expected.astype("int32"))


def test_tiles_of_a_kernel() -> None:
    """The kernel as a matrix, transposed into tiles, with zeros up to whole tiles."""
    kernel = RANDOM.standard_normal((1, 3, 2, 5)).astype("float32")
    made = apply(topi.nn.conv2d_gemm_weight_transform, kernel, tile_rows=4, tile_cols=2)
    assert made.shape == (2, 4, 4, 2)
    matrix = np.zeros((8, 8), "float32")
    matrix[:5, :6] = kernel.reshape(6, 5).T
    np.testing.assert_array_equal(made.transpose(0, 2, 1, 3).reshape(8, 8), matrix)


def test_defaults_of_the_graph_compiler() -> None:
    """Without a target that says otherwise, calls stay as they are."""
    assert topi.nn.conv2d_legalize(None, None, None) is None
    assert topi.nn.conv2d_alter_layout(None, None, None, None) is None


def test_mistakes_are_refused() -> None:
    """Blocks that differ between data and kernel, and groups that do not divide."""
    data = te.placeholder((1, 3, 6, 5, 4))
    with pytest.raises(InvalidShapeError, match="must be equal"):
        topi.nn.conv2d_NCHWc(data, te.placeholder((2, 3, 3, 3, 2, 4)), 1, 1, 1, "NCHW4c", "NCHW4c")
    with pytest.raises(InvalidShapeError, match="cannot be divided into groups of 2"):
        topi.nn.conv2d_NCHWc(data, te.placeholder((2, 2, 3, 3, 4, 4)), 1, 1, 1, "NCHW4c", "NCHW4c")
    with pytest.raises(InvalidShapeError, match="a kernel of 6"):
        topi.nn.conv2d_NCHWc(data, te.placeholder((2, 3, 3, 3)), 1, 1, 1, "NCHW4c", "NCHW4c")
