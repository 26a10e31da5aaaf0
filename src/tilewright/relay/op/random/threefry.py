"""The random number generators on NumPy arrays, with exactly the results of the compiled operators.

See ``topi.random.kernel`` for the meaning of the ten words of a generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint64]]

_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_PARITY = 0x1BD11BDAA9FC1A22
_ROUNDS = 20
_PATH, _COUNTER, _MASK, _PATH_WORD = 4, 7, 8, 9
_PATH_WORDS = 3
_FIRST_BIT = 1 << 63
_RESERVED = 2**64 - 1
_FRACTION_BITS = {2: 11, 4: 24, 8: 53}
"""The bits of the fraction of a floating-point type, by its size in bytes."""


def _rotate(value: Words, bits: int) -> Words:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


def threefry(key: Sequence[int], counter: Sequence[Words]) -> list[Words]:
    """Four random words for each of many counters, four words each, by Threefry-4x64."""
    parity = _PARITY
    for part in key:
        parity ^= int(part)
    schedule = [np.uint64(part) for part in (*key, parity)]
    words = [np.asarray(each) + part for each, part in zip(counter, schedule, strict=False)]
    for turn in range(_ROUNDS):
        # Odd turns mix each word with the other neighbour.
        pairs = ((0, 1), (2, 3)) if turn % 2 == 0 else ((0, 3), (2, 1))
        for (one, other), bits in zip(pairs, _ROTATIONS[turn % 8], strict=True):
            words[one] = words[one] + words[other]
            words[other] = _rotate(words[other], bits) ^ words[one]
        if turn % 4 == 3:
            injection = turn // 4 + 1
            words = [words[place] + schedule[(place + injection) % 5] for place in range(4)]
            words[3] = words[3] + np.uint64(injection)
    return words


def _blocks(state: Words, counters: Words) -> list[Words]:
    """Random words for the path of a state, with its end mark, and many counters."""
    path = [int(part) for part in state[_PATH:_COUNTER]]
    path[int(state[_PATH_WORD])] |= int(state[_MASK])
    marked = [np.full(counters.shape, part, dtype=np.uint64) for part in path]
    return threefry([int(part) for part in state[:_PATH]], [*marked, counters])


def _with_new_key(state: Words) -> Words:
    drawn = _blocks(state, np.full((1,), _RESERVED, dtype=np.uint64))
    key = [int(part[0]) for part in drawn]
    return np.asarray([*key, 0, 0, 0, 0, _FIRST_BIT, 0], dtype=np.uint64)


def generate(generator: Words, shape: Sequence[int]) -> tuple[Words, Words]:
    """A generator for further numbers, and random words in a shape."""
    with np.errstate(over="ignore"):
        size = int(np.prod(shape, dtype=np.int64))
        blocks = (size + 3) // 4
        state = generator.copy()
        if int(state[_COUNTER]) >= _RESERVED - blocks:
            state = _with_new_key(state)
        counters = state[_COUNTER] + np.arange(blocks, dtype=np.uint64)
        words = np.stack(_blocks(state, counters), axis=-1).reshape(-1)[:size]
        state[_COUNTER] += np.uint64(blocks)
        return state, words.reshape(tuple(shape))


def split(generator: Words) -> tuple[Words, Words]:
    """Two generators."""
    with np.errstate(over="ignore"):
        state = generator.copy()
        if int(state[_PATH_WORD]) == _PATH_WORDS - 1 and int(state[_MASK]) == 1:
            state = _with_new_key(state)
    place, mask = int(state[_PATH_WORD]), int(state[_MASK])
    left = state.copy()
    left[_COUNTER] = 0
    left[_MASK] = _FIRST_BIT if mask == 1 else mask >> 1
    left[_PATH_WORD] = place + (mask == 1)
    right = left.copy()
    right[_PATH + place] |= np.uint64(mask)
    return left, right


def uniform(
    generator: Words, low: Any, high: Any, shape: Sequence[int], dtype: np.dtype[Any]
) -> tuple[Words, Any]:
    """A generator for further numbers, and numbers between two in a shape, all equally likely."""
    state, words = generate(generator, shape)
    bits = _FRACTION_BITS[dtype.itemsize]
    fraction = (words >> np.uint64(64 - bits)).astype(dtype) * np.asarray(2.0**-bits, dtype=dtype)
    return state, (low.reshape(()) + fraction * (high.reshape(()) - low.reshape(()))).astype(dtype)
