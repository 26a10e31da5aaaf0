"""Data layouts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import tir
from tilewright.ir.expr import Var
from tilewright.ir.structural import structural_equal
from tilewright.support.errors import ExpressionError


def test_layout() -> None:
    """A layout knows its axes, their places and the parts split off."""
    layout = tir.layout("NCHW16c")
    assert isinstance(layout, tir.Layout) and str(layout) == "NCHW16c" and len(layout) == 5
    assert layout.factor_of("c") == 16 and layout.factor_of("C") == 16 and layout.factor_of("N") == -1
    assert [layout.index_of(axis) for axis in "NCHWcO"] == [0, 1, 2, 3, 4, -1]
    assert "N" in layout and "c" in layout and "w" not in layout
    assert layout[0] == "N" and layout[-1] == "c"
    assert tir.layout("NCHW") == tir.layout("NCHW") != layout
    with pytest.raises(IndexError):
        layout[5]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NCHWN", "axis N twice"),
        ("NCHW16c4c", "axis c twice"),
        ("NCHWc", "needs a number"),
        ("NCHW0c", "needs a number"),
        ("NHW16c", "part c of an axis C that it does not have"),
        ("N16CHW", "cannot have a number"),
        ("NC-W", "is not an axis"),
        ("NCHW16", "is not an axis"),
    ],
)
def test_bad_layouts(name: str, message: str) -> None:
    """A name that is not a layout says why."""
    with pytest.raises(ExpressionError, match=message):
        tir.layout(name)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("NCHW", "ABCD"),
        ("NCHW", "NCH"),
        ("__undef__", "NCHW"),
        ("NCHW", "__undef__"),
        ("", "NCHW"),
        ("NCHW", ""),
    ],
)
def test_not_convertible(source: str, destination: str) -> None:
    """Layouts with other axes, or undefined ones, have no conversion."""
    assert tir.bijective_layout(source, destination) is None


def test_shapes() -> None:
    """Shapes go forward and back."""
    layout = tir.bijective_layout("NCHW", "NCHW16c")
    assert layout is not None
    assert structural_equal(layout.forward_shape((1, 32, 7, 7)), (1, 2, 7, 7, 16))
    assert structural_equal(layout.backward_shape((1, 2, 7, 7, 16)), (1, 32, 7, 7))
    with pytest.raises(ExpressionError, match="does not divide by 16"):
        layout.forward_shape((1, 33, 7, 7))
    with pytest.raises(ExpressionError, match="has size 16, not 8"):
        layout.backward_shape((1, 2, 7, 7, 8))
    with pytest.raises(ExpressionError, match="has 4 axes, 3 values"):
        layout.forward_shape((1, 32, 7))


def test_indices() -> None:
    """Indices go forward and back, also symbolic ones and between two split layouts."""
    layout = tir.bijective_layout("NCHW", "NCHW16c")
    assert layout is not None
    assert structural_equal(layout.forward_index([0, 18, 6, 6]), (0, 1, 6, 6, 2))
    assert structural_equal(layout.backward_index([0, 1, 6, 6, 2]), (0, 18, 6, 6))
    c = Var("c")
    assert [str(each) for each in layout.forward_index([0, c, 1, 2])] == ["0", "c // 16", "1", "2", "c % 16"]
    between = tir.bijective_layout("NCHW8c", "NHWC4c")
    assert between is not None
    assert structural_equal(between.forward_index([0, 1, 5, 6, 3]), (0, 5, 6, 2, 3))


@given(st.integers(0, 3), st.integers(0, 31), st.integers(0, 6), st.integers(0, 6))
def test_indices_round_trip(n: int, c: int, h: int, w: int) -> None:
    """Forward and back is where one started."""
    layout = tir.bijective_layout("NCHW", "NHWC4c")
    assert layout is not None
    assert structural_equal(layout.backward_index(layout.forward_index([n, c, h, w])), (n, c, h, w))
