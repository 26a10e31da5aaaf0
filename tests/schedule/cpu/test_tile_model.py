"""Register tiles: what is chosen for layers that everybody knows, and that it always fits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.schedule.cpu.tile_model import Tile, TileProblem, choose_tile
from tilewright.target.cpu import describe_cpu

AVX512, AVX2, NEON = (
    describe_cpu(f"llvm {options}")
    for options in ("-mcpu=skylake-avx512", "-mcpu=haswell", "-mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
)


def blocked(size: int, outputs: int, steps: int, lanes: int) -> TileProblem:
    """A convolution with channels in blocks of a vector."""
    return TileProblem((size, size), lanes, lanes, outputs // lanes, lanes, steps, True, True)


@pytest.mark.parametrize(
    ("size", "outputs", "steps", "expected"),
    [
        (56, 64, 576, Tile((14, 1), 16, 2)),
        (28, 128, 1152, Tile((14, 1), 16, 2)),
        (14, 256, 2304, Tile((14, 1), 16, 2)),
        (7, 512, 4608, Tile((7, 2), 16, 2)),
    ],
)
def test_convolutions_of_resnet_50(size: int, outputs: int, steps: int, expected: Tile) -> None:
    """Fourteen rows of two vectors, over two lines of the image where a line has but seven."""
    assert choose_tile(AVX512, blocked(size, outputs, steps, 16)) == expected


@pytest.mark.parametrize(("size", "outputs"), [(56, 64), (28, 128), (14, 256), (7, 512)])
def test_a_tile_takes_blocks_of_two_vectors_whole(size: int, outputs: int) -> None:
    """Halves of two blocks would be apart in memory, and the kernel would copy its weights at each run."""
    problem = TileProblem((size, size), 32, 32, outputs // 32, 16, outputs * 9 // 4, True, True)
    chosen = choose_tile(AVX512, problem)
    assert (chosen.rows[0] * chosen.rows[1], chosen.columns, chosen.panels) == (14, 32, 1)


@pytest.mark.parametrize(
    ("size", "outputs", "steps"),
    [(56, 64, 64), (56, 64, 576), (28, 512, 128), (28, 256, 512), (14, 1024, 256), (7, 512, 4608)],
)
def test_sixteen_registers_hold_ten_accumulators_or_more(size: int, outputs: int, steps: int) -> None:
    """Eight cover the latency of two units exactly, and in practice stay a fifth behind."""
    tile = choose_tile(AVX2, blocked(size, outputs, steps, 8))
    assert tile.accumulators // 8 >= 10


def test_products_take_two_vectors_or_more() -> None:
    """One vector a row would load a number for each multiply-add."""
    for cpu in (AVX512, AVX2, NEON):
        lanes = cpu.lanes(32)
        tile = choose_tile(cpu, TileProblem((1024, 1), 1024, 4 * lanes, 1, lanes, 1024, True, True))
        assert tile.columns >= 2 * lanes and tile.rows[0] >= 4


def test_one_row_takes_vectors_side_by_side() -> None:
    """A single row keeps as many sums going as the columns give."""
    assert choose_tile(AVX512, TileProblem((1, 1), 4096, 64, 1, 16, 4096, True, True)) == Tile((1, 1), 64, 1)


def test_unknown_extents_have_small_tiles() -> None:
    """What is left over at an end that is not constant is computed in smaller tiles, and should be little."""
    rows = choose_tile(AVX512, TileProblem((None, 1), 768, 64, 1, 16, 768, True, True))
    columns = choose_tile(AVX512, TileProblem((64, 1), None, 64, 1, 16, 768, True, True))
    assert rows.rows[0] <= 6 and columns.columns == 16 and columns.rows[0] <= 6


def test_single_vectors_of_unknown_extents_hide_the_latency() -> None:
    """With one vector a row, there are as many rows as multiply-adds in flight; windows that overlap stay small."""
    in_flight = AVX512.fma_units * AVX512.fma_latency
    assert choose_tile(AVX512, TileProblem((None, 1), 16, 16, 1, 16, 108, True, True)).rows == (in_flight, 1)
    assert choose_tile(AVX512, TileProblem((None, 1), 16, 16, 1, 16, 9, False, False)).rows[0] <= 6


sizes = st.integers(1, 70)


@given(
    st.sampled_from([AVX512, AVX2, NEON]),
    st.tuples(sizes | st.none(), sizes),
    sizes,
    sizes,
    st.integers(1, 5000),
    st.booleans(),
    st.booleans(),
)
def test_a_tile_fits_the_registers_and_the_axes(
    cpu: object,
    rows: tuple[int | None, int],
    columns: int,
    panels: int,
    steps: int,
    shares: bool,
    scalars: bool,
) -> None:
    """Accumulators, panel and one number at a time never need more registers than there are; of several panels one
    vector at a time, with the numbers of all rows, is enough. NEON keeps the numbers of several steps for every row."""
    lanes = cpu.lanes(32)  # type: ignore[attr-defined]
    tile = choose_tile(cpu, TileProblem(rows, columns, 4 * lanes, panels, lanes, steps, shares, scalars))  # type: ignore[arg-type]
    vectors = -(-tile.columns // lanes) * tile.panels
    count = tile.rows[0] * tile.rows[1] * vectors
    staying = min(vectors, tile.rows[0] * tile.rows[1]) if tile.panels > 1 else vectors
    if cpu is NEON and scalars and shares:
        staying = vectors + tile.rows[0] * tile.rows[1]
    assert count == 1 or count + (staying if shares else 1) + 1 <= cpu.vector_registers  # type: ignore[attr-defined]
    assert tile.columns <= columns and tile.panels <= panels and tile.rows[1] <= rows[1]


def test_windows_of_narrow_integers_leave_a_register_to_widen_in() -> None:
    """A depthwise convolution of bytes loads what it multiplies into a register; fourteen accumulators would spill."""
    window = TileProblem((14, 14), 16, 8, 1, 8, 25, False, False, window=5)
    assert choose_tile(AVX2, window).accumulators == 14 * 8
    narrow = choose_tile(AVX2, replace(window, widens=True))
    assert narrow.accumulators <= 13 * 8
