"""The Threefry function."""

import numpy as np
import pytest
from tests.topi.running import evaluate, inputs

from tilewright.topi.kernel import loop_kernel
from tilewright.topi.random.threefry import threefry

# The known answers that Random123 publishes for threefry4x64 with twenty rounds: counter, key, result.
ONES = 0xFFFFFFFFFFFFFFFF
KNOWN_ANSWERS = [
    (
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B],
    ),
    (
        [ONES] * 4,
        [ONES] * 4,
        [0x29C24097942BBA1B, 0x0371BBFB0F6F4E11, 0x3C231FFA33F83A1C, 0xCD29113FDE32D168],
    ),
]


def in_python(key, counter):
    """Threefry as its paper defines it, in Python's integers."""
    rotations = [(14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)]
    parity = 0x1BD11BDAA9FC1A22
    for word in key:
        parity ^= word
    schedule = [*key, parity]
    x = [(c + k) & ONES for c, k in zip(counter, key, strict=True)]
    for turn in range(20):
        order = [0, 1, 2, 3] if turn % 2 == 0 else [0, 3, 2, 1]
        for pair in range(2):
            one, other = order[2 * pair], order[2 * pair + 1]
            bits = rotations[turn % 8][pair]
            x[one] = (x[one] + x[other]) & ONES
            x[other] = ((x[other] << bits | x[other] >> (64 - bits)) & ONES) ^ x[one]
        if turn % 4 == 3:
            step = turn // 4 + 1
            x = [(value + schedule[(number + step) % 5]) & ONES for number, value in enumerate(x)]
            x[3] = (x[3] + step) & ONES
    return x


def compiled(key, counter):
    """Threefry as the compiled program computes it."""
    feeds = inputs(np.array(key, "uint64"), np.array(counter, "uint64"))

    def body(builder, ins, outs):
        words = threefry(builder, [ins[0][i] for i in range(4)], [ins[1][i] for i in range(4)])
        for position, value in enumerate(words):
            outs[0][position] = value

    return evaluate(loop_kernel("threefry", list(feeds), [((4,), "uint64")], body)[0], feeds).tolist()


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_known_answers(counter, key, expected):
    """The published answers."""
    assert in_python(key, counter) == expected
    assert compiled(key, counter) == expected


def test_any_key_and_counter():
    """The compiled function is the one of the paper."""
    words = np.random.default_rng(13).integers(0, ONES, (2, 4), dtype="uint64", endpoint=True).tolist()
    assert compiled(*words) == in_python(*words)
