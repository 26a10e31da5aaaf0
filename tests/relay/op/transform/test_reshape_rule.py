"""The shape that reshape gives."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import te
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import is_any, provably_equal
from tilewright.relay.op.transform.reshape_rule import reshaped, reshaped_from_the_right
from tilewright.relay.ty import Any


@pytest.mark.parametrize(
    ("shape", "codes", "message"),
    [
        ((2, 3), (4,), "6 elements do not become 4"),
        ((2, 3), (4, -1), "6 elements do not divide by 4"),
        ((2, 3), (-1, -1), "-1 occurs twice"),
        ((2, 3), (0, 0, 0), "no dimension is left for 0"),
        ((2,), (-3,), "no dimension is left for -3"),
        ((2, 3), (-5, 6), "-5 is not a code"),
        ((6,), (-4, 2), "two numbers follow -4"),
        ((6,), (-4, -1, -1), "needs one of the two numbers"),
        ((6,), (-4, 4, -1), "6 is not 4 times -1"),
        ((6,), (-4, 2, 4), "6 is not 2 times 4"),
        ((6,), (-4, 0, -1), "splits into positive numbers"),
    ],
)
def test_what_does_not_fit_is_named(shape: tuple[int, ...], codes: tuple[int, ...], message: str) -> None:
    """An error says what is wrong with the codes."""
    with pytest.raises(RelationError, match=message):
        reshaped(shape, codes)


def test_zero_is_a_size_where_it_may_be() -> None:
    """With allow_zero, 0 is not a code, and -1 beside it could be anything."""
    assert reshaped((0, 3), (3, 0), allow_zero=True) == (3, 0)
    with pytest.raises(RelationError, match="can be anything"):
        reshaped((0, 3), (0, -1), allow_zero=True)
    with pytest.raises(RelationError, match="6 elements do not become 0"):
        reshaped((2, 3), (0, 3), allow_zero=True)


@given(st.data())
def test_the_number_of_elements_stays(data: st.DataObject) -> None:
    """Codes made from a shape give a shape of as many elements, and each code what it stands for."""
    shape = tuple(data.draw(st.lists(st.integers(1, 6), max_size=5)))
    codes: list[int] = []
    wanted: list[int] = []
    position = 0
    while position < len(shape):
        code = data.draw(st.sampled_from([0, -2, -3, -4]))
        if code == -2:
            wanted += shape[position:]
            codes.append(-2)
            position = len(shape)
        elif code == -3 and position + 1 < len(shape):
            codes.append(-3)
            wanted.append(shape[position] * shape[position + 1])
            position += 2
        elif code == -4:
            part = data.draw(st.sampled_from([n for n in range(1, 7) if shape[position] % n == 0]))
            codes += [-4, part, -1]
            wanted += [part, shape[position] // part]
            position += 1
        else:
            codes.append(0)
            wanted.append(shape[position])
            position += 1
    assert reshaped(shape, codes) == tuple(wanted)
    assert math.prod(wanted) == math.prod(shape)
    if shape:
        assert reshaped(shape, [-1]) == (math.prod(shape),)


def test_unknown_dimensions_that_are_taken_over_cancel() -> None:
    """(?, 4, 5) with (0, -1) has 20 columns; only what the unknown goes into is unknown."""
    batch, rest = reshaped((Any(), 4, 5), (0, -1))
    assert is_any(batch)
    assert rest == 20
    first, second = reshaped((Any(), 4, 5), (-1, 10))
    assert is_any(first)
    assert second == 10
    assert reshaped((Any(), 4), (8, 2)) == (8, 2)


def test_symbolic_dimensions_are_computed() -> None:
    """With n rows, -1 is an expression of n."""
    n = te.size_var("n")
    first, second = reshaped((n, 4, 6), (-1, 12))
    assert provably_equal(first, n * 2)
    assert second == 12
    joined, six = reshaped((n, 4, 6), (-3, 0))
    assert provably_equal(joined, n * 4)
    assert six == 6


def test_codes_read_from_the_right() -> None:
    """The last code belongs to the last dimension; -4 has no meaning there."""
    assert reshaped_from_the_right((10, 5, 4), (-1, 0)) == (50, 4)
    assert reshaped((10, 5, 4), (-1, 0)) == (40, 5)
    assert reshaped_from_the_right((2, 3, 4), (-2, 0)) == (2, 3, 4)
    with pytest.raises(RelationError, match="-4"):
        reshaped_from_the_right((10, 5, 4), (-4, 2, -1, 0, 0))
