"""Layouts."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

DATA = np.arange(2 * 8 * 3 * 5, dtype="float32").reshape(2, 8, 3, 5)


def test_to_another_order_and_back():
    """NCHW to NHWC moves the channels to the end."""
    np.testing.assert_array_equal(
        apply(topi.layout_transform, DATA, src_layout="NCHW", dst_layout="NHWC"), DATA.transpose(0, 2, 3, 1)
    )


@pytest.mark.parametrize("symbolic", [False, True])
def test_blocks_of_channels(symbolic):
    """NCHW to NCHW4c splits the channels; the way back joins them."""
    blocked = DATA.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)
    np.testing.assert_array_equal(
        apply(topi.layout_transform, DATA, src_layout="NCHW", dst_layout="NCHW4c", symbolic=symbolic), blocked
    )
    np.testing.assert_array_equal(
        apply(topi.layout_transform, blocked.copy(), src_layout="NCHW4c", dst_layout="NCHW"), DATA
    )


def test_from_blocks_to_other_blocks():
    """NCHW4c to NCHW2c."""
    blocked = DATA.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2).copy()
    expected = DATA.reshape(2, 4, 2, 3, 5).transpose(0, 1, 3, 4, 2)
    np.testing.assert_array_equal(
        apply(topi.layout_transform, blocked, src_layout="NCHW4c", dst_layout="NCHW2c"), expected
    )


def test_same_layout_is_the_same_tensor():
    """Nothing is computed where nothing changes."""
    a = te.placeholder((1, 2, 3, 4))
    assert topi.layout_transform(a, "NCHW", "NCHW") is a


def test_layouts_of_the_auto_scheduler():
    """Any number of parts of an axis, in any order."""
    data = np.arange(24, dtype="float32").reshape(6, 4)
    result = apply(topi.auto_scheduler_layout_transform, data, src_layout="6A4B", dst_layout="3A2B2A2B")
    np.testing.assert_array_equal(result, data.reshape(3, 2, 2, 2).transpose(0, 2, 1, 3))


def test_errors():
    """Axes and sizes must agree."""
    a = te.placeholder((2, 8, 3, 5))
    with pytest.raises(ExpressionError, match="the axes differ"):
        topi.layout_transform(a, "NCHW", "NCDHW")
    with pytest.raises(ExpressionError, match="does not divide"):
        topi.layout_transform(a, "NCHW", "NCHW3c")
    with pytest.raises(ExpressionError, match="different sizes"):
        topi.auto_scheduler_layout_transform(te.placeholder((6, 4)), "6A4B", "3A4B")
