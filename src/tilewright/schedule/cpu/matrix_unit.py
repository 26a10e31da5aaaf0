"""GEMM tiles for the matrix unit of a CPU (AMX).

A step multiplies a tile of (rows, packed lanes) by one of (packed lanes, columns). Two row tiles and two column tiles
share their loads; the four tiles of sums stay in the unit during the whole reduction. A multiplication takes sixteen
cycles, however few rows the left tile has: each column tile has to get into the unit. The loads, at two tile rows per
cycle, are done meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final

from tilewright.ir.expr import Call, IterVar
from tilewright.ir.functor import post_order
from tilewright.schedule.cpu.access import constant_extent, extent_of, values_of
from tilewright.schedule.cpu.contraction import Contraction, step_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.cpu.tile_model import TAIL_PENALTY
from tilewright.support.dtype import DataType
from tilewright.target.cpu import CPUDescription

TILE: Final = 16
"""Rows of a tile, packed lanes of a row, and columns."""
FEWEST_ROWS: Final = 8
FEWEST_LANES: Final = 4
"""Rows and packed lanes below which vectors are as fast: a tile of sixteen rows takes sixteen cycles, and vectors eight
for each packed lane."""
START: Final = 80
"""Cycles to store the sums, and to begin with the next tile."""
ROW: Final = 4
"""Cycles to store a row of results, per column tile."""

_FEATURES: Final = {
    "tir.dot_uint8_int8": "amx-int8",
    "tir.dot_int8_int8": "amx-int8",
    "tir.dot_bfloat16": "amx-bf16",
}


def has_matrix_unit(cpu: CPUDescription, dtype: DataType | str) -> bool:
    """True if the CPU has a matrix unit for a type, and the operating system can enable it."""
    feature = "amx-bf16" if DataType(dtype).is_float else "amx-int8"
    return feature in cpu.features and cpu.triple.startswith("x86_64") and "linux" in cpu.triple


def matrix_tile(
    materialized: MaterializedStage, found: Contraction, cpu: CPUDescription
) -> tuple[list[int], int] | None:
    """The tile size along each data axis, and the packed lanes per step; None if the matrix unit cannot be used."""
    names = {
        str(getattr(part.op, "name", ""))
        for value in values_of(materialized.compute)
        for part in post_order(value)
        if isinstance(part, Call)
    }
    needed = [feature for name, feature in _FEATURES.items() if name in names]
    if len(needed) != 1 or needed[0] not in cpu.features or "linux" not in cpu.triple:
        return None
    axes, reduced = materialized.compute.axes, materialized.compute.reduce_axis
    if not found.is_product or found.gathers or None in [constant_extent(axis) for axis in (*axes, *reduced)]:
        return None
    columns = extent_of(axes[found.vector])
    width = next((size for size in (2 * TILE, TILE) if columns % size == 0), 0)
    width = width if all(read.is_contiguous(axes[found.vector], width) for read in found.panel) else 0
    inner = min(
        (axis for axis in reduced if extent_of(axis) > 1),
        key=lambda axis: min(step_of(read, axis, 1) for read in found.panel),
        default=None,
    )
    if not width or inner is None or any(step_of(read, inner, 1) != 1 for read in found.scalars):
        return None
    packed_lanes = next(size for size in range(TILE, 0, -1) if extent_of(inner) % size == 0)
    joined = packed_lanes * _neighbours(found, reduced, inner, packed_lanes)
    extents = [extent_of(axes[position]) for position in found.row_axes] + [1, 1]
    if joined < FEWEST_LANES or prod(extents) < FEWEST_ROWS:
        return None
    steps = prod(extent_of(axis) for axis in reduced) // joined
    rows = min(_candidates(extents), key=lambda tile: _cycles(extents, tile, width, steps))
    sizes = [1] * len(axes)
    for position, size in zip(found.row_axes, rows, strict=False):
        sizes[position] = size
    sizes[found.vector] = width
    return sizes, packed_lanes


def _neighbours(found: Contraction, reduced: Sequence[IterVar], inner: IterVar, packed_lanes: int) -> int:
    """How many steps are one: the taps of a row whose packed lanes follow each other in memory, as the pass that maps
    products to the unit joins them."""
    if extent_of(inner) != packed_lanes:
        return 1
    for axis in reduced:
        taps = extent_of(axis)
        follows = all(
            step_of(read, axis, 1) == packed_lanes * step_of(read, inner, 1)
            for read in (*found.panel, *found.scalars)
        )
        if axis is not inner and taps > 1 and follows and packed_lanes * taps <= TILE:
            return taps
    return 1


def _candidates(extents: list[int]) -> list[tuple[int, int]]:
    """Up to two tiles along one axis, or one tile of the whole inner axis for each of two outer iterations."""
    inner, outer = extents[:2]
    found = [(size, 1) for size in range(1, min(inner, 2 * TILE) + 1)]
    if inner <= TILE and outer > 1:
        found.append((inner, 2))
    return found


def _cycles(extents: list[int], tile: tuple[int, int], width: int, steps: int) -> float:
    """The cycles of all tiles of these sizes for one panel of columns."""
    cuts = []
    for extent, size in zip(extents, tile, strict=False):
        whole, rest = divmod(extent, size)
        cuts.append([(part, count) for part, count in ((size, whole), (rest, 1)) if part and count])
    total = 0.0
    for (one, many), (other, others) in product(*cuts):
        groups, parts = -(-one // TILE) * other, width // TILE
        total += many * others * (START + ROW * one * other * parts + steps * groups * parts * TILE)
    return total * TAIL_PENALTY ** sum(len(cut) > 1 for cut in cuts)
