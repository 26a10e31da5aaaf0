"""Shapes and orders as NumPy changes them."""

import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

DATA = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize(("axis", "count"), [(0, 1), (-1, 1), (1, 2), (3, 1), (-4, 1)])
def test_expand_dims(axis, count):
    """New dimensions of one stand before the axis."""
    result = apply(topi.expand_dims, DATA, axis=axis, num_newaxis=count)
    expected = DATA
    position = axis if axis >= 0 else axis + 4
    for _ in range(count):
        expected = np.expand_dims(expected, position)
    np.testing.assert_array_equal(result, expected)


def test_expand_like():
    """The tensor repeated to the shape of another along new axes."""
    small, like = np.arange(3, dtype="float32"), np.zeros((2, 3, 4), "float32")
    result = apply(topi.expand_like, small, like, axis=(0, 2))
    np.testing.assert_array_equal(result, np.broadcast_to(small[None, :, None], (2, 3, 4)))
    with pytest.raises(ExpressionError, match="do not make"):
        topi.expand_like(te.placeholder((3,)), te.placeholder((2, 3, 4)), axis=0)


@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 0, 1), (-1, -3, -2)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_transpose(axes, symbolic):
    """Any order of the axes."""
    result = apply(topi.transpose, DATA, axes=axes, symbolic=symbolic)
    np.testing.assert_array_equal(result, np.transpose(DATA, axes))


def test_transpose_rejects_no_order():
    """Every axis must stand once."""
    with pytest.raises(ExpressionError, match="not a permutation"):
        topi.transpose(te.placeholder((2, 3)), (0, 0))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_flip(axis):
    """Turned around along one axis."""
    np.testing.assert_array_equal(apply(topi.flip, DATA, axis=axis), np.flip(DATA, axis))


@pytest.mark.parametrize(("sequence", "batch"), [(1, 0), (0, 1), (2, 0)])
def test_reverse_sequence(sequence, batch):
    """The first elements of each sequence turned around; lengths beyond the end count as the end."""
    lengths = np.array([1, 3, 9][: DATA.shape[batch]], "int32")
    expected = DATA.copy()
    for number, length in enumerate(lengths):
        part = np.moveaxis(expected, (batch, sequence), (0, 1))[number]
        part[:length] = part[:length][::-1].copy()
    result = apply(topi.reverse_sequence, DATA, lengths, seq_axis=sequence, batch_axis=batch)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "shape", [(24,), (6, 4), (2, 12), (4, 3, 2), (2, 3, 2, 2), (1, 24, 1), (8, -1), (-1,), (3, 8), (2, 3, 4)]
)
def test_reshape(shape):
    """Row-major order in every shape."""
    np.testing.assert_array_equal(apply(topi.reshape, DATA, newshape=shape), DATA.reshape(shape))


def test_reshape_symbolic():
    """Unknown dimensions that stay need no division, and -1 is computed."""
    n = te.size_var("n")
    a = te.placeholder((n, 3, 4), name="a")
    joined = topi.reshape(a, (n, 12))
    assert joined.op.body[0].indices[0] is joined.op.axis[0].var
    np.testing.assert_array_equal(evaluate(joined, {a: DATA}), DATA.reshape(2, 12))
    np.testing.assert_array_equal(evaluate(topi.reshape(a, (-1, 2)), {a: DATA}), DATA.reshape(-1, 2))
    np.testing.assert_array_equal(evaluate(topi.reshape(a, (12, n)), {a: DATA}), DATA.reshape(12, 2))


def test_reshape_edges():
    """No elements, no dimensions, and sizes that differ."""
    assert apply(topi.reshape, np.zeros((0, 3), "float32"), newshape=(3, 0)).shape == (3, 0)
    assert apply(topi.reshape, np.ones((1, 1), "float32"), newshape=()) == 1
    np.testing.assert_array_equal(apply(topi.reshape, np.float32(2), newshape=(1, 1)), [[2]])
    with pytest.raises(ExpressionError, match="differ in size"):
        topi.reshape(te.placeholder((2, 3)), (7,))
    with pytest.raises(ExpressionError, match="one dimension may be -1"):
        topi.reshape(te.placeholder((2, 3)), (-1, -1))


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (0, 2, 3)])
def test_squeeze(axis):
    """Dimensions of one go."""
    data = np.arange(3, dtype="float32").reshape(1, 3, 1, 1)
    np.testing.assert_array_equal(apply(topi.squeeze, data, axis=axis), np.squeeze(data, axis))


def test_squeeze_edges():
    """Nothing may remain; a dimension that is not one stays an error."""
    assert apply(topi.squeeze, np.full((1, 1), 5, "float32")) == 5
    with pytest.raises(ExpressionError, match="is not 1"):
        topi.squeeze(te.placeholder((2, 1)), axis=0)


@pytest.mark.parametrize(("repeats", "axis"), [(2, 0), (3, -1), (1, 1), (0, 1)])
def test_repeat(repeats, axis):
    """Elements in a row."""
    np.testing.assert_array_equal(
        apply(topi.repeat, DATA, repeats=repeats, axis=axis), np.repeat(DATA, repeats, axis)
    )


@pytest.mark.parametrize("reps", [(2,), (2, 1, 3), (2, 1, 1, 2), (1, 0, 1), 3])
def test_tile(reps):
    """The whole tensor again and again."""
    np.testing.assert_array_equal(apply(topi.tile, DATA, reps=reps), np.tile(DATA, reps))


def test_dyn_tile():
    """Repeated until a shape is full."""
    feeds = inputs(DATA)
    (a,) = feeds
    n = te.size_var("n")
    result = evaluate(topi.dyn_tile(a, (n, 6, 4), 3), feeds, shapes=[(4, 6, 4)])
    np.testing.assert_array_equal(result, np.tile(DATA, (2, 2, 1)))


@pytest.mark.parametrize("symbolic", [False, True])
def test_shape_and_size(symbolic):
    """Shapes and sizes as data."""
    np.testing.assert_array_equal(apply(topi.shape, DATA, symbolic=symbolic), [2, 3, 4])
    assert apply(topi.ndarray_size, DATA, dtype="int64", symbolic=symbolic) == 24
    assert apply(topi.shape, np.float32(1)).shape == (0,)


def test_tags():
    """Transposing is injective, expanding broadcasts."""
    a = te.placeholder((2, 3))
    assert topi.transpose(a).op.tag == topi.tag.INJECTIVE
    assert topi.expand_dims(a, 0).op.tag == topi.tag.BROADCAST


def test_reshape_of_open_sizes_divides_only_what_changes():
    """Dimensions that stay behind those that are put together or taken apart are read by their own index."""
    batch, length = te.size_var("batch"), te.size_var("length")
    heads = te.placeholder((batch, 12, length, 64))
    together = topi.reshape(heads, (batch * 12, length, 64))
    _, token, channel = together.op.axis
    assert [str(one) for one in together.op.body[0].indices[2:]] == [str(token.var), str(channel.var)]
    apart = topi.reshape(together, (batch, 12, length, 64))
    assert "//" not in str(apart.op.body[0]) and "%" not in str(apart.op.body[0])
    feeds = inputs(np.arange(2 * 12 * 3 * 64, dtype="float32").reshape(2, 12, 3, 64))
    (a,) = feeds
    result = evaluate(topi.reshape(a, (24, 3, 64)), feeds)
    np.testing.assert_array_equal(result, np.arange(2 * 12 * 3 * 64, dtype="float32").reshape(24, 3, 64))
