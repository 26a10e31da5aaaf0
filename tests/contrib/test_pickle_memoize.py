"""Results that are remembered."""

import numpy as np

from tilewright.contrib.pickle_memoize import memoize

CALLS: list[int] = []


def test_computed_once_for_the_same_arguments() -> None:
    """And again for others, or where a variable of the surrounding function is another."""

    def make(scale: int) -> object:
        @memoize("tests.contrib.pickle_memoize")
        def scaled(value: int, more: int = 0) -> int:
            CALLS.append(value)
            return scale * value + more

        return scaled

    one, two = make(1), make(2)
    assert [one(3), one(3), one(3, more=1), two(3), two(3)] == [3, 3, 4, 6, 6]  # type: ignore[operator]
    assert CALLS == [3, 3, 3]


def test_arrays_are_told_apart() -> None:
    """By all of their elements, however many."""

    @memoize("tests.contrib.pickle_memoize.arrays")
    def total(value: np.ndarray) -> float:
        return float(value.sum())

    long = np.zeros(5000)
    assert total(long) == 0
    long[2500] = 7
    assert total(long) == 7
