"""Values put in the places that data name."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError


def test_invert_permutation():
    """The inverse of a permutation sorts it."""
    order = np.random.default_rng(7).permutation(9).astype("int64")
    np.testing.assert_array_equal(apply(topi.invert_permutation, order), np.argsort(order))
    with pytest.raises(ExpressionError, match="takes a vector"):
        topi.invert_permutation(te.placeholder((2, 2), "int32"))


@pytest.mark.parametrize(
    ("indices", "shape", "values"),
    [
        (np.int32(2), (4,), np.float32(5)),
        (np.array([0, 3, 1], "int32"), (5,), np.array([7, 8, 9], "float32")),
        (np.array([0, 3], "int32"), (5,), np.float32(7)),
        (np.array([[0, 1], [2, 3]], "int64"), (3, 4), np.array([7, 8], "float32")),
    ],
)
def test_sparse_to_dense(indices, shape, values):
    """One index, a vector of them, or index vectors; one value or one each."""
    expected = np.full(shape, -1, "float32")
    expected[tuple(indices.T) if indices.ndim == 2 else indices] = values
    result = apply(lambda i, v: topi.sparse_to_dense(i, shape, v, -1), indices, values)
    np.testing.assert_array_equal(result, expected)


def test_sparse_to_dense_edges():
    """The default may be data, and indices outside are left out."""
    result = apply(
        lambda i, v, d: topi.sparse_to_dense(i, (3,), v, d),
        np.array([1, 5], "int32"),
        np.array([4, 6], "float32"),
        np.float32(2),
    )
    np.testing.assert_array_equal(result, [2, 4, 2])
    with pytest.raises(ExpressionError, match="do not index"):
        topi.sparse_to_dense(te.placeholder((3, 2), "int32"), (4,), te.placeholder((3,)))
