"""Windows that slide over axes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import relay
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.nn.windows import (
    pad_tuple,
    per_axis,
    slid_extents,
    taps,
    transposed_extents,
    wide_product,
)
from tilewright.relay.op.shapes import is_any
from tilewright.support.errors import OpAttributeInvalid


def test_padding_has_two_sides() -> None:
    """One number for all, one an axis, or both sides already."""
    assert pad_tuple(1, 2) == (1, 1, 1, 1)
    assert pad_tuple((1, 2), 2) == (1, 2, 1, 2)
    assert pad_tuple([1, 2, 3, 4], 2) == (1, 2, 3, 4)
    with pytest.raises(OpAttributeInvalid, match="1, 2 or 4 values"):
        pad_tuple((1, 2, 3), 2)


def test_one_value_serves_all_axes() -> None:
    """And a wrong number of values is an error that names the attribute."""
    assert per_axis(3, 2, "strides") == (3, 3)
    with pytest.raises(OpAttributeInvalid, match="strides has 3 values for 2 axes"):
        per_axis((1, 2, 3), 2, "strides")


@pytest.mark.parametrize(("ceil_mode", "wanted"), [(False, 3), (True, 4)])
def test_extents_of_windows(ceil_mode: bool, wanted: int) -> None:
    """The last window may reach beyond the end where ``ceil_mode``."""
    assert slid_extents((8,), (3,), 2, 0, 1, ceil_mode) == (wanted,)


def test_extents_of_unknown_axes() -> None:
    """Unknown axes stay unknown, beside others that are computed."""
    made = slid_extents((relay.Any(), 9), (3, 3), (1, 2), 1, 1)
    assert is_any(made[0])
    assert made[1] == 5


def test_windows_that_are_too_large() -> None:
    """A window that never fits is an error."""
    with pytest.raises(RelationError, match="larger than the padded axis"):
        slid_extents((4,), (3,), 1, 0, 2)


def test_transposed_extents_invert_slid_ones() -> None:
    """What the last step did not reach is the output padding."""
    for extent in range(5, 12):
        (count,) = slid_extents((extent,), (3,), 2, 1, 1)
        left_over = (extent + 2 - 3) % 2
        assert transposed_extents((count,), (3,), 2, 1, 1, left_over) == (extent,)


def test_taps_read_windows() -> None:
    """The views of all taps together are the windows."""
    data = np.arange(10)
    views = dict(taps(data, 0, (3,), 2, 2, (3,)))
    assert [view.tolist() for view in views.values()] == [[0, 2, 4], [2, 4, 6], [4, 6, 8]]


def test_products_of_small_integers_are_exact() -> None:
    """Sums that an eight-bit type cannot hold, and those of large integers."""
    small = np.full((1, 400), -128, "int8")
    assert wide_product(small, small.T).item() == 400 * 128 * 128
    large = np.array([[1 << 40, 1]], "int64")
    assert wide_product(large, large.T).item() == (1 << 80) % (1 << 64) + 1
