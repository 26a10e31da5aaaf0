"""Which products go to the matrix unit, and in which tiles."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tvm
from tilewright import te
from tilewright.schedule.cpu.contraction import classify, vector_position
from tilewright.schedule.cpu.graph import materialized_stages
from tilewright.schedule.cpu.matrix_unit import has_matrix_unit, matrix_tile
from tilewright.target.cpu import describe_cpu
from tilewright.te.schedule.schedule import create_schedule
from tilewright.topi import x86

SAPPHIRE = "llvm -mcpu=sapphirerapids"


def tile_of(out: Any, target: str = SAPPHIRE) -> Any:
    """The tile of the last stage."""
    materialized = materialized_stages(create_schedule([out.op]))[-1]
    position = vector_position(materialized)
    assert position is not None
    return matrix_tile(materialized, classify(materialized, position, 16), describe_cpu(target))


def dense(rows: int, depth: int = 128, units: int = 64) -> Any:
    data, weight = (
        te.placeholder((rows, depth), "uint8"),
        te.placeholder((units // 32, depth // 4, 32, 4), "int8"),
    )
    with tvm.target.Target(SAPPHIRE):
        return x86.dense_pack(data, weight, None, "int32")


@pytest.mark.parametrize(("rows", "expected"), [(1024, 32), (128, 32), (28, 28), (50, 25), (8, 8)])
def test_tiles_divide_the_rows(rows: int, expected: int) -> None:
    """Two tiles of sixteen rows where they fit, else as many rows as leave none over."""
    assert tile_of(dense(rows)) == ([expected, 32], 16)


def test_what_stays_in_vectors() -> None:
    """Few rows, steps of few words, and processors without the unit."""
    assert tile_of(dense(4)) is None
    assert tile_of(dense(64, depth=12)) is None
    assert tile_of(dense(64), "llvm -mcpu=cascadelake") is None


def test_a_convolution_takes_rows_of_the_image() -> None:
    """Where a row of the image is shorter than a tile, two rows of it are two tiles."""
    data = te.placeholder((1, 2, 16, 16, 64), "uint8")
    kernel = te.placeholder((2, 2, 3, 3, 16, 64, 4), "int8")
    with tvm.target.Target(SAPPHIRE):
        out = x86.conv2d_NCHWc_int8(data, kernel, 1, 0, 1, "NCHW64c", "NCHW64c")
    assert tile_of(out) == ([1, 1, 2, 14, 32], 16)


def test_systems() -> None:
    """The unit is asked for as Linux wants it; elsewhere it is not used."""
    assert has_matrix_unit(describe_cpu(SAPPHIRE), "int8")
    assert has_matrix_unit(describe_cpu(SAPPHIRE), "bfloat16")
    windows = describe_cpu(f"{SAPPHIRE} -mtriple=x86_64-pc-windows-msvc")
    assert not has_matrix_unit(windows, "int8")
