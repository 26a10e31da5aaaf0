"""Sorting agrees with NumPy's stable sort."""

import ml_dtypes
import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(9)
TYPES = [
    "float32",
    "float64",
    "float16",
    "int8",
    "uint8",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "bool",
]


def values(dtype, *shape):
    """Numbers over the whole range of a type, with many that are equal."""
    if dtype == "bool":
        return RANDOM.integers(0, 2, shape).astype("bool")
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        few = RANDOM.integers(limits.min, limits.max, (7,), dtype=dtype, endpoint=True)
        return np.where(
            RANDOM.uniform(size=shape) < 0.3,
            RANDOM.choice(few, shape),
            RANDOM.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True),
        ).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5])
    data = np.where(
        RANDOM.uniform(size=shape) < 0.4, RANDOM.choice(special, shape), RANDOM.normal(size=shape) * 100
    )
    return data.astype(dtype)


def both(x, dtype="int32"):
    """Sorted values and their positions, in one program."""
    return topi.sort(x), topi.argsort(x, dtype=dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(dtype):
    """Infinities, both zeros, NaN last, and equal values in their order."""
    data = values(dtype, 2, 300)
    result, positions = apply(both, data)
    np.testing.assert_array_equal(result, np.sort(data))
    np.testing.assert_array_equal(positions, np.argsort(data, kind="stable"))


@pytest.mark.parametrize("shape", [(3, 9), (40000,), (2, 17000)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_short_and_long_rows(shape, dtype):
    """Few keys are inserted; many have wider digits, and a row alone is sorted in parallel."""
    data = values(dtype, *shape)
    result, positions = apply(both, data)
    np.testing.assert_array_equal(result, np.sort(data))
    np.testing.assert_array_equal(positions, np.argsort(data, kind="stable"))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("symbolic", [False, True])
def test_axes(axis, symbolic):
    """Along any axis of known and unknown size."""
    data = values("float32", 40, 3, 30)
    result, positions = apply(
        lambda x: (topi.sort(x, axis), topi.argsort(x, axis=axis, dtype="int64")), data, symbolic=symbolic
    )
    np.testing.assert_array_equal(result, np.sort(data, axis))
    np.testing.assert_array_equal(positions, np.argsort(data, axis, kind="stable"))


@pytest.mark.parametrize("length", [7, 200])
def test_descending(length):
    """The greatest first; equal values keep their order all the same, and NaN is the greatest."""
    data = RANDOM.integers(-5, 5, (2, length)).astype("float32")
    np.testing.assert_array_equal(apply(topi.sort, data, is_ascend=0), -np.sort(-data))
    np.testing.assert_array_equal(
        apply(topi.argsort, data, is_ascend=0, dtype="int32"), np.argsort(-data, kind="stable")
    )
    data[0, 3] = np.nan
    assert apply(topi.argsort, data, is_ascend=0)[0, 0] == 3


def test_bfloat16():
    """bfloat16 sorts as its numbers do."""
    data = RANDOM.normal(size=(100,)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(apply(topi.sort, data).astype("float32"), np.sort(data.astype("float32")))


def test_valid_count():
    """Only so many values at the beginning of a row are sorted; the positions behind are their own."""
    data = RANDOM.normal(size=(4, 50)).astype("float32")
    counts = np.array([0, 3, 50, 99], "int32")
    expected = np.tile(np.arange(50), (4, 1))
    for row, count in enumerate(counts):
        expected[row, :count] = np.argsort(data[row, :count], kind="stable")
    feeds = inputs(data, counts)
    x, valid = feeds
    np.testing.assert_array_equal(evaluate(topi.argsort(x, valid, dtype="int32"), feeds), expected)


@pytest.mark.parametrize("k", [1, 5, 100, 200, 0])
@pytest.mark.parametrize("is_ascend", [False, True])
def test_topk(k, is_ascend):
    """The first k in order, the earlier of equal values first; 0 means all."""
    data = RANDOM.integers(-20, 20, (3, 200)).astype("float32")
    feeds = inputs(data)
    (x,) = feeds
    order = np.argsort(data if is_ascend else -data, axis=-1, kind="stable")[:, : k or 200]
    found, positions = evaluate(topi.topk(x, k, is_ascend=is_ascend), feeds)
    assert positions.dtype == "int64"
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(found, np.take_along_axis(data, order, 1))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float64", "float16"])
def test_topk_types(dtype):
    """Values alone, in every kind of type; infinities and NaN in their places."""
    data = values(dtype, 60)
    result = apply(topi.topk, data, k=20, ret_type="values", is_ascend=True)
    np.testing.assert_array_equal(result, np.sort(data)[:20])


@pytest.mark.parametrize("axis", [0, 1])
def test_topk_axis_and_unknown_sizes(axis):
    """Positions along any axis, of unknown size, with k a variable."""
    data = RANDOM.normal(size=(40, 30)).astype("float32")
    x = te.placeholder((te.size_var("n"), te.size_var("m")), name="x")
    k = te.size_var("k")
    order = np.argsort(-data, axis, kind="stable").take(range(6), axis)
    made = topi.topk(x, k, axis=axis, ret_type="indices", dtype="int32")
    np.testing.assert_array_equal(evaluate(made, {x: data}, shapes=[order.shape]), order)


def test_topk_with_k_in_a_tensor():
    """The caller's output says how many."""
    feeds = inputs(np.array([3, 1, 2, 5], "float32"), np.array([2], "int64"))
    x, k = feeds
    result = evaluate(topi.topk(x, k, ret_type="values"), feeds, shapes=[(2,)])
    np.testing.assert_array_equal(result, [5, 3])


def test_edges():
    """No elements, one element, and mistakes."""
    assert apply(topi.sort, np.zeros((2, 0), "float32")).shape == (2, 0)
    np.testing.assert_array_equal(apply(topi.argsort, np.ones((2, 1), "float32")), [[0], [0]])
    with pytest.raises(ExpressionError, match="5 values of 3"):
        topi.topk(te.placeholder((3,)), 5)
    with pytest.raises(ExpressionError, match="ret_type"):
        topi.topk(te.placeholder((3,)), 1, ret_type="all")
    with pytest.raises(ExpressionError, match="axis 2 is outside"):
        topi.sort(te.placeholder((3,)), axis=2)
