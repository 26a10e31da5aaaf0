"""Joining and splitting as NumPy does."""

import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

DATA = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_concatenate(axis, symbolic):
    """Tensors of different sizes along one axis, one of them empty."""
    other = np.take(DATA, [0, 1, 1], axis=axis) + 100
    empty = np.take(DATA, [], axis=axis).astype("float32")
    result = apply(lambda *xs: topi.concatenate(xs, axis), DATA, empty, other, symbolic=symbolic)
    np.testing.assert_array_equal(result, np.concatenate([DATA, empty, other], axis))


def test_concatenate_errors():
    """Types, dimensions and other axes must agree."""
    with pytest.raises(ExpressionError, match="differ on axis 1"):
        topi.concatenate([te.placeholder((2, 3)), te.placeholder((2, 4))], 0)
    with pytest.raises(ExpressionError, match="float32 and int32"):
        topi.concatenate([te.placeholder((2,)), te.placeholder((2,), "int32")])
    with pytest.raises(ExpressionError, match="differ in dimensions"):
        topi.concatenate([te.placeholder((2,)), te.placeholder((2, 3))])
    with pytest.raises(ExpressionError, match="one tensor or more"):
        topi.concatenate([])


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_stack(axis):
    """A new axis; tensors without dimensions make a vector."""
    result = apply(lambda *xs: topi.stack(xs, axis), DATA, DATA + 1, DATA + 2)
    np.testing.assert_array_equal(result, np.stack([DATA, DATA + 1, DATA + 2], axis))
    scalars = apply(lambda *xs: topi.stack(xs, 0), np.float32(1), np.float32(2))
    np.testing.assert_array_equal(scalars, [1, 2])


@pytest.mark.parametrize(("parts", "axis"), [(2, -1), (3, 1), ([1, 3], 2), ([0, 2], 1), ((1,), 0)])
def test_split(parts, axis):
    """Equal parts, or parts that end at indices."""
    feeds = inputs(DATA)
    (a,) = feeds
    results = evaluate(topi.split(a, parts, axis), feeds)
    for result, expected in zip(results, np.split(DATA, parts, axis), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_split_symbolic():
    """An unknown dimension splits into equal parts."""
    n = te.size_var("n")
    a = te.placeholder((n, 2), name="a")
    data = np.arange(12, dtype="float32").reshape(6, 2)
    first, second = evaluate(topi.split(a, 2), {a: data})
    np.testing.assert_array_equal(first, data[:3])
    np.testing.assert_array_equal(second, data[3:])


def test_split_errors():
    """Parts must be equal, indices ascending."""
    with pytest.raises(ExpressionError, match="3 equal parts"):
        topi.split(te.placeholder((4,)), 3)
    with pytest.raises(ExpressionError, match="ascending"):
        topi.split(te.placeholder((4,)), [3, 1])


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid(indexing):
    """Coordinates of a grid."""
    vectors = [np.arange(size, dtype="float32") + 10 * size for size in (2, 3, 4)]
    feeds = inputs(*vectors)
    results = evaluate(topi.meshgrid(list(feeds), indexing), feeds)
    for result, expected in zip(results, np.meshgrid(*vectors, indexing=indexing), strict=True):
        np.testing.assert_array_equal(result, expected)
    with pytest.raises(ExpressionError, match="'ij' or 'xy'"):
        topi.meshgrid(list(feeds), "yx")
