"""The generators of random numbers: the published function, and how generators are used and split."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import relay
from tilewright.relay.op.random import threefry
from tilewright.support.errors import ExpressionError

KNOWN_ANSWERS = [
    # key and counter words (all the same), and the result, from the known answers of Random123
    (0, (0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B)),
    (2**64 - 1, (0x29C24097942BBA1B, 0x0371BBFB0F6F4E11, 0x3C231FFA33F83A1C, 0xCD29113FDE32D168)),
]


@pytest.mark.parametrize(("word", "expected"), KNOWN_ANSWERS)
def test_known_answers(word: int, expected: tuple[int, ...]) -> None:
    """Threefry-4x64 with twenty rounds gives the published words."""
    counter = [np.full((1,), word, dtype=np.uint64)] * 4
    with np.errstate(over="ignore"):
        made = threefry.threefry([word] * 4, counter)
    assert tuple(int(each[0]) for each in made) == expected


def _key(seed: int) -> threefry.Words:
    return relay.random.threefry_key(seed).data.numpy()


def test_numbers_go_on_where_they_stopped() -> None:
    """Two runs of a generator give the numbers of one long run."""
    state, first = threefry.generate(_key(5), (8,))
    _, second = threefry.generate(state, (8,))
    _, both = threefry.generate(_key(5), (16,))
    np.testing.assert_array_equal(np.concatenate([first, second]), both)


def test_all_numbers_of_all_generators_differ() -> None:
    """A generator, those split off it and theirs give no number twice."""
    generators = [_key(0)]
    for _ in range(4):
        generators += [half for one in generators for half in threefry.split(one)]
    numbers = np.concatenate([threefry.generate(one, (4,))[1] for one in generators])
    distinct = {tuple(int(word) for word in one) for one in generators}
    # Splitting the same generator again gives the same ones.
    assert len(np.unique(numbers)) == 4 * len(distinct)


def test_a_path_of_any_length() -> None:
    """After more splits than the path has bits, generators still differ."""
    state = _key(1)
    seen = set()
    for _ in range(400):
        left, right = threefry.split(state)
        seen.add(tuple(int(word) for word in left))
        state = right
    assert len(seen) == 400


def test_uniform_fills_the_range() -> None:
    """Numbers lie from low to below high, with the mean and the variance of a uniform distribution."""
    low, high = np.asarray(-1.0, "float32"), np.asarray(3.0, "float32")
    _, numbers = threefry.uniform(_key(2), low, high, (20000,), np.dtype("float32"))
    assert numbers.dtype == np.float32
    assert -1 <= numbers.min() < -0.99 and 2.99 < numbers.max() < 3
    assert abs(numbers.mean() - 1) < 0.03 and abs(numbers.var() - 16 / 12) < 0.03


def test_seeds() -> None:
    """Seeds have 256 bits; different seeds are different generators."""
    assert _key(1 << 255)[3] == 1 << 63
    assert not np.array_equal(_key(1), _key(2))
    for seed in (-1, 1 << 256):
        with pytest.raises(ExpressionError, match="a seed is an integer from 0"):
            relay.random.threefry_key(seed)
