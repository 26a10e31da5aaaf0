"""Shapes, arrays and rules of data layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import relay
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.nn.activation import BiasAddAttrs
from tilewright.relay.op.nn.layout_conversion import (
    channel_layouts,
    converted_array,
    laid_out,
    spatial_layouts,
    whole_extents,
)
from tilewright.relay.op.nn.pooling_attributes import MaxPool2DAttrs
from tilewright.relay.op.shapes import is_any
from tilewright.tir.data_layout import Layout


def test_whole_extents_join_the_parts_of_axes() -> None:
    """The channels of NCHW8c are blocks times eight."""
    assert whole_extents((1, 4, 7, 6, 8), "NCHW8c", "NCHW", "the data") == (1, 32, 7, 6)
    assert whole_extents((7, 6, 32, 1), "HWCN", "NCHW", "the data") == (1, 32, 7, 6)


def test_laid_out_splits_axes() -> None:
    """The other way round; an unknown dimension stays unknown."""
    assert laid_out((8, 6, 3, 3), "OIHW", "OIHW2i4o", "the weight") == (2, 3, 3, 3, 2, 4)
    shape = laid_out((relay.Any(), 32, 7, 6), "NCHW", "NCHW8c", "the data")
    assert is_any(shape[0])
    assert shape[1:] == (4, 7, 6, 8)


@pytest.mark.parametrize(
    ("shape", "layout", "message"),
    [
        ((1, 2, 3), "NCHW", "4 dimensions"),
        ((1, 2, 3, 4), "NCHX", "axes NCHW"),
        ((1, 2, 3, 4, 5), "NCHW8c", "the elements along c: 5 is not 8"),
        ((1, 2, 3, 4), "NC8HW", "layout"),
    ],
)
def test_shapes_that_do_not_fit_a_layout(shape: tuple[int, ...], layout: str, message: str) -> None:
    """The error names the layout and what is wrong."""
    with pytest.raises(RelationError, match=message):
        whole_extents(shape, layout, "NCHW", "the data")


def test_channels_that_do_not_fall_into_blocks() -> None:
    """Nine channels have no blocks of four."""
    with pytest.raises(RelationError, match="9 does not fall into parts of 4"):
        laid_out((1, 9, 2, 2), "NCHW", "NCHW4c", "the data")


@pytest.mark.parametrize(
    ("source", "destination"),
    [("NCHW", "NHWC"), ("NCHW", "NCHW2c"), ("NHWC", "NCHW4c"), ("OIHW", "OIHW2i4o"), ("OIHW4i", "HWIO")],
)
def test_converted_arrays_come_back(source: str, destination: str) -> None:
    """There and back again gives the array."""
    shape = laid_out((4, 8, 3, 5), sorted_axes(source), source, "the array")
    array = np.arange(480).reshape([int(extent) for extent in shape])  # type: ignore[arg-type]
    there = converted_array(array, source, destination)
    assert there.shape != array.shape
    np.testing.assert_array_equal(converted_array(there, destination, source), array)


def sorted_axes(layout: str) -> str:
    """The whole axes of a layout, batch or outputs first."""
    return "".join(axis for axis in "NOCIHW" if axis in layout)


def test_converted_array_of_blocks() -> None:
    """Element (n, c, h, w) lies at (n, c // 4, h, w, c % 4)."""
    array = np.arange(8 * 6).reshape(1, 8, 2, 3)
    made = converted_array(array, "NCHW", "NCHW4c")
    assert made.shape == (1, 2, 2, 3, 4)
    assert made[0, 1, 1, 2, 3] == array[0, 7, 1, 2]


TYPES: list[Any] = [relay.TensorType((1, 8, 6, 6))]


def test_pooling_takes_blocks_of_channels() -> None:
    """A layout with whole height and width is taken, and the attributes say so."""
    attrs = MaxPool2DAttrs(pool_size=(2, 2))
    made = spatial_layouts(attrs, [Layout("NCHW4c")], [Layout("NCHW")], TYPES)
    assert [one.name for one in (*made.inputs, *made.outputs)] == ["NCHW4c", "NCHW4c"]  # type: ignore[union-attr]
    assert made.attrs.layout == "NCHW4c"


@pytest.mark.parametrize("layout", ["NCHW2h", "OIHW", "NCW"])
def test_pooling_keeps_its_layout(layout: str) -> None:
    """Where space is split, or the axes are others, the operator's own layout is asked for."""
    made = spatial_layouts(MaxPool2DAttrs(), [Layout(layout)], [Layout("NCHW")], TYPES)
    assert made.inputs == (Layout("NCHW"),)
    assert made.attrs.layout == "NCHW"


def test_bias_follows_its_axis() -> None:
    """The axis of a bias moves with the layout, and a split one makes it ask for the program's."""
    types = [relay.TensorType((1, 8, 6, 6)), relay.TensorType((8,))]
    original = [Layout("NCHW"), None]
    moved = channel_layouts(BiasAddAttrs(1), [Layout("NHWC"), None], original, types)
    assert (moved.inputs[0], moved.attrs.axis) == (Layout("NHWC"), 3)
    split = channel_layouts(BiasAddAttrs(1), [Layout("NCHW4c"), None], original, types)
    assert (split.inputs[0], split.attrs.axis) == (Layout("NCHW"), 1)
