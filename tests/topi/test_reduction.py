"""Reductions agree with NumPy."""

import ml_dtypes
import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(2)
DATA = RANDOM.uniform(-2, 2, (3, 4, 5)).astype("float32")
NAMES = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "all": np.all,
    "any": np.any,
    "argmax": np.argmax,
    "argmin": np.argmin,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("axis", "keepdims"), [(None, False), (1, False), (-1, True), (0, False)])
def test_one_axis(name, axis, keepdims):
    """Each reduction over one axis or all, with and without the dimension kept."""
    data = np.trunc(DATA) if name in ("all", "any") else DATA
    result = apply(getattr(topi, name), data, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(result, NAMES[name](data, axis=axis, keepdims=keepdims), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "max"])
@pytest.mark.parametrize(("axis", "keepdims"), [((0, 2), False), ((-1, 1), True), ((0, 1, 2), True)])
def test_several_axes(name, axis, keepdims):
    """Several axes at once, in any order."""
    result = apply(getattr(topi, name), DATA, axis=axis, keepdims=keepdims, symbolic=True)
    np.testing.assert_allclose(result, NAMES[name](DATA, axis=axis, keepdims=keepdims), rtol=1e-5, atol=1e-6)


def test_argmax_over_several_axes_is_a_flat_position():
    """The position counts in row-major order of the reduced axes."""
    result = apply(topi.argmax, DATA, axis=(1, 2))
    np.testing.assert_array_equal(result, DATA.reshape(3, -1).argmax(axis=1))


def test_ties():
    """Of equal values the first position wins, or the last on request."""
    data = np.array([[1, 3, 3, 2], [5, 5, 5, 5]], "int32")
    np.testing.assert_array_equal(apply(topi.argmax, data, axis=1), [1, 0])
    np.testing.assert_array_equal(apply(topi.argmax, data, axis=1, select_last_index=True), [2, 3])
    np.testing.assert_array_equal(apply(topi.argmin, data, axis=1, select_last_index=True), [0, 3])


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_extremes_of_infinities(value):
    """Rows of infinities have an extreme and a position; the first NaN is the position, as in NumPy."""
    data = np.full((2, 3), value, "float32")
    np.testing.assert_array_equal(apply(topi.argmax, data, axis=1), [0, 0])
    np.testing.assert_array_equal(apply(topi.argmin, data, axis=1), [0, 0])
    if not np.isnan(value):
        np.testing.assert_array_equal(apply(topi.max, data, axis=1), data[:, 0])
        np.testing.assert_array_equal(apply(topi.min, data, axis=1), data[:, 0])


def test_position_of_nan():
    """The first NaN wins over every number."""
    data = np.array([1, np.nan, 9, np.nan], "float32")
    assert apply(topi.argmax, data) == 1
    assert apply(topi.argmin, data) == 1


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float64"])
def test_types(dtype):
    """Sums wrap in their type, and the ends of a type are found."""
    data = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    np.testing.assert_array_equal(apply(topi.sum, data, axis=1), [6, 15])
    lowest = np.full(3, 0 if dtype == "uint8" else -128, dtype)
    assert apply(topi.argmax, lowest) == 0
    assert apply(topi.max, lowest) == lowest[0]


def test_narrow_floats_are_added_in_float32():
    """4096 ones and small numbers in float16 do not get stuck, as they would if added in float16."""
    data = np.ones((1, 4096), "float16")
    result = apply(topi.sum, data, axis=1)
    assert result.dtype == "float16" and result[0] == 4096
    wide = np.full((2, 1000), 1.0, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(apply(topi.sum, wide, axis=1).astype("float32"), [1000, 1000])


def test_without_elements_and_without_dimensions():
    """The sum of nothing is zero; a tensor without dimensions is its own reduction."""
    np.testing.assert_array_equal(apply(topi.sum, np.zeros((2, 0), "float32"), axis=1), [0, 0])
    np.testing.assert_array_equal(apply(topi.prod, np.zeros((2, 0), "float32"), axis=1), [1, 1])
    assert apply(topi.max, np.float32(3.5)) == 3.5
    assert apply(topi.argmax, np.float32(3.5)) == 0
    with pytest.raises(ExpressionError, match="no values"):
        topi.max(te.placeholder((2, 0)), axis=1)


def test_collapse_sum():
    """Undoes a broadcast."""
    np.testing.assert_allclose(
        apply(topi.collapse_sum, DATA, target_shape=(4, 1)), DATA.sum(axis=(0, 2))[:, None], rtol=1e-5
    )
    np.testing.assert_array_equal(apply(topi.collapse_sum, DATA, target_shape=(3, 4, 5)), DATA)
    with pytest.raises(ExpressionError, match="not a broadcast"):
        topi.collapse_sum(te.placeholder((3, 4)), (3, 3))


def test_errors():
    """Axes are checked."""
    data = te.placeholder((2, 3))
    with pytest.raises(ExpressionError, match="axis 2 is outside"):
        topi.sum(data, axis=2)
    with pytest.raises(ExpressionError, match="repeated"):
        topi.sum(data, axis=(1, -1))
    with pytest.raises(ExpressionError, match="not bool"):
        topi.sum(te.placeholder((2,), "bool"))


def test_tags():
    """Reductions are known by their tags."""
    data = te.placeholder((2, 3))
    assert topi.sum(data, axis=1).op.tag == topi.tag.COMM_REDUCE
    assert topi.argmax(data, axis=1).op.tag == topi.tag.COMM_REDUCE_IDX
