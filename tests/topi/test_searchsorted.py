"""Searching agrees with NumPy."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(10)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_one_sequence(right, dtype, symbolic):
    """One sequence for values of any shape, with equal elements and values at both ends."""
    sequence = np.sort(RANDOM.integers(0, 9, 20)).astype(dtype)
    values = RANDOM.integers(-2, 12, (3, 4)).astype(dtype)
    result = apply(topi.searchsorted, sequence, values, right=right, symbolic=symbolic)
    np.testing.assert_array_equal(result, np.searchsorted(sequence, values, "right" if right else "left"))
    assert result.dtype == "int64"


@pytest.mark.parametrize("right", [False, True])
def test_sequences_of_their_own(right):
    """The last axis of both is searched."""
    sequences = np.sort(RANDOM.integers(0, 9, (2, 3, 7)), axis=-1).astype("float32")
    values = RANDOM.integers(0, 9, (2, 3, 5)).astype("float32")
    expected = np.empty((2, 3, 5), "int32")
    for place in np.ndindex(2, 3):
        expected[place] = np.searchsorted(sequences[place], values[place], "right" if right else "left")
    np.testing.assert_array_equal(
        apply(topi.searchsorted, sequences, values, right=right, out_dtype="int32"), expected
    )


@pytest.mark.parametrize("right", [False, True])
def test_nan_comes_last(right):
    """NaN belongs behind every number, as it is sorted."""
    sequence = np.array([1, 2, np.inf, np.nan, np.nan], "float32")
    values = np.array([np.nan, np.inf, 3], "float32")
    np.testing.assert_array_equal(
        apply(topi.searchsorted, sequence, values, right=right),
        np.searchsorted(sequence, values, "right" if right else "left"),
    )


def test_errors():
    """Shapes and types must fit."""
    with pytest.raises(ExpressionError, match="differ before the last axis"):
        topi.searchsorted(te.placeholder((2, 3)), te.placeholder((3, 3)))
    with pytest.raises(ExpressionError, match="cannot be searched"):
        topi.searchsorted(te.placeholder((3,)), te.placeholder((3,), "int32"))
