"""How far two tensors are apart."""

import numpy as np
import pytest

from tilewright.driver.tvmc.measure import Deviation, deviation


def test_errors_are_relative_to_the_largest_value():
    """The worst absolute error, and the same by the largest value that is expected."""
    found = deviation(np.float32([1.0, -4.5]), np.float32([1.25, -4.0]), 0.25)
    assert (found.absolute, found.relative, found.allowed) == (0.5, 0.125, 0.25)
    assert not found.agrees and found.excess == 2.0
    assert deviation(np.float32([4.0]), np.float32([4.001]), 0.01).agrees
    assert deviation(np.float32([4.0]), np.float32([4.5]), tolerance=0.2).agrees
    assert not deviation(np.float32([4.0]), np.float32([4.5]), 1.0, tolerance=0.1).agrees


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (np.float32([1]), np.float32([1, 1])),
        (np.float32([1]), np.float64([1])),
        (np.float32([np.nan]), np.float32([1])),
        (np.float32([1]), np.float32([np.inf])),
        (np.float32([-np.inf]), np.float32([np.inf])),
        (np.float32([1]), np.float32([0])),
        (np.int32([2]), np.int32([3])),
        (np.bool_([True]), np.bool_([False])),
    ],
)
def test_what_never_agrees(actual, expected):
    """Other shapes and types, numbers in the place of none, and whole numbers that differ."""
    assert not deviation(actual, expected).agrees


@pytest.mark.parametrize(
    "value",
    [np.float32([np.nan, np.inf, -np.inf]), np.float32([np.nan, 2.0]), np.zeros((0, 3)), np.int64([1 << 40])],
)
def test_what_always_agrees(value):
    """A tensor with itself, whatever is in it."""
    found = deviation(value, value.copy())
    assert found.agrees and found.absolute == 0.0


def test_the_worse_of_two():
    """The one that is more times what it may be."""
    small, large = Deviation(5.0, 0.1, 10.0), Deviation(1.0, 0.2, 1.0)
    assert small.worse(large) is large and large.worse(small) is large
