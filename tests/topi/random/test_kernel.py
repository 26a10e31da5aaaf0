"""Generators are data: reproducible, splittable and independent."""

import numpy as np
import pytest
import scipy.stats
from tests.topi.random.test_threefry import in_python
from tests.topi.running import evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

TOP = 1 << 63


def generator(seed, path=(0, 0, 0), counter=0, mask=TOP, word=0):
    return np.array([seed, 0, 0, 0, *path, counter, mask, word], "uint64")


def generate(gen, shape):
    feeds = inputs(gen)
    (tensor,) = feeds
    return evaluate(topi.random.threefry_generate(tensor, shape), feeds)


def split(gen):
    feeds = inputs(gen)
    (tensor,) = feeds
    return evaluate(topi.random.threefry_split(tensor), feeds)


def test_words_are_those_of_threefry():
    """Blocks of four words come from the key, the marked path and a running counter."""
    _, words = generate(generator(42, counter=7), (2, 5))
    expected = []
    for counter in (7, 8, 9):
        expected += in_python([42, 0, 0, 0], [TOP, 0, 0, counter])
    assert words.flatten().tolist() == expected[:10]


def test_generator_moves_on():
    """The same generator gives the same words; the one that comes back gives others."""
    gen = generator(1)
    following, words = generate(gen, (6,))
    again, same = generate(gen, (6,))
    np.testing.assert_array_equal(words, same)
    np.testing.assert_array_equal(following, again)
    assert following[7] == 2
    _, others = generate(following, (6,))
    assert not set(words.tolist()) & set(others.tolist())


def test_a_full_counter_draws_a_new_key():
    """No counter is used twice, nor the one that is reserved."""
    following, words = generate(generator(1, counter=2**64 - 3), (16,))
    key = in_python([1, 0, 0, 0], [TOP, 0, 0, 2**64 - 1])
    assert following[:4].tolist() == key
    assert following[7] == 4
    assert words[:4].tolist() == in_python(key, [TOP, 0, 0, 0])


def test_split():
    """A split appends a bit to the path; all three generators give different words."""
    gen = generator(5)
    left, right = split(gen)
    assert left.tolist() == [5, 0, 0, 0, 0, 0, 0, 0, TOP >> 1, 0]
    assert right.tolist() == [5, 0, 0, 0, TOP, 0, 0, 0, TOP >> 1, 0]
    words = np.concatenate([generate(each, (8,))[1] for each in (gen, left, right)])
    assert len(set(words.tolist())) == 24


def test_split_at_the_ends_of_words_and_of_the_path():
    """The path goes on in its next word; when it is full there is a new key."""
    left, right = split(generator(5, mask=1))
    assert left[8:].tolist() == [TOP, 1] and right[4] == 1
    left, right = split(generator(5, mask=1, word=2))
    key = in_python([5, 0, 0, 0], [0, 0, 1, 2**64 - 1])
    assert left[:4].tolist() == key and right[4] == TOP and right[9] == 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform(dtype):
    """Numbers fill the interval evenly."""
    feeds = inputs(generator(3), np.array(-2, dtype), np.array(6, dtype))
    gen, low, high = feeds
    _, numbers = evaluate(topi.random.uniform(gen, low, high, (40, 50), dtype), feeds)
    assert numbers.dtype == dtype and numbers.min() >= -2 and numbers.max() <= 6
    assert scipy.stats.kstest(numbers.flatten().astype("float64"), "uniform", args=(-2, 8)).pvalue > 1e-3


def test_errors():
    """A generator is ten words."""
    with pytest.raises(ExpressionError, match="ten words"):
        topi.random.threefry_generate(te.placeholder((4,), "uint64"), (2,))
    with pytest.raises(ExpressionError, match="not int32"):
        topi.random.uniform(te.placeholder((10,), "uint64"), 0, 1, (2,), "int32")
