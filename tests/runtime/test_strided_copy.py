"""Copies of transposed arrays: the same elements as NumPy's, whatever the order of the source."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime import ndarray
from tilewright.runtime.strided_copy import compacted, copy_strided

SHAPES = [(1024, 520), (7, 70_001), (16, 5, 131, 67), (40_000, 17), (1, 1, 700, 900)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_every_order_of_axes(shape: tuple[int, ...], dtype: str) -> None:
    """Rolled and reversed axes of arrays whose extents are no multiples of a line."""
    values = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    orders = {tuple(np.roll(range(len(shape)), step)) for step in range(len(shape))}
    for order in orders | {tuple(reversed(range(len(shape))))}:
        source = values.transpose(order)
        made = compacted(source)
        assert made.flags.c_contiguous
        np.testing.assert_array_equal(made, source)
        np.testing.assert_array_equal(ndarray.array(source).numpy(), source)


def test_a_compact_array_is_not_copied() -> None:
    """It is given back itself, a scalar with its shape."""
    for values in (np.ones((3, 4)), np.array(2.0)):
        assert compacted(values) is values


def test_steps_backwards_and_repeated_elements() -> None:
    """Strides may be negative or zero."""
    values = np.arange(1200 * 1100, dtype="float32").reshape(1200, 1100)
    for source in (values[::-1].T, values.T[:, ::-1], np.broadcast_to(values[:1], (1200, 1100)).T):
        np.testing.assert_array_equal(compacted(source), source.copy())


def test_onto_its_own_memory() -> None:
    """A matrix can be transposed in place: no element is overwritten before it is read."""
    values = np.arange(1100 * 1100, dtype="float32").reshape(1100, 1100)
    expected = values.T.copy()
    copy_strided(values, values.T)
    np.testing.assert_array_equal(values, expected)
