"""cuBLAS and cuDNN: products and softmax on a GPU, and what is said where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.contrib import cublas, cudnn

GENERATOR = np.random.default_rng(0)
NEEDS_GPU = pytest.mark.skipif(not tvm.cuda(0).exist, reason="there is no NVIDIA GPU here")


def on_gpu(values: Any) -> Any:
    """A copy on the GPU."""
    return tvm.nd.array(values, tvm.cuda(0))


@pytest.mark.gpu
@NEEDS_GPU
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("flags", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_products(dtype: str, flags: tuple[int, int]) -> None:
    """Products of matrices, and of rows of them, with either side transposed."""
    rows, columns, inner, batch = 17, 33, 48, 3
    left = GENERATOR.uniform(-1, 1, (batch, inner, rows) if flags[0] else (batch, rows, inner)).astype(dtype)
    right = GENERATOR.uniform(-1, 1, (batch, columns, inner) if flags[1] else (batch, inner, columns)).astype(
        dtype
    )
    expected = (left.swapaxes(1, 2) if flags[0] else left).astype("float64") @ (
        right.swapaxes(1, 2) if flags[1] else right
    ).astype("float64")
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    made = on_gpu(np.zeros(expected.shape, dtype))
    tvm.get_global_func("tvm.contrib.cublas.batch_matmul")(on_gpu(left), on_gpu(right), made, *flags)
    np.testing.assert_allclose(made.numpy(), expected, rtol=tolerance, atol=tolerance)
    single = on_gpu(np.zeros(expected.shape[1:], dtype))
    tvm.get_global_func("tvm.contrib.cublas.matmul")(on_gpu(left[0]), on_gpu(right[0]), single, *flags)
    np.testing.assert_allclose(single.numpy(), expected[0], rtol=tolerance, atol=tolerance)


@pytest.mark.gpu
@NEEDS_GPU
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int) -> None:
    """Along any axis."""
    assert cudnn.exists()
    values = GENERATOR.normal(size=(4, 5, 6)).astype("float32")
    made = on_gpu(np.zeros_like(values))
    tvm.get_global_func("tvm.contrib.cudnn.softmax.forward")(on_gpu(values), made, axis)
    expected = np.exp(values) / np.exp(values).sum(axis, keepdims=True)
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5)


def test_arrays_elsewhere() -> None:
    """An array that is not on a GPU is refused before anything is loaded."""
    values = tvm.nd.array(np.zeros((2, 2), "float32"))
    with pytest.raises(ValueError, match="arrays on an NVIDIA GPU, not on cpu"):
        tvm.get_global_func("tvm.contrib.cublas.matmul")(values, values, values)


def test_expressions() -> None:
    """The operations in a tensor expression have the shapes and types of their results."""
    left, right = te.placeholder((4, 5), dtype="int8"), te.placeholder((7, 5), dtype="int8")
    made = cublas.matmul(left, right, transb=True, dtype="int32")
    assert [int(extent) for extent in made.shape] == [4, 7] and made.dtype == "int32"
    batched = cublas.batch_matmul(te.placeholder((2, 3, 4)), te.placeholder((2, 4, 6)))
    assert [int(extent) for extent in batched.shape] == [2, 3, 6]
    assert cudnn.softmax(made).shape == made.shape
