"""Different values agree with NumPy's unique."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("dtype", ["int32", "float32", "int64"])
@pytest.mark.parametrize("length", [8, 150])
@pytest.mark.parametrize("symbolic", [False, True])
def test_sorted(dtype, length, symbolic):
    """Values in ascending order, their first positions, the number of each element, and counts."""
    data = RANDOM.integers(-9, 9, length).astype(dtype)
    values, firsts, numbers, total, counts = apply(topi.unique, data, return_counts=True, symbolic=symbolic)
    expected = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    assert total.tolist() == [len(expected[0])]
    np.testing.assert_array_equal(values[: total[0]], expected[0])
    np.testing.assert_array_equal(firsts[: total[0]], expected[1])
    np.testing.assert_array_equal(numbers, expected[2])
    np.testing.assert_array_equal(counts[: total[0]], expected[3])
    assert not values[total[0] :].any()


def test_in_order_of_appearance():
    """Values as they first come."""
    data = np.array([4, 5, 1, 2, 3, 3, 4, 5], "int32")
    values, firsts, numbers, total = apply(topi.unique, data, is_sorted=False)
    assert total.tolist() == [5]
    assert values[:5].tolist() == [4, 5, 1, 2, 3]
    assert firsts[:5].tolist() == [0, 1, 2, 3, 4]
    assert numbers.tolist() == [0, 1, 2, 3, 4, 4, 0, 1]


def test_special_numbers():
    """Both zeros are one value, and so are all NaN."""
    data = np.array([np.nan, 0.0, -0.0, np.nan, 1.0], "float32")
    values, _, numbers, total, counts = apply(topi.unique, data, return_counts=True)
    assert total.tolist() == [3]
    np.testing.assert_array_equal(values[:3], [0, 1, np.nan])
    assert numbers.tolist() == [2, 0, 0, 2, 1]
    assert counts[:3].tolist() == [2, 1, 2]


def test_edges():
    """Nothing has no values; a matrix is refused."""
    assert apply(topi.unique, np.zeros(0, "int32"))[3].tolist() == [0]
    with pytest.raises(ExpressionError, match="takes a vector"):
        topi.unique(te.placeholder((2, 2)))
