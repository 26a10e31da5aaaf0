"""Blocks of channels and of units."""

from __future__ import annotations

import pytest

from tilewright.topi import x86


@pytest.mark.parametrize(
    ("channels", "lanes", "expected"),
    [
        (64, 16, 16),
        (24, 16, 24),
        (40, 16, 40),
        (3, 16, 3),
        (58, 16, 58),
        (101, 16, 1),
        (24, 8, 8),
        (144, 8, 8),
    ],
)
def test_channel_block(channels: int, lanes: int, expected: int) -> None:
    """A vector where it divides, else what wastes least of one."""
    assert x86.channel_block(channels, lanes) == expected


def test_layouts_of_a_convolution() -> None:
    """Names as the layout passes write them."""
    found = x86.conv2d_layouts(64, 256, target="llvm -mcpu=skylake-avx512")
    assert found == x86.Conv2DLayouts(16, 16, "NCHW16c", "OIHW16i16o", "NCHW16c")
    narrow = x86.conv2d_layouts(3, 64, target="llvm -mcpu=haswell")
    assert narrow is not None and (narrow.data_layout, narrow.kernel_layout) == ("NCHW3c", "OIHW3i8o")


def test_layouts_of_a_depthwise_convolution() -> None:
    """The kernel has one input channel."""
    found = x86.conv2d_layouts(96, 96, 96, target="llvm -mcpu=haswell")
    assert found is not None and found.kernel_layout == "OIHW1i8o" and found.data_layout == found.out_layout


def test_groups_bound_the_blocks() -> None:
    """A block does not reach into the next group."""
    found = x86.conv2d_layouts(64, 64, 16, target="llvm -mcpu=skylake-avx512")
    assert found is None or (found.ic_bn <= 4 and found.oc_bn <= 4)


def test_what_blocks_cannot_fill_stays_as_it_is() -> None:
    """A prime number of channels has no blocks."""
    assert x86.conv2d_layouts(64, 101, target="llvm -mcpu=skylake-avx512") is None


def test_units_are_packed_as_wide_as_a_tile() -> None:
    """Whole vectors; a layer narrower than one is a single block."""
    assert x86.dense_block(1024, 1024, 1024, target="llvm -mcpu=haswell") % 8 == 0
    assert x86.dense_block(5, 10, 100, target="llvm -mcpu=haswell") == 5
