"""Products with sparse matrices, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from tests.topi.running import apply, evaluate
from tests.topi.scheduling import run

from tilewright import te, topi
from tilewright.compat import named_schedules
from tilewright.support.errors import OpAttributeInvalid

RANDOM = np.random.default_rng(67)


def sparse_matrix(rows: int, columns: int, block: tuple[int, int] | None) -> tuple[np.ndarray, ...]:
    """The dense matrix, and its values, columns and row starts; some rows are empty."""
    size = block or (1, 1)
    mask = RANDOM.random((rows // size[0], columns // size[1])) < 0.4
    mask[0] = False
    dense = RANDOM.standard_normal((rows, columns)) * np.kron(mask, np.ones(size))
    dense = dense.astype("float32")
    made = sp.csr_matrix(dense) if block is None else sp.bsr_matrix(dense, blocksize=block)
    return dense, made.data, made.indices.astype("int32"), made.indptr.astype("int32")


@pytest.mark.parametrize("block", [None, (2, 3), (4, 1)])
@pytest.mark.parametrize("sparse_lhs", [False, True])
def test_dense_products(block: tuple[int, int] | None, sparse_lhs: bool) -> None:
    """Rows of stored elements or of blocks, on either side, with empty rows."""
    data = RANDOM.standard_normal((5, 6)).astype("float32")
    weight, *parts = sparse_matrix(8, 6, block)
    made = apply(topi.nn.sparse_dense, data, *parts, sparse_lhs=sparse_lhs)
    expected = weight @ data.T if sparse_lhs else data @ weight.T
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("block", [None, (1, 3), (2, 3), (4, 1)])
def test_scheduled_dense_products(block: tuple[int, int] | None) -> None:
    """The rows that a reduction's length depends on stay outside of it, also where blocks have one row."""
    data = RANDOM.standard_normal((5, 6)).astype("float32")
    weight, *parts = sparse_matrix(8, 6, block)
    feeds = {
        te.placeholder(one.shape, str(one.dtype), name=f"p{number}"): one
        for number, one in enumerate((data, *parts))
    }
    (made,) = run(
        named_schedules.attributes("topi.x86")["schedule_sparse_dense"], topi.nn.sparse_dense(*feeds), feeds
    )
    np.testing.assert_allclose(made, data @ weight.T, rtol=1e-5, atol=1e-5)


def test_blocks_of_one_column_without_that_dimension() -> None:
    """Their values may be a matrix: the blocks and their rows."""
    data = RANDOM.standard_normal((5, 6)).astype("float32")
    weight, values, *parts = sparse_matrix(8, 6, (4, 1))
    made = apply(topi.nn.sparse_dense, data, values[:, :, 0], *parts)
    np.testing.assert_allclose(made, data @ weight.T, rtol=1e-5, atol=1e-5)


def test_any_number_of_elements() -> None:
    """How many elements are stored may be known only when the program runs."""
    data = RANDOM.standard_normal((2, 6)).astype("float32")
    weight, *parts = sparse_matrix(4, 6, None)
    count, batch = te.size_var("count"), te.size_var("m")
    feeds = {
        te.placeholder((batch, 6), name="x"): data,
        te.placeholder((count,), name="values"): parts[0],
        te.placeholder((count,), "int32", name="columns"): parts[1],
        te.placeholder((5,), "int32", name="starts"): parts[2],
    }
    made = evaluate(topi.nn.sparse_dense(*feeds), feeds)
    np.testing.assert_allclose(made, data @ weight.T, rtol=1e-5, atol=1e-5)


def test_transpose() -> None:
    """Columns become rows, in order."""
    dense, *parts = sparse_matrix(6, 6, None)
    made = apply(topi.nn.sparse_transpose, *parts)
    expected = sp.csr_matrix(dense.T)
    expected.sort_indices()
    np.testing.assert_array_equal(made[0], expected.data)
    np.testing.assert_array_equal(made[1], expected.indices)
    np.testing.assert_array_equal(made[2], expected.indptr)


def test_addition() -> None:
    """A dense matrix and a sparse one."""
    data = RANDOM.standard_normal((4, 6)).astype("float32")
    dense, *parts = sparse_matrix(4, 6, None)
    made = apply(topi.nn.sparse_add, data, *parts)
    np.testing.assert_allclose(made, data + dense, rtol=1e-6)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("taps", "block"), [(1, (4, 1)), (3, (2, 2)), (1, None)])
def test_convolution(layout: str, taps: int, block: tuple[int, int] | None) -> None:
    """A sparse kernel of one tap or nine, padded so that the image keeps its size."""
    data = RANDOM.standard_normal((2, 4, 3, 5)).astype("float32")
    weight, *parts = sparse_matrix(8, 4 * taps * taps, block)
    kernel = weight.reshape(8, taps, taps, 4).transpose(0, 3, 1, 2)
    expected = F.conv2d(torch.tensor(data), torch.tensor(kernel.copy()), padding=taps // 2).numpy()
    order = ["NCHW".index(letter) for letter in layout]
    made = apply(topi.nn.sparse_conv2d, data.transpose(order).copy(), *parts, layout=layout, kernel_size=taps)
    np.testing.assert_allclose(made, expected.transpose(order), rtol=1e-4, atol=1e-5)


def test_mistakes_are_refused() -> None:
    """Layouts and kernels that are not known."""
    data, values = te.placeholder((1, 2, 3, 3)), te.placeholder((4,))
    columns, starts = te.placeholder((4,), "int32"), te.placeholder((3,), "int32")
    with pytest.raises(OpAttributeInvalid, match="NHWC and NCHW"):
        topi.nn.sparse_conv2d(data, values, columns, starts, "HWCN")
    with pytest.raises(OpAttributeInvalid, match="odd kernel"):
        topi.nn.sparse_conv2d(data, values, columns, starts, "NCHW", 2)
