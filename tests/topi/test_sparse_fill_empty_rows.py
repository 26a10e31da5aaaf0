"""Sparse tensors get an element in every empty row."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError


def filled(indices, values, shape, default):
    """The result, given how many rows are empty."""
    empty = shape[0] - len(set(indices[:, 0].tolist()))
    size = len(values) + empty
    return apply(
        lambda i, v, s, d: topi.sparse_fill_empty_rows(i, v, s, d, (size, len(shape)), (size,), (shape[0],)),
        indices,
        values,
        np.array(shape, indices.dtype),
        np.array([default], values.dtype),
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rows_between(dtype):
    """Empty rows at the beginning, between and at the end."""
    indices = np.array([[1, 1], [1, 3], [3, 0], [3, 2]], dtype)
    values = np.array([1, 2, 3, 4], "float32")
    new_indices, new_values, empty = filled(indices, values, (6, 4), 10)
    np.testing.assert_array_equal(
        new_indices, [[0, 0], [1, 1], [1, 3], [2, 0], [3, 0], [3, 2], [4, 0], [5, 0]]
    )
    np.testing.assert_array_equal(new_values, [10, 1, 2, 10, 3, 4, 10, 10])
    np.testing.assert_array_equal(empty, [True, False, True, False, True, True])


def test_rows_out_of_order_and_more_dimensions():
    """Rows come out in order, elements of one row in theirs."""
    indices = np.array([[2, 1, 0], [0, 0, 1], [2, 0, 0]], "int32")
    new_indices, new_values, empty = filled(indices, np.array([5, 6, 7], "int32"), (3, 2, 2), -1)
    np.testing.assert_array_equal(new_indices, [[0, 0, 1], [1, 0, 0], [2, 1, 0], [2, 0, 0]])
    np.testing.assert_array_equal(new_values, [6, -1, 5, 7])
    np.testing.assert_array_equal(empty, [False, True, False])


def test_nothing_at_all():
    """A tensor without elements gets one in every row."""
    new_indices, new_values, empty = filled(np.zeros((0, 2), "int32"), np.zeros(0, "float32"), (2, 3), 4)
    np.testing.assert_array_equal(new_indices, [[0, 0], [1, 0]])
    np.testing.assert_array_equal(new_values, [4, 4])
    assert empty.all()


def test_errors():
    """Indices are rows."""
    vector = te.placeholder((3,), "int32")
    with pytest.raises(ExpressionError, match="rows of indices"):
        topi.sparse_fill_empty_rows(vector, vector, vector, vector, (3, 1), (3,), (3,))
