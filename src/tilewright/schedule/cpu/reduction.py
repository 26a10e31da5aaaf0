"""Scheduling reductions: along columns in register tiles, along rows in vectors of partial results."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.contraction import Contraction, bytes_of_read, classify, vector_position
from tilewright.schedule.cpu.dot_products import schedule_dot_products
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.cpu.injective import schedule_injective_inside, schedule_injective_root
from tilewright.schedule.cpu.loops import PLANNED_CORES
from tilewright.schedule.cpu.machine import lanes_of
from tilewright.schedule.cpu.matrix_unit import matrix_tile
from tilewright.schedule.cpu.row_reduction import row_reduction_axes
from tilewright.schedule.cpu.split_reduction import reduction_split_of, schedule_split_reduction
from tilewright.schedule.cpu.tile_model import Tile, TileProblem, choose_tile, ranked_tiles
from tilewright.schedule.cpu.tile_schedule import is_scattered, tile_stages, window_of
from tilewright.schedule.decisions import decide
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor

GATHERING_ROWS: Final = 4
TILES_TO_TRY: Final = 32
"""Of the register tiles, as the model ranks them, those that a tuner may choose from."""


def schedule_reduction(
    schedule: Schedule,
    materialized: MaterializedStage,
    result: MaterializedStage | None,
    producers: Sequence[MaterializedStage],
    shared: Sequence[int],
    cpu: CPUDescription,
) -> None:
    """Schedule a reduction with the stage that reads it in place (``result``; if None, a cache-write stage is created)
    and the producers that only it reads.

    ``shared`` are the positions of the data axes along which the producers can be computed slice by slice.
    """
    lanes = lanes_of(cpu, materialized.operation.output(0).dtype)
    rows = row_reduction_axes(materialized, lanes)
    vector = vector_position(materialized)
    along_columns = vector is not None and _columns_fit(materialized, vector, lanes, bool(rows))
    if rows and vector is not None and _columns_fit(materialized, vector, lanes, False):
        along_columns = decide("along_columns", along_columns, lambda: [True, False])
    if rows and not along_columns:
        for producer in producers:
            schedule_injective_root(producer, cpu)
        schedule_dot_products(schedule, materialized, result, rows, cpu)
        return
    stages = _with_result(schedule, materialized, result)
    if vector is None:
        _in_plain_loops(*stages, materialized, producers, cpu)
        return
    found = classify(materialized, vector, lanes)
    matrix = matrix_tile(materialized, found, cpu)
    reduction_split = None if matrix or producers else reduction_split_of(materialized, found, cpu)
    if reduction_split is not None:
        schedule_split_reduction(*stages, materialized, reduction_split, cpu)
        return
    sizes, packed_lanes = matrix or (tile_sizes(materialized, found, lanes, cpu), 0)
    leading = _leading(materialized, found, producers, shared, sizes, cpu)
    slices = None
    if not leading and not packed_lanes:
        slices = _slices_of_rows(materialized, found, producers, sizes, cpu)
        leading = [slices[0]] if slices and producers else []
    place = tile_stages(*stages, materialized, found, sizes, cpu, leading, packed_lanes, slices)
    for producer in producers:
        if place is None:
            schedule_injective_root(producer, cpu)
        else:
            schedule_injective_inside(producer, stages[0], place, cpu)


def _columns_fit(materialized: MaterializedStage, vector: int, lanes: int, has_rows: bool) -> bool:
    """True if loads are contiguous along the innermost data axis, and that is long enough for vectors."""
    axis = materialized.compute.axes[vector]
    extent = extent_of(axis)
    contiguous = all(read.is_contiguous(axis, min(lanes, extent)) for read in materialized.reads)
    return contiguous and (extent >= lanes // 2 or not has_rows)


def _with_result(
    schedule: Schedule, materialized: MaterializedStage, result: MaterializedStage | None
) -> tuple[Stage, Stage]:
    """The stage that stores the result, and the one that reduces."""
    if result is not None:
        return result.stage, materialized.stage
    cached: Sequence[Tensor] = schedule.cache_write(list(materialized.stage.op.outputs), "local")
    return materialized.stage, schedule[cached[0]]


def tile_problem(
    materialized: MaterializedStage, found: Contraction, lanes: int, group: int | None = None
) -> TileProblem:
    """The input of the register tile model; ``group`` is the number of panels at a time, if not all."""
    axes = materialized.compute.axes
    row_axes = [axes[position] for position in found.row_axes]
    rows = [constant_extent(axis) for axis in row_axes] + [1, 1]
    if rows[0] is None:
        # No second axis has tiles then; see ``_with_few_unknown``.
        rows[1] = 1
    panels = 1 if found.panel_axis is None else constant_extent(axes[found.panel_axis])
    vector = axes[found.vector]
    widths = [count * lanes for count in (4, 3, 2) if _is_contiguous(found, vector, count * lanes)]
    sums = materialized.operation.output(0).dtype
    return TileProblem(
        (rows[0], rows[1]),
        constant_extent(vector),
        max(widths, default=lanes),
        panels if group is None else group,
        lanes,
        prod(extent_of(axis) for axis in materialized.compute.reduce_axis),
        found.shares_panel,
        bool(found.scalars),
        group is not None,
        window_of(found, [(axis, constant_extent(axis)) for axis in materialized.compute.reduce_axis]),
        any(read.tensor.dtype.bits < sums.bits for read in materialized.reads),
    )


def tile_sizes(
    materialized: MaterializedStage,
    found: Contraction,
    lanes: int,
    cpu: CPUDescription,
    group: int | None = None,
) -> list[int]:
    """The size of the register tile along each data axis; ``group`` as in ``tile_problem``."""
    axes = materialized.compute.axes
    vector = axes[found.vector]
    problem = tile_problem(materialized, found, lanes, group)
    if found.gathers:
        # Vectors are gathered element by element. A few rows share each; more rows would blow up the code.
        most = problem.rows[0] or GATHERING_ROWS
        rows = decide(
            "gathering_rows",
            min(most, GATHERING_ROWS),
            lambda: [size for size in (1, 2, 4, 8) if size <= most],
        )
        tile = Tile((rows, 1), min(constant_extent(vector) or lanes, lanes), 1)
    else:
        tile = _decided_tile(cpu, problem)
    sizes = [1] * len(axes)
    for position, size in zip(found.row_axes, tile.rows, strict=False):
        sizes[position] = size
    sizes[found.vector] = tile.columns
    if found.panel_axis is not None:
        sizes[found.panel_axis] = tile.panels
    return _with_few_unknown(materialized, found, sizes)


def _decided_tile(cpu: CPUDescription, problem: TileProblem) -> Tile:
    """The register tile: the best by the model, unless a tuner wants another of the good ones."""
    inner, outer, columns, panels = decide(
        "tile",
        _as_sizes(choose_tile(cpu, problem)),
        lambda: [_as_sizes(tile) for tile in ranked_tiles(cpu, problem)[:TILES_TO_TRY]],
    )
    return Tile((inner, outer), columns, panels)


def _as_sizes(tile: Tile) -> tuple[int, ...]:
    return (*tile.rows, tile.columns, tile.panels)


def _with_few_unknown(materialized: MaterializedStage, found: Contraction, sizes: list[int]) -> list[int]:
    """Tiles at most two axes of dynamic extent, the vectors and one axis of rows: each has a remainder with code of its
    own, and the remainders multiply. If vectors would have to be gathered along a dynamic axis, none is tiled."""
    unknown = [
        position
        for position, axis in enumerate(materialized.compute.axes)
        if sizes[position] > 1 and constant_extent(axis) is None
    ]
    rows = next((position for position in found.row_axes if position in unknown), None)
    tiled = {found.vector, rows}
    if found.gathers and found.vector in unknown:
        tiled = set()
    return [
        1 if position in unknown and position not in tiled else size for position, size in enumerate(sizes)
    ]


def _is_contiguous(found: Contraction, axis: IterVar, count: int) -> bool:
    return all(read.is_contiguous(axis, count) for read in found.panel)


def _leading(
    materialized: MaterializedStage,
    found: Contraction,
    producers: Sequence[MaterializedStage],
    shared: Sequence[int],
    sizes: Sequence[int],
    cpu: CPUDescription,
) -> list[int]:
    """The axes along which producers are computed slice by slice, right before use: those that all producers share, if
    there are enough slices for the cores and a slice fits in L2. Of a product, batches and groups: along its other axes
    a slice would be computed once for every panel."""
    if not producers:
        return []
    axes = materialized.compute.axes
    positions = [position for position in shared if sizes[position] == 1]
    if found.is_product:
        batches = [position for position in positions if position in found.batch_axes]
        # An open batch may be one image, which all cores have to share.
        positions = [position for position in batches if constant_extent(axes[position]) is not None]
    slices = prod(extent_of(axes[position]) for position in positions)
    inside = slices >= cpu.cores and _bytes_of(producers) // slices <= cpu.l2_bytes // 2
    if positions and slices > 1:
        inside = decide("producers_inside", inside, lambda: [True, False])
    return positions if inside else []


def _bytes_of(producers: Sequence[MaterializedStage]) -> int:
    return sum(producer.elements() * producer.operation.output(0).dtype.bits // 8 for producer in producers)


def _slices_of_rows(
    materialized: MaterializedStage,
    found: Contraction,
    producers: Sequence[MaterializedStage],
    sizes: Sequence[int],
    cpu: CPUDescription,
) -> tuple[int, int] | None:
    """The row axis of which the outermost loop takes one slice after another, and the tiles of a slice; none if the
    outermost loops are others.

    Cores that share the rows of all images read what they have written themselves, which is in their own L1 and L2,
    from layer to layer, and the padding of a convolution is computed slice by slice. Every slice reads all panels:
    these have to fit in L2, and to be fewer bytes than the image. Neighbouring slices overlap by the window's height: a
    slice has at least as many rows as the overlap, of which the padding is computed twice.
    """
    if len(found.row_axes) < 2 or found.gathers or is_scattered(materialized, found, sizes):
        return None
    compute = materialized.compute
    position = found.row_axes[1]
    axis = compute.axes[position]
    extent = constant_extent(axis)
    if extent is None or any(constant_extent(one) is None for one in compute.axes):
        return None
    images = (
        found.scalars if found.is_product else tuple(read for read in found.panel if read.moves_with(axis))
    )
    if not images or (producers and not found.is_product):
        return None
    count = -(-extent // sizes[position])
    overlap = max(read.overlap(axis, compute.reduce_axis) for read in images)
    least = max(1, -(-overlap // sizes[position]))
    fitting = [size for size in range(least, count // 2 + 1) if count % size == 0]
    panel_bytes = found.panel_bytes if found.is_product else 0
    image_bytes = sum(bytes_of_read(read) for read in {id(one.tensor): one for one in images}.values())
    if not fitting or panel_bytes > min(cpu.l2_bytes // 2, image_bytes):
        return None
    if producers:
        # What neighbouring slices share is computed twice: they are as large as L1 and the number of cores allow.
        enough = [
            size
            for size in fitting
            if count // size >= max(cpu.cores, PLANNED_CORES)
            and image_bytes * (size + least) // count <= cpu.l1d_bytes * 3 // 4
        ]
        tiles = max(enough, default=fitting[0])
        fits = count // tiles >= cpu.cores and image_bytes * 2 * tiles // count <= cpu.l2_bytes // 2
    else:
        sizes_of_slices = (
            [size for size in fitting if count // size >= PLANNED_CORES] if found.is_product else []
        )
        tiles = max(sizes_of_slices, default=1)
        fits = image_bytes > cpu.l1d_bytes
    if not decide("slices_of_rows", fits, lambda: [True, False]):
        return None
    return position, tiles


def _in_plain_loops(
    result: Stage,
    reduction: Stage,
    materialized: MaterializedStage,
    producers: Sequence[MaterializedStage],
    cpu: CPUDescription,
) -> None:
    """A scalar, or a reduction that cannot be vectorized: plain loops."""
    for producer in producers:
        schedule_injective_root(producer, cpu)
    axes = list(result.op.axis)
    if axes:
        reduction.compute_at(result, axes[-1])
