"""Positions of what is not zero agree with NumPy."""

import numpy as np
import pytest
from tests.topi.running import evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(12)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (2, 2, 2, 3), (2, 1, 2, 2, 3)])
@pytest.mark.parametrize("dtype", ["bool", "float32"])
def test_argwhere(shape, dtype):
    """Index vectors in row-major order, for up to five dimensions and by their own names."""
    condition = RANDOM.integers(0, 2, shape).astype(dtype)
    feeds = inputs(condition, symbolic=True)
    (tensor,) = feeds
    expected = np.argwhere(condition)
    rows = te.size_var("rows")
    for operator in (topi.argwhere, getattr(topi, f"hybrid_argwhere_{len(shape)}d")):
        result = evaluate(operator((rows, len(shape)), tensor), feeds, shapes=[expected.shape])
        np.testing.assert_array_equal(result, expected)


def test_no_more_rows_than_asked():
    """Rows that the caller has no room for are not written."""
    condition = np.ones(5, "bool")
    feeds = inputs(condition)
    (tensor,) = feeds
    np.testing.assert_array_equal(evaluate(topi.argwhere((2, 1), tensor), feeds), [[0], [1]])


def test_the_shape_of_a_tensor():
    """A tensor in the place of the shape gives its own, as TVM takes it."""
    condition = np.array([0, 3, 0, 5], "int32")
    feeds = inputs(condition)
    (tensor,) = feeds
    like = te.placeholder((2, 1), name="like", dtype="int32")
    np.testing.assert_array_equal(evaluate(topi.argwhere(like, tensor), feeds), [[1], [3]])


def test_errors():
    """The result is a matrix, and the named forms take their own number of dimensions."""
    with pytest.raises(ExpressionError, match="result of argwhere is a matrix"):
        topi.argwhere((3,), te.placeholder((3,)))
    with pytest.raises(ExpressionError, match="hybrid_argwhere_2d"):
        topi.hybrid_argwhere_2d((3, 1), te.placeholder((3,)))
