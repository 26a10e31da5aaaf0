"""Elements by indices that are data."""

import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(3)
DATA = np.arange(60, dtype="float32").reshape(3, 4, 5)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_take(axis, mode, symbolic):
    """Slices along an axis; indices outside are held or counted around."""
    indices = np.array([[0, 2, -1], [7, 1, 100]], "int32")
    result = apply(topi.take, DATA, indices, axis=axis, mode=mode, symbolic=symbolic)
    np.testing.assert_array_equal(result, np.take(DATA, indices, axis, mode=mode))


def test_take_fast_and_scalar():
    """Trusted indices, of int64, and one index alone."""
    indices = np.array([2, 0], "int64")
    np.testing.assert_array_equal(apply(topi.take, DATA, indices, axis=0, mode="fast"), DATA[[2, 0]])
    np.testing.assert_array_equal(apply(topi.take, DATA, np.int32(1), axis=1), DATA[:, 1])


@pytest.mark.parametrize(("axis", "batch"), [(1, 1), (2, 1), (2, 2)])
def test_take_batches(axis, batch):
    """The first dimensions of data and indices go together."""
    indices = RANDOM.integers(0, 4, (3, 4, 2)).astype("int32")
    expected = np.empty([*DATA.shape[:axis], *indices.shape[batch:], *DATA.shape[axis + 1 :]], "float32")
    for place in np.ndindex(*DATA.shape[:batch]):
        expected[place] = np.take(DATA[place], indices[place], axis - batch)
    np.testing.assert_array_equal(apply(topi.take, DATA, indices, axis=axis, batch_dims=batch), expected)


def test_take_errors():
    """Indices are integers, modes are known."""
    a = te.placeholder((3, 4))
    with pytest.raises(ExpressionError, match="must be integers, not float32"):
        topi.take(a, te.placeholder((2,)), axis=0)
    with pytest.raises(ExpressionError, match="mode is one of"):
        topi.take(a, te.placeholder((2,), "int32"), axis=0, mode="near")
    with pytest.raises(ExpressionError, match="batch_dims"):
        topi.take(a, te.placeholder((3,), "int32"), axis=0, batch_dims=1)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(axis):
    """Elements along an axis; negative indices count from the back."""
    indices = RANDOM.integers(-3, 3, (3, 4, 5)).astype("int64")
    expected = np.take_along_axis(DATA, indices, axis)
    result = apply(lambda data, index: topi.gather(data, axis, index), DATA, indices)
    np.testing.assert_array_equal(result, expected)


def test_gather_outside_stays_inside():
    """An index outside of the data reads its end and no memory beyond."""
    data, indices = np.array([1, 2, 3], "float32"), np.array([99, -99, 1], "int32")
    np.testing.assert_array_equal(apply(lambda d, i: topi.gather(d, 0, i), data, indices), [3, 1, 2])


def test_gather_nd():
    """Index vectors along the first axis choose slices."""
    indices = np.array([[0, 2, 1], [3, -1, 0]], "int32")
    np.testing.assert_array_equal(apply(topi.gather_nd, DATA, indices), DATA[indices[0], indices[1]])
    whole = RANDOM.integers(0, 3, (3, 2, 2)).astype("int32")
    np.testing.assert_array_equal(apply(topi.gather_nd, DATA, whole), DATA[whole[0], whole[1], whole[2]])


def test_gather_nd_batches():
    """With batch dimensions, index vectors choose within their batch."""
    indices = np.array([[[0, 1], [2, 3], [1, 0]]], "int32")
    expected = np.stack([DATA[batch][indices[0, batch]] for batch in range(3)])
    np.testing.assert_array_equal(apply(topi.gather_nd, DATA, indices, batch_dims=1), expected)
    with pytest.raises(ExpressionError, match="do not index"):
        topi.gather_nd(te.placeholder((2,)), te.placeholder((2, 3), "int32"))


def test_adv_index():
    """NumPy's indexing by tensors that are broadcast together."""
    first, second = np.array([[0], [2]], "int32"), np.array([1, -1, 0], "int64")
    feeds = inputs(DATA, first, second)
    data, *indices = feeds
    np.testing.assert_array_equal(evaluate(topi.adv_index(data, indices), feeds), DATA[first, second])


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_where(dtype, symbolic):
    """One of two values by a condition, all of them broadcast."""
    condition = np.array([[1], [0], [1]], dtype)
    x, y = DATA[0, :3, :], -np.ones((1, 5), "float32")
    result = apply(topi.where, condition, x, y, symbolic=symbolic)
    np.testing.assert_array_equal(result, np.where(condition, x, y))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis):
    """One value where the index is met, another elsewhere; indices outside are met nowhere."""
    indices = np.array([[0, 3, 9], [1, -1, 2]], "int32")
    expected = np.moveaxis(np.where(indices[..., None] == np.arange(4), 5, -1), -1, axis).astype("int8")
    result = apply(topi.one_hot, indices, on_value=5, off_value=-1, depth=4, axis=axis, dtype="int8")
    np.testing.assert_array_equal(result, expected)


def test_unravel_index():
    """Index vectors of positions."""
    positions, shape = np.array([0, 5, 22, 59], "int32"), np.array([3, 4, 5], "int32")
    np.testing.assert_array_equal(
        apply(topi.unravel_index, positions, shape), np.unravel_index(positions, (3, 4, 5))
    )
    np.testing.assert_array_equal(apply(topi.unravel_index, np.int32(22), shape), [1, 0, 2])


def test_take_legalize_keeps_the_call():
    """No target wants another call by default."""
    assert topi.take_legalize(None, [], []) is None
