"""Sparse tensors in other shapes."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError


@pytest.mark.parametrize("new_shape", [(9, 4), (9, -1), (-1, 4), (2, 3, 6), (36,), (-1,)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sparse_reshape(new_shape, dtype):
    """Index vectors follow their elements, and -1 is computed."""
    old_shape = (2, 3, 6)
    indices = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]], dtype)
    flat = np.ravel_multi_index(tuple(indices.T), old_shape)
    shape = np.empty(36).reshape(new_shape).shape
    made, found = apply(
        lambda i, old, new: topi.sparse_reshape(i, old, new, (5, len(new_shape)), (len(new_shape),)),
        indices,
        np.array(old_shape, dtype),
        np.array(new_shape, dtype),
    )
    np.testing.assert_array_equal(found, shape)
    np.testing.assert_array_equal(made, np.stack(np.unravel_index(flat, shape), 1))


def test_errors():
    """Indices are rows, shapes are vectors."""
    vector = te.placeholder((3,), "int32")
    with pytest.raises(ExpressionError, match="rows of indices"):
        topi.sparse_reshape(vector, vector, vector, (3, 3), (3,))
