"""The choice between the direct and the Winograd convolution."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.schedule.cpu.winograd_model import (
    Convolution,
    choose_winograd_blocks,
    choose_winograd_tile,
)
from tilewright.target.cpu import describe_cpu

SERVER = describe_cpu("llvm -mcpu=skylake-avx512")
LARGE = Convolution(1, 64, 64, 56, 56, 16)


def test_large_images_are_filtered() -> None:
    """Many tiles and few weights: fewer products are all that counts."""
    assert choose_winograd_tile(SERVER, LARGE, 6) in (4, 6)


def test_small_images_are_not() -> None:
    """With four tiles of 512 channels the transformed weight costs more than it saves."""
    assert choose_winograd_tile(SERVER, Convolution(1, 512, 512, 7, 7, 16), 6) is None


@pytest.mark.parametrize("largest", [0, 2, 4, 6])
def test_a_limit_is_kept(largest: int) -> None:
    """No tile larger than asked for; none at all with zero."""
    tile = choose_winograd_tile(SERVER, LARGE, largest)
    assert tile is None if largest == 0 else tile is not None and tile <= largest


@pytest.mark.parametrize("cores", [1, 2, 8, 64])
@pytest.mark.parametrize("size", [7, 14, 56, 224])
def test_blocks_are_for_all_cores(cores: int, size: int) -> None:
    """There are as many pieces of work as cores, where the convolution has that many at all; none is cut off."""
    cpu = replace(SERVER, cores=cores)
    convolution = Convolution(1, 128, 128, size, size, 16)
    blocks, cycles = choose_winograd_blocks(cpu, convolution, 4)
    rows = -(-size // 4)
    pieces = rows // blocks.rows * (8 // blocks.group if blocks.inputs_first else 1)
    assert rows % blocks.rows == 0
    assert 8 % blocks.group == 0
    assert pieces >= min(cores, rows * 8) // 2
    assert cycles > 0


def test_weights_stay_small() -> None:
    """Where tiles of four would take 38 MB for a layer, tiles of two are taken; with fewer channels, larger ones."""
    assert choose_winograd_tile(SERVER, Convolution(1, 512, 512, 28, 28, 16), 6) == 2
    assert choose_winograd_tile(SERVER, Convolution(1, 256, 256, 56, 56, 16), 6) in (4, 6)


def test_integers_without_dot_products_of_bytes() -> None:
    """Pairs of int16 are multiplied either way without VNNI: fewer of them win sooner than against lanes of four."""
    cpu = describe_cpu("llvm -mcpu=haswell")
    packed = Convolution(1, 128, 128, 28, 28, 16, element_bytes=2, vectors=2, products=2, direct_products=2)
    assert choose_winograd_tile(cpu, packed, 6, tiles=(2, 4)) == 4
    assert choose_winograd_tile(cpu, replace(packed, direct_products=16), 6, tiles=(2, 4)) is None


def test_weights_that_are_read_again_come_from_l3() -> None:
    """295 KB of transformed weights do not fit in 256 KB of L2. Each block but the first reads them from L3, which is
    faster than memory, so that larger tiles are still worth it; without L3 they are not."""
    cpu = describe_cpu("llvm -mcpu=haswell")
    packed = Convolution(1, 64, 64, 56, 56, 16, element_bytes=2, vectors=2, products=2, direct_products=2)
    assert choose_winograd_tile(cpu, packed, 6, tiles=(2, 4)) == 4
    assert choose_winograd_tile(replace(cpu, l3_bytes=0), packed, 6, tiles=(2, 4)) == 2
