"""Words of narrow numbers: what packing and multiplying them means."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies

import tilewright as tvm
from tilewright import te
from tilewright.support.errors import ExpressionError
from tilewright.tir.interpreter import interpret
from tilewright.tir.packed_lanes import can_multiply, dot_word, numbers_per_lane, pack_word, sum_type

BYTES = strategies.lists(strategies.integers(-128, 127), min_size=16, max_size=16)


@cache
def product(first: str, second: str, lanes: int = 1) -> Any:
    """A loop program: sums of products of the words of two arrays of sixteen bytes."""
    a, b = te.placeholder((16,), first, "a"), te.placeholder((16,), second, "b")
    numbers = numbers_per_lane(first)

    def element(i: Any) -> Any:
        words = [pack_word(*[t[i * numbers + place] for place in range(numbers)]) for t in (a, b)]
        return dot_word(words[0], words[1], first, second)

    c = te.compute((16 // numbers,), element, "c")
    schedule = te.create_schedule(c.op)
    if lanes > 1:
        schedule[c].vectorize(schedule[c].split(c.op.axis[0], lanes)[1])
    return tvm.lower(schedule, [a, b, c], name="f")


@given(BYTES, BYTES)
def test_integers_are_multiplied_exactly(first: list[int], second: list[int]) -> None:
    """The interpreter adds the four products of each word, whatever the signs."""
    for kind in ("uint8", "int8"):
        a, b = np.array(first, "int8").view(kind), np.array(second, "int8")
        expected = (a.astype("int64") * b).reshape(4, 4).sum(axis=1)
        for lanes in (1, 4):
            found = np.zeros(4, "int32")
            interpret(product(kind, "int8", lanes)["f"], a, b, found)
            np.testing.assert_array_equal(found, expected)


def test_the_first_number_is_the_lowest() -> None:
    """Bytes of a word in the order of memory."""
    a = te.placeholder((4,), "uint8", "a")
    c = te.compute((1,), lambda i: pack_word(a[0], a[1], a[2], a[3]), "c")
    module = tvm.lower(te.create_schedule(c.op), [a, c], name="f")
    found = np.zeros(1, "int32")
    interpret(module["f"], np.array([1, 2, 3, 0x84], "uint8"), found)
    assert found.view("uint32")[0] == 0x84030201


def test_types() -> None:
    """Integers add up in int32, bfloat16 in float32; what no instruction multiplies has no product."""
    assert (numbers_per_lane("int8"), numbers_per_lane("bfloat16")) == (4, 2)
    assert (sum_type("uint8"), sum_type("bfloat16")) == ("int32", "float32")
    assert can_multiply("uint8", "int8") and not can_multiply("uint8", "uint8")
    a, word = te.placeholder((4,), "int8", "a"), te.placeholder((4,), "int32", "w")
    with pytest.raises(ExpressionError, match="four numbers of 8 bits or two of 16"):
        pack_word(a[0], a[1])
    with pytest.raises(ExpressionError, match="no dot product of int8 and uint8"):
        dot_word(word[0], word[1], "int8", "uint8")
