"""Cases of random numbers. That they are the published function's is shown by its known answers in test_random.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.relay.op.cases import Case, Input

from tilewright import relay


def _key(seed: int) -> Input:
    return Input(values=relay.random.threefry_key(seed).data.numpy(), dtype="uint64")


def _worn(seed: int, counter: int, mask: int, word: int) -> Input:
    """A generator that is about to get a new key."""
    values = relay.random.threefry_key(seed).data.numpy().copy()
    values[7], values[8], values[9] = counter, mask, word
    return Input(values=values, dtype="uint64")


def _generate(shape: tuple[int, ...]) -> Any:
    return lambda key: relay.random.threefry_generate(key, shape).astuple()


CASES = [
    Case("threefry_generate", _generate((3, 5)), [_key(0)]),
    Case("threefry_generate_one", _generate((1,)), [_key(1 << 200)]),
    Case("threefry_generate_new_key", _generate((9,)), [_worn(7, 2**64 - 3, 1 << 63, 0)]),
    Case("threefry_generate_in_path", _generate((4,)), [_worn(7, 5, 1 << 11, 1)]),
    Case("threefry_split", lambda key: relay.random.threefry_split(key).astuple(), [_key(3)]),
    Case("threefry_split_word", lambda key: relay.random.threefry_split(key).astuple(), [_worn(3, 9, 1, 0)]),
    Case("threefry_split_full", lambda key: relay.random.threefry_split(key).astuple(), [_worn(3, 9, 1, 2)]),
    Case("uniform", lambda key: relay.random.uniform(key, (4, 5)).astuple(), [_key(11)]),
    Case(
        "uniform_limits",
        lambda key: relay.random.uniform(key, (7,), "float64", -3.0, 5.0).astuple(),
        [_key(12)],
    ),
    Case(
        "uniform_computed_limits",
        lambda key, low, high: relay.random.uniform(key, (7,), low=low, high=high).astuple(),
        [_key(12), Input(values=np.float32(2.0)), Input(values=np.float32(2.5))],
    ),
    Case(
        "uniform_float16",
        lambda key: relay.random.uniform(key, (6,), "float16").astuple(),
        [_key(13)],
        rtol=1e-3,
    ),
]
