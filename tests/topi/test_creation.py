"""Ranges of numbers, and tensors of one value."""

import numpy as np
import pytest
from tests.topi.running import apply, evaluate

import tilewright as tvm
from tilewright import te, topi
from tilewright.support.errors import ExpressionError

INTEGER_BOUNDS = [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (3, 3), (5, 2)]
REAL_BOUNDS = [(0, 1, 0.3), (1.5, -1.0, -0.5), (2.5,)]


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [(bounds, dtype) for bounds in INTEGER_BOUNDS for dtype in ("float32", "int32", "int64")]
    + [(bounds, dtype) for bounds in REAL_BOUNDS for dtype in ("float32", "float64")],
)
def test_arange(bounds, dtype):
    """Start, stop and step as in NumPy, in every type."""
    result = evaluate(topi.arange(*bounds, dtype=dtype), {})
    np.testing.assert_allclose(result, np.arange(*bounds, dtype=dtype), rtol=1e-6)


def test_arange_of_variables():
    """The ends may be variables."""
    start, stop = te.var("start"), te.var("stop")
    made = topi.arange(start, stop, 3, "int32")
    function = tvm.build(te.create_schedule(made.op), [start, stop, made], "llvm")
    for first, last in [(0, 10), (-4, 5), (7, 8)]:
        expected = np.arange(first, last, 3, dtype="int32")
        result = tvm.nd.empty(expected.shape, "int32")
        function(first, last, result)
        np.testing.assert_array_equal(result.numpy(), expected)


def test_a_step_of_zero_is_an_error():
    """No number of steps of zero gets anywhere."""
    with pytest.raises(ExpressionError, match="step is zero"):
        topi.arange(0, 5, 0)


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
