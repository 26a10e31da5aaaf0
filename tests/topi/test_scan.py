"""Running sums and products agree with NumPy."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, tir, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(8)
DATA = RANDOM.integers(-3, 4, (3, 4, 5)).astype("int32")


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize(("operator", "reference"), [(topi.cumsum, np.cumsum), (topi.cumprod, np.cumprod)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_scan(axis, operator, reference, symbolic):
    """Along an axis or over all elements."""
    result = apply(operator, DATA, axis=axis, symbolic=symbolic)
    np.testing.assert_array_equal(result, reference(DATA, axis=axis, dtype="int32"))


@pytest.mark.parametrize("axis", [0, 2])
def test_exclusive(axis):
    """The element itself is left out."""
    expected = np.cumsum(DATA, axis, dtype="int32") - DATA
    np.testing.assert_array_equal(apply(topi.cumsum, DATA, axis=axis, exclusive=True), expected)


def test_types():
    """The sum may have another type; bools count, and float16 is summed in float32."""
    np.testing.assert_array_equal(
        apply(topi.cumsum, np.full(4, 100, "int8"), dtype="int64"), [100, 200, 300, 400]
    )
    flags = np.array([True, False, True])
    counted = apply(topi.cumsum, flags)
    assert counted.dtype == "int32"
    np.testing.assert_array_equal(counted, [1, 1, 2])
    assert apply(topi.cumsum, np.ones(4096, "float16"))[-1] == 4096


def test_many_rows_side_by_side():
    """More rows than are computed together."""
    data = RANDOM.uniform(-1, 1, (5, 600)).astype("float32")
    np.testing.assert_allclose(apply(topi.cumsum, data, axis=0), np.cumsum(data, 0), rtol=1e-5, atol=1e-6)


def test_own_operation():
    """Any operation with an identity."""
    data = np.array([[3, 1, 4], [1, 5, 2]], "float32")
    result = apply(lambda x: topi.scanop(x, tir.max, tir.min_value("float32"), "cummax", axis=1), data)
    np.testing.assert_array_equal(result, np.maximum.accumulate(data, 1))


def test_edges():
    """No elements, and an axis that is not there."""
    assert apply(topi.cumsum, np.zeros((0, 3), "float32"), axis=0).shape == (0, 3)
    with pytest.raises(ExpressionError, match="axis 1 is outside"):
        topi.cumsum(te.placeholder((3,)), axis=1)
