"""Schedules a reduction and its epilogue in register tiles.

The stage that stores the result is tiled; the reduction is computed at each tile into a buffer that is small enough for
registers, and the epilogue (bias, residual, activation) is applied to the tile before it is stored. The loops around
the tiles are ordered so that data which the inner ones reuse stays in L2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tilewright.ir.expr import Call, IterVar
from tilewright.ir.functor import post_order
from tilewright.schedule.cpu.access import Read, constant_extent, extent_of, values_of
from tilewright.schedule.cpu.contraction import Contraction, block_of, step_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.cpu.loops import (
    assumed_counts,
    decided_prefix,
    mark_remainder,
    parallel_prefix,
)
from tilewright.schedule.cpu.machine import lanes_of
from tilewright.schedule.decisions import decide
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.stage import Stage

MOST_UNROLLED: Final = 100
"""Vector operations in the unrolled inner loop of a reduction."""
MOST_UNROLLED_OF_WINDOWS: Final = 64
"""The same if rows read overlapping vectors, as in a depthwise convolution: LLVM would keep vectors that several steps
read in registers, and spill."""
MOST_UNROLLED_WINDOW: Final = 160
"""The same if the whole reduction is unrolled, as for the window of a pooling."""
MOST_WINDOW_STEPS: Final = 49
"""Steps of a reduction that a tuner may unroll completely."""
LONGEST_UNROLLED: Final = 8
SHORTEST_LOOP: Final = 2
"""Steps up to which a loop costs more than what is spilled without it."""
LINES_AROUND: Final = 16
"""Cache lines of the next panel that an iteration of the loop around the reduction may prefetch, where the addresses of
prefetches would take a good part of the reduction's few instructions."""
ROWS_WORTH_PACKING: Final = 32
CHUNK: Final = 4
"""Tiles of a dynamic axis that one thread computes in a row, if they run in parallel."""
PANEL_SHARE: Final = 2
"""Eighths of L2 that panels take past which all rows are streamed."""
MATRIX_UNIT: Final = "matrix_unit"
"""The pragma of loops that the pass UseMatrixUnit gives to the matrix unit."""


@dataclass(frozen=True)
class OuterLoop:
    """A loop around the tiles: its axis, its extent (None if dynamic), whether its last tile is partial, and the size
    of a tile."""

    axis: IterVar
    count: int | None
    is_cut: bool
    tile: int = 1


def tile_stages(
    result: Stage,
    reduction: Stage,
    materialized: MaterializedStage,
    found: Contraction,
    sizes: Sequence[int],
    cpu: CPUDescription,
    first: Sequence[int] = (),
    packed_lanes: int = 0,
    row_slices: tuple[int, int] | None = None,
    within: bool = False,
) -> IterVar | None:
    """Schedule both stages with tiles of these sizes, one for each data axis.

    ``first`` are the axes of the outermost loops, which are parallel; the fused loop is returned, for producers to be
    attached to. With ``packed_lanes``, the matrix unit computes a tile, with so many packed lanes per step.
    ``row_slices`` are an axis and a number of tiles: the outermost loop, the only one of ``first`` or not in it, is
    over slices of so many tiles along that axis. ``within``: the stage is a block of another one, which has decided
    about the loops around the tiles.
    """
    outer, inner, chunks = _split_into_tiles(result, materialized, sizes, cpu, within)
    order = _tile_order(found, range(len(result.op.axis)))
    inner_axes = [inner[position] for position in order if position in inner]
    slices = _sliced(result, outer, *row_slices) if row_slices else None
    loops, panel_loops = _outer_order(result, materialized, found, outer, sizes, cpu, first, within, slices)
    for position, chunk in chunks.items():
        loops.insert(loops.index(outer[position]), OuterLoop(chunk, None, False))
    result.reorder(*[loop.axis for loop in loops], *inner_axes)
    # The matrix unit loads rows from anywhere in memory as fast as from next to each other.
    packed = panel_loops > 0 and not packed_lanes and _packs_panels(reduction, materialized, found, sizes)
    leading = len(first) if slices is not None else len([number for number in first if number in outer])
    shared, panel_place, place = _parallel(
        result, materialized, loops, cpu, leading, panel_loops if packed else 0
    )
    if packed and panel_place is not None:
        _pack(reduction, found, result, panel_place, cpu)
    _separate_last_tiles(result, materialized, loops)
    for axis in inner_axes[:-1] if not packed_lanes else ():
        result.unroll(axis)
    _vectorize(result, found.vector, inner)
    reduction.compute_at(result, place)
    reduction.set_scope("local")
    lanes = lanes_of(cpu, materialized.operation.output(0).dtype)
    if packed_lanes:
        _reduce_in_matrix_unit(reduction, materialized, found, sizes, packed_lanes)
    else:
        # Slices read panels that are in L2: prefetches whose addresses take instructions are not worth it there.
        prefetch = (slices is None or cpu.has_vector_offsets) and _prefetches_panels(
            materialized, found, sizes, cpu
        )
        _reduce_in_tile(reduction, materialized, found, sizes, lanes, prefetch, cpu)
    return shared


def _split_into_tiles(
    result: Stage,
    materialized: MaterializedStage,
    sizes: Sequence[int],
    cpu: CPUDescription,
    within: bool,
) -> tuple[dict[int, OuterLoop], dict[int, IterVar], dict[int, IterVar]]:
    """Split the data axes by the sizes of tiles; returns the loops around the tiles, those inside, and the loops over
    chunks of tiles that dynamic axes have, each by the number of its axis."""
    axes = list(result.op.axis)
    outer: dict[int, OuterLoop] = {}
    inner: dict[int, IterVar] = {}
    chunks: dict[int, IterVar] = {}
    for position, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        extent = constant_extent(axis)
        if extent is not None and size >= extent:
            inner[position] = axis
        elif size == 1:
            outer[position] = OuterLoop(axis, extent, False)
        else:
            if extent is None and not within and _needs_chunks(axes, position, cpu, materialized.work()):
                chunks[position], axis = result.split(axis, factor=CHUNK * size)
            rest, part = result.split(axis, factor=size)
            count = None if extent is None else -(-extent // size)
            outer[position] = OuterLoop(rest, count, extent is None or extent % size != 0, size)
            inner[position] = part
    return outer, inner, chunks


def _packs_panels(
    reduction: Stage, materialized: MaterializedStage, found: Contraction, sizes: Sequence[int]
) -> bool:
    """Whether to copy a tile's panel so that its rows are next to each other; a tuner may decide otherwise."""
    packed = is_scattered(materialized, found, sizes)
    if _can_pack(reduction, found) and _rows_are_apart(materialized, found, sizes):
        return decide("pack", packed, lambda: [True, False])
    return packed


def _separate_last_tiles(result: Stage, materialized: MaterializedStage, loops: Sequence[OuterLoop]) -> None:
    """Give the last tile of an axis code of its own, so that the others need no bounds checks."""
    checks = has_likely(materialized)
    for loop in loops:
        if (loop.is_cut or checks) and loop.count is not None and loop.axis in result.leaf_iter_vars:
            result.pragma(loop.axis, "loop_partition_hint")
        if loop.is_cut and loop.count is None:
            mark_remainder(result, loop.axis, loop.tile)


def _sliced(result: Stage, outer: dict[int, OuterLoop], position: int, tiles: int) -> OuterLoop:
    """Splits a loop around the tiles into slices of so many; returns the loop over slices."""
    loop = outer[position]
    assert loop.count is not None and loop.count % tiles == 0
    if tiles == 1:
        return outer.pop(position)
    slices, part = result.split(loop.axis, factor=tiles)
    outer[position] = OuterLoop(part, tiles, loop.is_cut)
    return OuterLoop(slices, loop.count // tiles, False)


def _needs_chunks(axes: Sequence[IterVar], position: int, cpu: CPUDescription, work: int) -> bool:
    """True if tiles along a dynamic axis may have to run in parallel, because no other axis but the batch is dynamic. A
    loop over chunks of tiles does then: what the last tile leaves over is computed apart only in a loop of its own."""
    others = [
        axis for number, axis in enumerate(axes) if number != position and constant_extent(axis) is None
    ]
    return work >= cpu.parallel_work and cpu.cores > 1 and len(others) < 2


def has_likely(materialized: MaterializedStage) -> bool:
    """True if loads are guarded by conditions that mostly hold: inside an image with a border."""
    return "tir.likely" in _calls(materialized)


def _calls(materialized: MaterializedStage) -> set[str]:
    """The names of the intrinsics that a computation calls."""
    return {
        str(getattr(part.op, "name", ""))
        for value in values_of(materialized.compute)
        for part in post_order(value)
        if isinstance(part, Call)
    }


def _takes_registers_for_integers(materialized: MaterializedStage, cpu: CPUDescription) -> bool:
    """True if products of packed integers take a register each beside the accumulators, which LLVM may fill for several
    steps in advance: where another instruction adds them, and where the unsigned factor cannot be an operand in
    memory."""
    names = _calls(materialized)
    if cpu.family != "x86":
        return False
    if "tir.dot_int16" in names:
        return not cpu.features & {"avx512vnni", "avxvnni"}
    return bool(names & {"tir.dot_uint8_int8", "tir.dot_int8_int8"})


def _tile_order(found: Contraction, positions: Sequence[int]) -> list[int]:
    """The order of the loops inside a tile: rows, panels, vectors innermost."""
    last = [number for number in (found.panel_axis, found.vector) if number is not None]
    return [number for number in positions if number not in last] + last


def _vectorize(stage: Stage, vector: int, inner: dict[int, IterVar]) -> None:
    if vector in inner and (constant_extent(inner[vector]) or 2) > 1:
        stage.vectorize(inner[vector])


def _outer_order(
    result: Stage,
    materialized: MaterializedStage,
    found: Contraction,
    outer: dict[int, OuterLoop],
    sizes: Sequence[int],
    cpu: CPUDescription,
    first: Sequence[int],
    within_block: bool,
    slices: OuterLoop | None,
) -> tuple[list[OuterLoop], int]:
    """The loops around the tiles, outermost first, and how many of them select the panel; 0 if none do."""
    leading = [outer[position] for position in first if position in outer] if slices is None else [slices]
    rest = [position for position in outer if position not in first or slices is not None]
    if not found.is_product:
        return leading + [outer[position] for position in rest], 0
    batch = [outer[position] for position in rest if position in found.batch_axes]
    panels = [position for position in rest if position in found.panel_axes or position == found.vector]
    others = [
        outer[position] for position in rest if position not in found.batch_axes and position not in panels
    ]
    around, within = [outer[position] for position in panels], list[OuterLoop]()
    scalar_bytes = found.scalar_bytes(materialized.compute.axes)
    if slices is not None and slices.count:
        scalar_bytes //= slices.count
    share = PANEL_SHARE if panels and scalar_bytes > cpu.l2_bytes // 2 else 0
    if panels and others and not within_block:
        share = decide("panel_share", share, lambda: [0, 1, 2, 4, 8, 64])
    if share:
        # All rows are streamed past as many panels as fit comfortably in L2.
        main = max(panels, key=lambda position: outer[position].count or 0)
        together = cpu.l2_bytes * share // 8 // max(_bytes_of_a_panel(materialized, found, sizes), 1)
        loop = outer[main]
        if together > 1 and loop.count is not None and loop.count > 1:
            factor = _best_group(loop.count, min(together, loop.count))
            groups, within_group = result.split(loop.axis, factor=factor)
            around = [outer[position] for position in panels if position != main]
            around.append(OuterLoop(groups, -(-loop.count // factor), loop.count % factor != 0))
            within = [OuterLoop(within_group, factor, loop.is_cut)]
    choosing = leading + batch + around
    return choosing + others + within, len(choosing) if others and around else 0


def _bytes_of_a_panel(materialized: MaterializedStage, found: Contraction, sizes: Sequence[int]) -> int:
    steps = prod(extent_of(axis) for axis in materialized.compute.reduce_axis)
    return 4 * steps * prod(sizes[number] for number in {found.vector, *found.panel_axes})


def _prefetches_panels(
    materialized: MaterializedStage, found: Contraction, sizes: Sequence[int], cpu: CPUDescription
) -> bool:
    """True if panels come from beyond L2, and L2 holds the current panel and the next."""
    return (
        found.is_product
        and cpu.has_prefetch
        and found.panel_bytes > cpu.l2_bytes // 4
        and 2 * _bytes_of_a_panel(materialized, found, sizes) <= cpu.l2_bytes * 3 // 4
    )


def _best_group(count: int, most: int) -> int:
    """The largest divisor up to ``most``; ``most`` itself if that divisor is at most half of it."""
    divisor = next(size for size in range(most, 0, -1) if count % size == 0)
    return divisor if 2 * divisor > most else most


def is_scattered(materialized: MaterializedStage, found: Contraction, sizes: Sequence[int]) -> bool:
    """True if the rows of the panel are far apart in memory and enough result rows share them: then the panel is copied
    to contiguous memory first."""
    axes = materialized.compute.axes
    rows = prod(extent_of(axes[position]) for position in range(len(axes)) if position in found.row_axes)
    if not found.is_product or len(found.panel) != 1 or rows < ROWS_WORTH_PACKING:
        return False
    return _rows_are_apart(materialized, found, sizes)


def _rows_are_apart(materialized: MaterializedStage, found: Contraction, sizes: Sequence[int]) -> bool:
    steps = [
        step_of(found.panel[0], axis, 1) for axis in materialized.compute.reduce_axis if extent_of(axis) > 1
    ]
    return min((step for step in steps if step), default=0) > sizes[found.vector]


def _can_pack(reduction: Stage, found: Contraction) -> bool:
    """True if the panel is of a single tensor that the reduction reads itself, not through an inlined stage."""
    return (
        found.is_product
        and len(found.panel) == 1
        and any(one is found.panel[0].tensor for one in reduction.op.input_tensors)
    )


def _pack(reduction: Stage, found: Contraction, result: Stage, place: IterVar, cpu: CPUDescription) -> None:
    """Copies the panels of one iteration into a contiguous buffer."""
    if not _can_pack(reduction, found):
        return
    tensor = found.panel[0].tensor
    schedule = reduction.schedule
    copy = schedule[schedule.cache_read(tensor, "global", [reduction.op])]
    copy.compute_at(result, place)
    inner = copy.op.axis[-1]
    _, part = copy.split(inner, factor=lanes_of(cpu, tensor.dtype))
    copy.vectorize(part)


def _parallel(
    result: Stage,
    materialized: MaterializedStage,
    loops: list[OuterLoop],
    cpu: CPUDescription,
    leading: int,
    panel_loops: int,
) -> tuple[IterVar | None, IterVar | None, IterVar]:
    """Makes the first loops parallel. Returns the fused ``leading`` loops, the loop that the first ``panel_loops`` end
    with, and the innermost loop; each None if it is not a separate loop."""
    work = materialized.work()
    if not loops:
        return None, None, result.fuse()
    counts = [loop.count for loop in loops]
    if leading:
        number = leading
        is_parallel = parallel_prefix(cpu, counts[:leading], work) > 0
    else:
        constructed, most = _parallel_loops(loops, counts, cpu, work, panel_loops)
        number = decided_prefix(cpu, constructed, most, work)
        is_parallel = number > 0
    if number == 0:
        return None, loops[panel_loops - 1].axis if panel_loops else None, loops[-1].axis
    fused = result.fuse(*[loop.axis for loop in loops[:number]])
    if is_parallel:
        result.parallel(fused)
    innermost = loops[-1].axis if len(loops) > number else fused
    panel: IterVar | None = None
    if panel_loops >= number:
        panel = fused if panel_loops == number else loops[panel_loops - 1].axis
    return fused if leading else None, panel, innermost


def _parallel_loops(
    loops: list[OuterLoop], counts: list[int | None], cpu: CPUDescription, work: int, panel_loops: int
) -> tuple[int, int]:
    """How many loops to run in parallel, and how many can be. Only one loop with a partial last tile is fused with
    others, because the tail of a second one could not be peeled; and rows that share a packed panel stay on one core,
    unless that leaves cores idle."""
    cut = [number for number, loop in enumerate(loops) if loop.is_cut]
    whole = cut[1] if len(cut) > 1 else len(loops)
    open_tiles = [number for number in cut if loops[number].count is None and number > 0]
    whole = min([whole, *open_tiles])
    for limit in (min(whole, panel_loops or whole), whole):
        number = parallel_prefix(cpu, counts[:limit], work)
        if number and prod(assumed_counts(counts[:number])) >= cpu.cores:
            return number, whole
    return parallel_prefix(cpu, counts[:whole] if open_tiles else counts, work), whole


def _most_unrolled(
    materialized: MaterializedStage,
    found: Contraction,
    extent: int | None,
    elements: int,
    cpu: CPUDescription,
) -> int:
    """How many operations the unrolled steps of a reduction loop of this extent may have, for a tile of so many
    elements."""
    if cpu.holds_broadcasts:
        return 0  # LLVM would load the broadcasts of several steps first, and spill them
    if (extent or 0) > SHORTEST_LOOP and _takes_registers_for_integers(materialized, cpu):
        return 0  # LLVM would begin with the factors or the products of several steps, and spill them
    most = MOST_UNROLLED if found.shares_panel else MOST_UNROLLED_OF_WINDOWS
    return min(most, elements) if cpu.loads_scalars_together else most  # one vector of scalars per row


def _reduce_in_tile(
    reduction: Stage,
    materialized: MaterializedStage,
    found: Contraction,
    sizes: Sequence[int],
    lanes: int,
    prefetch: bool,
    cpu: CPUDescription,
) -> None:
    """The loops of the reduction inside one tile; ``prefetch``: prefetch the next panel while one is read.

    Where loads are instructions of their own, rows that read overlapping vectors are computed one after the other, so
    that a vector is loaded once and is in a register no longer than its window lasts.
    """
    axes = list(reduction.op.axis)
    steps, strides = _reduction_loops(reduction, materialized, found)
    vectors = prod(size for position, size in enumerate(sizes) if position != found.vector)
    vectors *= -(-sizes[found.vector] // lanes)
    tiled = [position for position in _tile_order(found, range(len(axes))) if sizes[position] > 1]
    if found.panel_axis in tiled and sizes[found.panel_axis] > prod(sizes[row] for row in found.row_axes):
        # The scalars of few rows stay in registers while the panels are streamed.
        tiled.remove(found.panel_axis)
        tiled.insert(0, found.panel_axis)
    fixed = [axes[position] for position in range(len(axes)) if position not in tiled]
    extents = [extent for _, extent in steps]
    total = prod(extents) if None not in extents else None  # type: ignore[arg-type]
    plain = not found.gathers and all(
        position in found.row_axes or constant_extent(materialized.compute.axes[position]) is not None
        for position in tiled
    )
    window = 1 if cpu.folds_loads else window_of(found, steps)
    whole = plain and total is not None and vectors * total <= MOST_UNROLLED_WINDOW and window in (1, total)
    if plain and total is not None and 1 < total <= MOST_WINDOW_STEPS:
        whole = decide("unroll_window", whole, lambda: [True, False])
    if whole:
        for axis, _ in steps:
            reduction.unroll(axis)
    elif steps:
        last = len(steps) - 1 if cpu.folds_loads else _last_loop(steps)
        axis, extent = steps[last]
        most = _most_unrolled(materialized, found, extent, lanes * vectors, cpu)
        operations = vectors // (-(-sizes[found.vector] // lanes) if cpu.groups_registers else 1)
        factor = _unroll_factor(extent, most // max(operations, 1)) if plain else 1
        if plain and extent is not None:
            factor = decide("unroll", factor, lambda: _unroll_factors(extent))
        if factor > 1:
            rest, part = reduction.split(axis, factor=factor)
            reduction.unroll(part)
            steps = [*steps[:last], (rest, None), (part, factor), *steps[last + 1 :]]
            if cpu.loads_scalars_together and last > 0 and extent is not None:
                around = steps[last - 1][0]
                if strides[around] == tuple(extent * stride for stride in strides[axis]):
                    # Memory goes on where the short loop ends: one loop reads both, with one address for each operand.
                    reduction.reorder(*[one for one, _ in steps])
                    rest = reduction.fuse(around, rest)
                    steps[last - 1 : last + 1] = [(rest, None)]
            axis = rest
        if decide("prefetch", prefetch, lambda: [True, False]) if found.is_product else prefetch:
            lines = None if cpu.has_vector_offsets else LINES_AROUND
            reduction.pragma(axis, "prefetch_next_panel", lines)
    order = [*[axis for axis, _ in steps], *[axes[position] for position in tiled]]
    if window > 1 and not whole and tiled and tiled[-1] == found.vector:
        # The taps of a row are innermost, rows in the loop around them.
        taps = steps[-1][0]
        order.remove(taps)
        order.insert(-1, taps)
        reduction.unroll(taps)
    reduction.reorder(*fixed, *order)
    for position in tiled:
        if position == found.vector:
            reduction.vectorize(axes[position])
        else:
            reduction.unroll(axes[position])


LONGEST_WINDOW: Final = 8
"""Steps of an innermost reduction whose weights and data stay in registers."""


def window_of(found: Contraction, steps: Sequence[tuple[IterVar, int | None]]) -> int:
    """Steps of the innermost reduction where rows read overlapping vectors; 1 if they do not, or there are many."""
    extent = steps[-1][1] if steps else None
    if found.shares_panel or found.gathers or extent is None:
        return 1
    return extent if extent <= LONGEST_WINDOW else 1


def _reduce_in_matrix_unit(
    reduction: Stage,
    materialized: MaterializedStage,
    found: Contraction,
    sizes: Sequence[int],
    packed_lanes: int,
) -> None:
    """The loops of a reduction on the matrix unit, with the packed lanes of a step split off."""
    axes = list(reduction.op.axis)
    steps = [axis for axis, _ in _reduction_loops(reduction, materialized, found)[0]]
    rest, part = reduction.split(steps[-1], factor=packed_lanes)
    tiled = [position for position in _tile_order(found, range(len(axes))) if sizes[position] > 1]
    fixed = [axes[position] for position in range(len(axes)) if position not in tiled]
    order = [*steps[:-1], rest, part, *(axes[position] for position in tiled)]
    reduction.reorder(*fixed, *order)
    reduction.vectorize(axes[found.vector])
    reduction.pragma(order[0], MATRIX_UNIT)


def _last_loop(steps: Sequence[tuple[IterVar, int | None]]) -> int:
    """The innermost step that is a loop, behind steps of one iteration, where that is long; otherwise the last step. A
    window stays a loop: LLVM would keep what its steps share in registers, and spill."""
    last = len(steps) - 1
    while last > 0 and steps[last][1] == 1:
        last -= 1
    extent = steps[last][1]
    return last if extent is not None and extent % 4 == 0 else len(steps) - 1


def _unroll_factor(extent: int | None, most: int) -> int:
    """The largest divisor of the loop up to ``most``, preferably a multiple of four, so that machines with multiply-add
    by element load the scalars of a row as a vector."""
    if extent is None:
        return 1
    factors = [factor for factor in _unroll_factors(extent) if factor <= most]
    return max(factors, key=lambda factor: (factor % 4 == 0, factor), default=1)


def _unroll_factors(extent: int) -> list[int]:
    return [factor for factor in range(1, min(extent, LONGEST_UNROLLED) + 1) if extent % factor == 0]


def _reduction_loops(
    reduction: Stage, materialized: MaterializedStage, found: Contraction
) -> tuple[list[tuple[IterVar, int | None]], dict[IterVar, tuple[int, ...]]]:
    """The reduction axes, split at layout blocks, in the memory order of the panel; and for each of them how far one
    step moves in each tensor that is read."""
    reads: Sequence[Read] = found.panel or materialized.reads
    main = max(
        reads,
        key=lambda read: sum(read.moves_with(axis) for axis in materialized.compute.reduce_axis),
        default=None,
    )
    loops: list[tuple[int, int, IterVar, int | None]] = []
    strides: dict[IterVar, tuple[int, ...]] = {}
    for number, (axis, known) in enumerate(
        zip(reduction.op.reduce_axis, materialized.compute.reduce_axis, strict=True)
    ):
        block, extent = block_of(known, materialized.reads), constant_extent(known)
        if block is None or extent is None:
            loops.append((step_of(main, known, 1) if main else 0, -number, axis, extent))
            strides[axis] = tuple(step_of(read, known, 1) for read in materialized.reads)
        else:
            rest, part = reduction.split(axis, factor=block)
            loops.append((step_of(main, known, block) if main else 0, -number, rest, extent // block))
            loops.append((step_of(main, known, 1) if main else 0, -number, part, block))
            strides[rest] = tuple(step_of(read, known, block) for read in materialized.reads)
            strides[part] = tuple(step_of(read, known, 1) for read in materialized.reads)
    loops.sort(key=lambda loop: loop[:2], reverse=True)
    return [(axis, extent) for _, _, axis, extent in loops], strides
