"""Split the reduction of GEMMs with few rows and a long K, whose left matrix does not fit in L2.

A piece of a panel stays in L1 while all rows are streamed past it; each tile of rows accumulates its piece in registers
and adds it to a buffer, to which the epilogue is applied after the last piece. The tile is wide rather than high: every
row is a separate memory stream, and long rows a power of two apart map to the same few cache sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.contraction import Contraction
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.cpu.loops import run_parallel
from tilewright.schedule.cpu.machine import lanes_of
from tilewright.schedule.decisions import decide
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.stage import Stage

MOST_ROWS: Final = 256
"""Rows up to which loading the panels from memory is the bottleneck; with more rows, splitting gains nothing."""
FEWEST_TILES: Final = 4
"""Row tiles from which a panel is reused often enough to be worth keeping in L1."""
UNROLLED: Final = 4
"""The unroll factor of the reduction loop."""


@dataclass(frozen=True)
class ReductionSplit:
    """The register tile, in elements, and the reduction steps per piece."""

    rows: int
    columns: int
    depth: int


def choose_reduction_split(
    cpu: CPUDescription, rows: int, columns: int, depth: int, dtype: str
) -> ReductionSplit | None:
    """How to split a GEMM; None if it should not be split because L2 holds the left matrix, or several panels at a time
    past which all rows can be streamed."""
    lanes = lanes_of(cpu, dtype)
    size = cpu.vector_bits // 8 // lanes
    vectors = max(cpu.vector_registers // 8, 1)
    width, height = vectors * lanes, _height(cpu, vectors)
    if columns % width or not FEWEST_TILES * height <= rows <= MOST_ROWS:
        return None
    if size * rows * depth <= cpu.l2_bytes // 2 or size * width * depth <= cpu.l2_bytes // 4:
        return None
    most = _most_steps(cpu, size * width)
    longest = max(_piece_lengths(depth, most), default=0)
    return ReductionSplit(height, width, longest) if 2 * longest > most else None


def _height(cpu: CPUDescription, vectors: int) -> int:
    """The rows of a register tile that is so many vectors wide."""
    return (cpu.vector_registers - vectors - 1) // vectors


def _most_steps(cpu: CPUDescription, step_bytes: int) -> int:
    """The longest piece of a panel that stays in L1."""
    return cpu.l1d_bytes * 3 // 4 // step_bytes


def _piece_lengths(depth: int, most: int) -> list[int]:
    return [steps for steps in range(UNROLLED, most + 1, UNROLLED) if depth % steps == 0]


def possible_splits(
    cpu: CPUDescription, rows: int, columns: int, depth: int, dtype: str, widest: int
) -> list[ReductionSplit]:
    """Splits to try: panels of one vector up to ``widest`` elements, in pieces that fill most of L1, half of it, or a
    quarter."""
    lanes = lanes_of(cpu, dtype)
    size = cpu.vector_bits // 8 // lanes
    found = []
    for vectors in range(1, widest // lanes + 1):
        width, height = vectors * lanes, _height(cpu, vectors)
        if columns % width or rows < 2 * height:
            continue
        most = _most_steps(cpu, size * width)
        for limit in (most, most // 2, most // 4):
            longest = max(_piece_lengths(depth, limit), default=0)
            if 2 * longest > limit and longest < depth:
                found.append(ReductionSplit(height, width, longest))
    return found


def reduction_split_of(
    materialized: MaterializedStage, found: Contraction, cpu: CPUDescription
) -> ReductionSplit | None:
    """How to split a reduction, if it is a plain GEMM whose right matrix has panels of a matching width: as the model
    says, unless a tuner wants another split or none."""
    axes = materialized.compute.axes
    every = (*axes, *materialized.compute.reduce_axis)
    if not found.is_product or found.vector != 1 or len(axes) != 2 or len(every) != 3:
        return None
    if any(constant_extent(axis) is None for axis in every):
        return None
    rows, columns, depth = (extent_of(axis) for axis in every)
    dtype = str(materialized.operation.output(0).dtype)
    reduction_split = choose_reduction_split(cpu, rows, columns, depth, dtype)
    lanes = lanes_of(cpu, dtype)
    widths = [count * lanes for count in (4, 3, 2, 1)]
    widest = next((width for width in widths if _has_panels(found, axes[1], width)), 0)
    if reduction_split is not None and not _has_panels(found, axes[1], reduction_split.columns):
        reduction_split = None
    chosen = decide(
        "split_reduction",
        _as_sizes(reduction_split),
        lambda: [
            None,
            *map(_as_sizes, possible_splits(cpu, rows, columns, depth, dtype, widest)),
        ],
    )
    return None if chosen is None else ReductionSplit(*chosen)


def _has_panels(found: Contraction, axis: IterVar, width: int) -> bool:
    return all(read.is_contiguous(axis, width) for read in found.panel)


def _as_sizes(reduction_split: ReductionSplit | None) -> tuple[int, ...] | None:
    return None if reduction_split is None else tuple(vars(reduction_split).values())


def schedule_split_reduction(
    result: Stage,
    reduction: Stage,
    materialized: MaterializedStage,
    reduction_split: ReductionSplit,
    cpu: CPUDescription,
) -> None:
    """Schedule the GEMM and the stage that stores its results."""
    row, column = result.op.axis
    panel, lane = result.split(column, factor=reduction_split.columns)
    result.reorder(panel, row, lane)
    result.vectorize(lane)
    run_parallel(result, cpu, [panel], [extent_of(column) // reduction_split.columns], materialized.work())
    _add_pieces(result, panel, reduction, reduction_split)


def _add_pieces(result: Stage, place: IterVar, reduction: Stage, reduction_split: ReductionSplit) -> None:
    """Accumulates all pieces for the rows and the panel of one iteration of the result's loop."""
    number, _ = reduction.split(reduction.op.reduce_axis[0], factor=reduction_split.depth)
    schedule = reduction.schedule
    inside = schedule[schedule.rfactor(reduction.op.output(0), number)]
    reduction.compute_at(result, place)
    row, lane = reduction.op.axis
    tile, row = reduction.split(row, factor=reduction_split.rows)
    reduction.reorder(*reduction.op.reduce_axis, tile, row, lane)
    reduction.unroll(row)
    reduction.vectorize(lane)
    reduction.pragma(tile, "loop_partition_hint")
    _sum_in_registers(inside, reduction, tile)


def _sum_in_registers(piece: Stage, reduction: Stage, tile: IterVar) -> None:
    piece.compute_at(reduction, tile)
    piece.set_scope("local")
    number, row, lane = piece.op.axis
    step, unrolled = piece.split(piece.op.reduce_axis[0], factor=UNROLLED)
    piece.reorder(number, step, unrolled, row, lane)
    piece.unroll(unrolled)
    piece.unroll(row)
    piece.vectorize(lane)
    piece.pragma(step, "prefetch_next_panel")
