"""Slices as Python makes them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.topi.running import apply, evaluate, inputs

import tilewright as tvm
from tilewright import te, topi
from tilewright.support.errors import ExpressionError
from tilewright.topi.utils import get_const_tuple

DATA = np.arange(60, dtype="float32").reshape(3, 4, 5)


def python_slices(begin, end, strides):
    return tuple(slice(*bounds) for bounds in zip(begin, end, strides, strict=True))


@pytest.mark.parametrize(
    ("begin", "end", "strides"),
    [
        ((0, 1, 2), (3, 4, 5), (1, 1, 1)),
        ((0, 0, 0), (100, -1, 4), (2, 1, 3)),
        ((-1, 3, -2), (-100, 0, -5), (-1, -2, -1)),
        ((1, 4, 0), (2, 1, 5), (1, 1, 1)),
        ((2, 1), (3, 4), (1, 2)),
    ],
)
def test_strided_slice(begin, end, strides):
    """Begin, end and stride of either sign, inside and outside of the tensor."""
    result = apply(topi.strided_slice, DATA, begin=begin, end=end, strides=strides)
    np.testing.assert_array_equal(result, DATA[python_slices(begin, end, strides)])


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 9), st.integers(-12, 12), st.integers(-12, 12), st.integers(-4, 4).filter(bool))
def test_extent_is_pythons(size, begin, end, stride):
    """The number of elements is that of Python's slice, for every bound."""
    made = topi.strided_slice(te.placeholder((size,)), [begin], [end], [stride])
    assert get_const_tuple(made.shape) == (len(range(size)[begin:end:stride]),)


@pytest.mark.parametrize("stride", [-2, -1, 1, 3])
def test_symbolic_bounds(stride):
    """Begin and end may be variables: their values are held inside of the tensor when the program runs."""
    begin, end = te.var("begin"), te.var("end")
    a = te.placeholder((te.size_var("n"),), name="a")
    sliced = topi.strided_slice(a, [begin], [end], [stride])
    function = tvm.build(te.create_schedule(sliced.op), [a, begin, end, sliced], "llvm")
    for size, first, last in itertools.product((1, 4), range(-6, 7), range(-6, 7)):
        data = np.arange(size, dtype="float32")
        expected = data[first:last:stride]
        result = tvm.nd.empty(expected.shape)
        function(tvm.nd.array(data), first, last, result)
        np.testing.assert_array_equal(result.numpy(), expected)


def test_axes_and_sizes():
    """Some axes only, and sizes in place of ends."""
    result = apply(topi.strided_slice, DATA, begin=(1, 0), end=(4, 2), axes=(-1, 0))
    np.testing.assert_array_equal(result, DATA[0:2, :, 1:4])
    result = apply(topi.strided_slice, DATA, begin=(1, 2, 0), end=(2, -1, 9), slice_mode="size")
    np.testing.assert_array_equal(result, DATA[1:3, 2:, :])


def test_unknown_dimensions():
    """A slice of an unknown dimension from its back."""
    result = apply(topi.strided_slice, DATA, begin=(0, -2), end=(-1, 100), symbolic=True)
    np.testing.assert_array_equal(result, DATA[:-1, -2:])


def test_bounds_in_tensors():
    """Bounds that are data: the caller's output says how many elements there are."""
    feeds = inputs(DATA, np.array([2, -3], "int64"), np.array([0, 4], "int64"), np.array([-1, 2], "int64"))
    a, begin, end, strides = feeds
    expected = DATA[2:0:-1, -3:4:2]
    result = evaluate(topi.strided_slice(a, begin, end, strides), feeds, shapes=[expected.shape])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("begin", "end", "strides"),
    [
        ((0, 1, 1), (2, 4, 5), None),
        ((2, 0, 0), (0, 4, 5), (-1, 2, 2)),
        ((-2,), (100,), (1,)),
        ((3,), (0,), (-2,)),
    ],
)
def test_strided_set(begin, end, strides):
    """What a slice selects is replaced, and nothing else."""
    where = python_slices(begin, end, strides or [1] * len(begin))
    values = -np.ones(DATA[where].shape, "float32") - np.arange(DATA[where].size).reshape(DATA[where].shape)
    expected = DATA.copy()
    expected[where] = values
    result = apply(topi.strided_set, DATA, values.astype("float32"), begin=begin, end=end, strides=strides)
    np.testing.assert_array_equal(result, expected)


def test_strided_set_by_tensors():
    """The bounds may be data."""
    values = np.full((2, 2, 5), -1, "float32")
    bounds = [np.array(v, "int32") for v in ([0, 3, 0], [2, 0, 5], [1, -2, 1])]
    expected = DATA.copy()
    expected[0:2, 3:0:-2] = values
    np.testing.assert_array_equal(apply(topi.strided_set, DATA, values, *bounds), expected)


@pytest.mark.parametrize(
    ("axis", "window", "strides"), [(1, (2, 3), (1, 2)), (2, (5,), (1,)), (0, (2, 2, 2), (1, 1, 1))]
)
def test_sliding_window(axis, window, strides):
    """Windows over the last axes."""
    axes = tuple(range(axis, 3))
    expected = np.lib.stride_tricks.sliding_window_view(DATA, window, axis=axes)
    steps = tuple(slice(None, None, step) for step in strides)
    expected = expected[(slice(None),) * axis + steps]
    result = apply(topi.sliding_window, DATA, axis=axis, window_shape=window, strides=strides)
    np.testing.assert_array_equal(result, expected)


def test_errors():
    """Bad bounds are told."""
    a = te.placeholder((3, 4))
    with pytest.raises(ExpressionError, match="none may be zero"):
        topi.strided_slice(a, [0], [2], [0])
    with pytest.raises(ExpressionError, match="slice_mode"):
        topi.strided_slice(a, [0], [2], slice_mode="middle")
    with pytest.raises(ExpressionError, match="axes of"):
        topi.strided_slice(a, [0, 0, 0], [1, 1, 1])
    with pytest.raises(ExpressionError, match="larger than the axis"):
        topi.sliding_window(a, 0, (4, 1), (1, 1))
