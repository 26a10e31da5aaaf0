"""Filled tensors and sums of many."""

import numpy as np
import pytest
from tests.topi.running import apply, evaluate

from tilewright import te, topi
from tilewright.support.errors import ExpressionError


def test_elemwise_sum():
    """The sum of any number of tensors of one shape."""
    arrays = [np.full((2, 3), value, "float32") for value in (1, 2, 4)]
    np.testing.assert_array_equal(apply(lambda *xs: topi.elemwise_sum(xs), *arrays), np.full((2, 3), 7))
    with pytest.raises(ExpressionError, match="differ"):
        topi.elemwise_sum([te.placeholder((2,)), te.placeholder((3,))])
    with pytest.raises(ExpressionError, match="one tensor or more"):
        topi.elemwise_sum([])


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "uint64"])
def test_full(dtype):
    """A tensor of one value in every type."""
    np.testing.assert_array_equal(evaluate(topi.full((2, 2), dtype, 1), {}), np.ones((2, 2), dtype))


def test_full_like_and_full_of_a_tensor():
    """The shape and type of another tensor; the value may be a tensor of one element."""
    np.testing.assert_array_equal(
        apply(lambda x: topi.full_like(x, 3), np.zeros((3,), "int32")), np.full(3, 3, "int32")
    )
    value = np.float32(2.5)
    np.testing.assert_array_equal(apply(lambda x: topi.full((2,), "float64", x), value), [2.5, 2.5])
