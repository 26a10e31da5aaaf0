"""A reduction and what follows it, computed tile by tile with the accumulators in registers.

The stage that stores the result is cut into tiles; the reduction is computed at each tile, into a buffer so small
that it lives in registers, and what follows (a bias, a residual, an activation) is applied to the tile before it
is stored. Loops around the tiles are ordered so that what the inner ones read again stays in the second cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.stage import Stage
from tilewright.topi.cpu.access import Read, constant_extent, extent_of
from tilewright.topi.cpu.contraction import Contraction, block_of, step_of
from tilewright.topi.cpu.graph import Kept
from tilewright.topi.cpu.loops import parallel_prefix
from tilewright.topi.cpu.machine import lanes_of

MOST_UNROLLED: Final = 64
"""Vector operations that the inner loop of a reduction is unrolled to."""
MOST_UNROLLED_WINDOW: Final = 160
"""The same where the whole reduction is unrolled, as over the window of a pooling."""


@dataclass(frozen=True)
class OuterLoop:
    """A loop around the tiles: its axis, its iterations (None if not constant), whether its last tile is cut off."""

    axis: IterVar
    count: int | None
    is_cut: bool


def tile_stages(
    result: Stage,
    reduction: Stage,
    kept: Kept,
    found: Contraction,
    sizes: Sequence[int],
    cpu: CPUDescription,
    first: Sequence[int] = (),
) -> IterVar | None:
    """Schedule both stages with tiles of these sizes, one for each data axis.

    ``first`` are axes whose loops are outermost, in this order, and parallel; the loop that they become is given
    back, for producers to be computed at.
    """
    axes = list(result.op.axis)
    outer: dict[int, OuterLoop] = {}
    inner: dict[int, IterVar] = {}
    for position, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        extent = constant_extent(axis)
        if extent is not None and size >= extent:
            inner[position] = axis
        elif size == 1:
            outer[position] = OuterLoop(axis, extent, False)
        else:
            rest, part = result.split(axis, factor=size)
            count = None if extent is None else -(-extent // size)
            outer[position] = OuterLoop(rest, count, extent is None or extent % size != 0)
            inner[position] = part
    order = _tile_order(found, range(len(axes)))
    inner_axes = [inner[position] for position in order if position in inner]
    loops = _outer_order(result, kept, found, outer, sizes, cpu, first)
    result.reorder(*[loop.axis for loop in loops], *inner_axes)
    shared, place = _parallel(result, kept, loops, cpu, len([number for number in first if number in outer]))
    for axis in inner_axes[:-1]:
        result.unroll(axis)
    _vectorize(result, found.vector, inner)
    reduction.compute_at(result, place)
    reduction.set_scope("local")
    lanes = lanes_of(cpu, kept.operation.output(0).dtype)
    _reduce_in_tile(reduction, kept, found, sizes, lanes)
    return shared


def _tile_order(found: Contraction, positions: Sequence[int]) -> list[int]:
    """The order of the loops inside of a tile: rows, panels, the vector innermost."""
    last = [number for number in (found.panel_axis, found.vector) if number is not None]
    return [number for number in positions if number not in last] + last


def _vectorize(stage: Stage, vector: int, inner: dict[int, IterVar]) -> None:
    if vector in inner and (constant_extent(inner[vector]) or 2) > 1:
        stage.vectorize(inner[vector])


def _outer_order(
    result: Stage,
    kept: Kept,
    found: Contraction,
    outer: dict[int, OuterLoop],
    sizes: Sequence[int],
    cpu: CPUDescription,
    first: Sequence[int],
) -> list[OuterLoop]:
    """The loops around the tiles, outermost first."""
    leading = [outer[position] for position in first if position in outer]
    rest = [position for position in outer if position not in first]
    if not found.is_product:
        return leading + [outer[position] for position in rest]
    batch = [outer[position] for position in rest if position in found.batch_axes]
    panels = [position for position in rest if position in found.panel_axes or position == found.vector]
    others = [
        outer[position] for position in rest if position not in found.batch_axes and position not in panels
    ]
    around, within = [outer[position] for position in panels], list[OuterLoop]()
    axes = kept.compute.axes
    if panels and found.scalar_bytes(axes) > cpu.l2_bytes // 2:
        # All rows pass by as many panels as the second cache holds well.
        main = max(panels, key=lambda position: outer[position].count or 0)
        steps = prod(extent_of(axis) for axis in kept.compute.reduce_axis)
        width = prod(sizes[number] for number in {found.vector, *found.panel_axes})
        together = cpu.l2_bytes // 4 // max(4 * width * steps, 1)
        loop = outer[main]
        if together > 1 and loop.count is not None and loop.count > 1:
            factor = _best_group(loop.count, min(together, loop.count))
            groups, within_group = result.split(loop.axis, factor=factor)
            around = [outer[position] for position in panels if position != main]
            around.append(OuterLoop(groups, -(-loop.count // factor), loop.count % factor != 0))
            within = [OuterLoop(within_group, factor, loop.is_cut)]
    return leading + batch + around + others + within


def _best_group(count: int, most: int) -> int:
    """The largest divisor up to ``most``, unless it is far from it."""
    divisor = next(size for size in range(most, 0, -1) if count % size == 0)
    return divisor if 2 * divisor > most else most


def _parallel(
    result: Stage, kept: Kept, loops: list[OuterLoop], cpu: CPUDescription, leading: int
) -> tuple[IterVar | None, IterVar]:
    """Make the first loops parallel; give the loop that the leading ones became, and the innermost loop."""
    work = kept.work()
    if not loops:
        return None, result.fuse()
    if leading:
        shared = result.fuse(*[loop.axis for loop in loops[:leading]])
        if parallel_prefix(cpu, [loop.count for loop in loops[:leading]], work):
            result.parallel(shared)
        return shared, loops[-1].axis if len(loops) > leading else shared
    # A loop whose last tile is cut off is not fused with others: its end could no longer be split off.
    whole = next((number for number, loop in enumerate(loops) if loop.is_cut), len(loops))
    counts = [loop.count for loop in loops]
    number = parallel_prefix(cpu, counts[:whole], work)
    enough = prod(count or 32 for count in counts[:number]) >= cpu.cores
    if number == 0 or not enough:
        number = parallel_prefix(cpu, counts, work)
    if number == 0:
        return None, loops[-1].axis
    fused = result.fuse(*[loop.axis for loop in loops[:number]])
    result.parallel(fused)
    return None, loops[-1].axis if len(loops) > number else fused


def _reduce_in_tile(
    reduction: Stage, kept: Kept, found: Contraction, sizes: Sequence[int], lanes: int
) -> None:
    """The loops of the reduction inside of one tile."""
    axes = list(reduction.op.axis)
    steps = _reduction_loops(reduction, kept, found)
    vectors = prod(size for position, size in enumerate(sizes) if position != found.vector)
    vectors *= -(-sizes[found.vector] // lanes)
    tiled = [position for position in _tile_order(found, range(len(axes))) if sizes[position] > 1]
    fixed = [axes[position] for position in range(len(axes)) if position not in tiled]
    extents = [extent for _, extent in steps]
    total = prod(extents) if None not in extents else None  # type: ignore[arg-type]
    if total is not None and vectors * total <= MOST_UNROLLED_WINDOW:
        for axis, _ in steps:
            reduction.unroll(axis)
    elif steps:
        axis, extent = steps[-1]
        factor = _unroll_factor(extent, MOST_UNROLLED // max(vectors, 1))
        if factor > 1:
            rest, part = reduction.split(axis, factor=factor)
            reduction.unroll(part)
            steps = [*steps[:-1], (rest, None), (part, factor)]
    reduction.reorder(*fixed, *[axis for axis, _ in steps], *[axes[position] for position in tiled])
    for position in tiled:
        if position == found.vector:
            reduction.vectorize(axes[position])
        else:
            reduction.unroll(axes[position])


def _unroll_factor(extent: int | None, most: int) -> int:
    """The largest number of steps up to ``most`` that divides the loop."""
    if extent is None:
        return 1
    return next((factor for factor in range(min(most, extent, 8), 1, -1) if extent % factor == 0), 1)


def _reduction_loops(reduction: Stage, kept: Kept, found: Contraction) -> list[tuple[IterVar, int | None]]:
    """The reduction axes, blocks of the layout split off, in the order in which the panel lies in memory."""
    reads: Sequence[Read] = found.panel or kept.reads
    main = max(
        reads, key=lambda read: sum(read.moves_with(axis) for axis in kept.compute.reduce_axis), default=None
    )
    loops: list[tuple[int, int, IterVar, int | None]] = []
    for number, (axis, known) in enumerate(
        zip(reduction.op.reduce_axis, kept.compute.reduce_axis, strict=True)
    ):
        block, extent = block_of(known, kept.reads), constant_extent(known)
        if block is None or extent is None:
            loops.append((step_of(main, known, 1) if main else 0, -number, axis, extent))
        else:
            rest, part = reduction.split(axis, factor=block)
            loops.append((step_of(main, known, block) if main else 0, -number, rest, extent // block))
            loops.append((step_of(main, known, 1) if main else 0, -number, part, block))
    loops.sort(key=lambda loop: loop[:2], reverse=True)
    return [(axis, extent) for _, _, axis, extent in loops]
