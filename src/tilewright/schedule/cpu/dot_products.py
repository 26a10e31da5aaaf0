"""Reductions along contiguous rows of their inputs, such as a GEMM with a transposed right operand: every result is
accumulated as a vector of partial sums, and several results at a time share the rows that they read."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.cpu.loops import decided_prefix, parallel_prefix
from tilewright.schedule.cpu.machine import lanes_of
from tilewright.schedule.cpu.row_reduction import (
    decided_vectors,
    partial_widths,
    reduce_in_vectors,
    row_length,
)
from tilewright.schedule.decisions import decide
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage

MOST_ROWS: Final = 8
"""Results at a time along the innermost axis: hardware prefetchers do not follow more streams well."""


def schedule_dot_products(
    schedule: Schedule,
    materialized: MaterializedStage,
    result: MaterializedStage | None,
    rows: Sequence[int],
    cpu: CPUDescription,
) -> None:
    """Schedule a reduction whose ``rows`` (positions of reduction axes) are contiguous, and the stage that reads it
    in place, if any."""
    lanes = lanes_of(cpu, materialized.operation.output(0).dtype)
    work = materialized.work()
    sizes = _tile_sizes(materialized, cpu)
    together = prod(sizes)
    vectors = decided_vectors(4) if together == 1 else 1
    widths = partial_widths(row_length(materialized, rows), lanes, vectors)
    partial = [schedule[tensor] for tensor in reduce_in_vectors(schedule, materialized, rows, widths)]
    root = materialized.stage if result is None else result.stage
    if not root.op.axis:
        return
    place = _tile_root(root, sizes, work, cpu, has_inner=bool(partial) or result is not None)
    inner = partial if result is None else [*partial, materialized.stage]
    for stage in inner:
        stage.compute_at(root, place)
        stage.set_scope("local")
        if together > 1:
            _unroll_tile(stage, sizes)


def _tile_sizes(materialized: MaterializedStage, cpu: CPUDescription) -> list[int]:
    """The tile of results along each data axis: a few along the two innermost axes along which results share loads."""
    axes = materialized.compute.axes
    sizes = [1] * len(axes)
    sharing = [
        number
        for number in range(len(axes) - 1, -1, -1)
        if extent_of(axes[number]) > 1
        and not all(read.moves_with(axes[number]) for read in materialized.reads)
    ][:2]
    # The code for the remainder of a dynamic extent is long already.
    known = [
        constant_extent(axis)
        for axis in (*(axes[number] for number in sharing), *materialized.compute.reduce_axis)
    ]
    if not sharing or None in known:
        return sizes
    # All factors are vectors: the rows of one input take some of the registers, the sums most of them.
    room = cpu.vector_registers - 2
    others = _near_divisor(axes[sharing[1]], 4 if room > 16 else 3) if len(sharing) > 1 else 1
    along = _near_divisor(axes[sharing[0]], min((room - others) // others, MOST_ROWS))
    extents = [extent_of(axes[number]) for number in sharing] + [1]
    along, others = decide("dot_tile", (along, others), lambda: _possible_tiles(extents[0], extents[1], room))
    sizes[sharing[0]] = along
    if len(sharing) > 1:
        sizes[sharing[1]] = others
    return sizes


def _possible_tiles(along: int, others: int, room: int) -> list[tuple[int, int]]:
    """Tiles to try: those whose sums, and the rows that they share, fit in the registers."""
    return [
        (size, other)
        for size in range(1, min(along, 2 * MOST_ROWS) + 1)
        for other in range(1, min(others, MOST_ROWS) + 1)
        if size * other + min(size, other) <= room and (along % size == 0 or size > 2)
    ]


def _near_divisor(axis: IterVar, most: int) -> int:
    """The largest divisor of the extent up to ``most``; ``most`` itself if that divisor is at most half of it."""
    extent = constant_extent(axis)
    if extent is None:
        return most
    size = next(size for size in range(min(most, extent), 0, -1) if extent % size == 0)
    return size if 2 * size > most or size == extent else min(most, extent)


def _tile_root(root: Stage, sizes: Sequence[int], work: int, cpu: CPUDescription, has_inner: bool) -> IterVar:
    """Splits the result into tiles, runs them in parallel, and returns the loop around a tile."""
    outer: list[IterVar] = []
    inner: list[IterVar] = []
    counts: list[int | None] = []
    for axis, size in zip(list(root.op.axis), sizes, strict=True):
        extent = constant_extent(axis)
        if size == 1:
            outer.append(axis)
            counts.append(extent)
        else:
            rest, part = root.split(axis, factor=size)
            outer.append(rest)
            inner.append(part)
            counts.append(None if extent is None else -(-extent // size))
    if len(outer) > 1 and sizes[-1] > 1 and sizes[-2] > 1:
        # The rows of the innermost axis stay in L1 while those of the other are streamed.
        outer[-2:], counts[-2:] = [outer[-1], outer[-2]], [counts[-1], counts[-2]]
    root.reorder(*outer, *inner)
    for axis in inner if has_inner else ():
        root.unroll(axis)
    number = decided_prefix(cpu, parallel_prefix(cpu, counts, work), len(outer), work)
    if number == 0:
        return outer[-1]
    fused = root.fuse(*outer[:number])
    root.parallel(fused)
    return fused if number == len(outer) else outer[-1]


def _unroll_tile(stage: Stage, sizes: Sequence[int]) -> None:
    """Moves the results of a tile inside the loop over their rows, and unrolls them."""
    data = list(stage.op.axis[: len(sizes)])
    tiled = [axis for axis, size in zip(data, sizes, strict=True) if size > 1]
    others = [axis for axis in stage.leaf_iter_vars if not any(axis is one for one in tiled)]
    lanes = [axis for axis in others if any(axis is one for one in stage.op.axis[len(sizes) :])]
    first = [axis for axis in others if not any(axis is one for one in lanes)]
    stage.reorder(*first, *tiled, *lanes)
    for axis in tiled:
        stage.unroll(axis)
