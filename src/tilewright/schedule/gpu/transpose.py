"""Kernels that read along another axis than they write: through tiles in shared memory, so that both are coalesced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.ir.functor import free_vars
from tilewright.schedule.cpu.access import Read, constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.gpu.machine import GpuMachine, power_of_two_below
from tilewright.te.operation import thread_axis
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage

TILE: Final = 32
"""Threads in a row of a tile; its side is as many words."""

THREAD_ROWS: Final = 8
"""Rows of a tile that a block's threads take at a time."""

WORD_BITS: Final = 32
"""What a thread loads and stores at a time, where elements are narrower."""

SMALLEST_SIDE: Final = 8
"""An axis shorter than this is not worth a tile."""


@dataclass(frozen=True, eq=False)
class Transpose:
    """A read that is contiguous along ``source`` while the result is contiguous along ``target``: positions of axes of
    the stage, and the dimensions of the tensor that they index."""

    read: Read
    source: int
    target: int
    source_dimension: int
    target_dimension: int


def find_transpose(materialized: MaterializedStage) -> Transpose | None:
    """The transposed read of a stage, if it has exactly one tensor that is read so."""
    axes = materialized.compute.axes
    long = [number for number, axis in enumerate(axes) if extent_of(axis) > 1]
    if not long or constant_extent(axes[long[-1]]) is None:
        return None
    target = long[-1]
    found: list[Transpose] = []
    for read in materialized.reads:
        if not read.moves_with(axes[target]) or read.steps(axes[target], 2) in (0, 1):
            continue
        made = _as_transpose(read, axes, target)
        if made is not None:
            found.append(made)
    if len({id(one.read.tensor) for one in found}) != 1 or len(found) != 1:
        return None
    return found[0]


def _as_transpose(read: Read, axes: tuple[IterVar, ...], target: int) -> Transpose | None:
    place = len(read.indices) - 1
    while place > 0 and constant_extent_is_one(read, place):
        place -= 1
    for number, axis in enumerate(axes):
        if number == target or read.indices[place] is not axis.var or constant_extent(axis) is None:
            continue
        across = [dimension for dimension, index in enumerate(read.indices) if index is axes[target].var]
        if len(across) != 1 or min(extent_of(axis), extent_of(axes[target])) < SMALLEST_SIDE:
            return None
        others = [
            index for dimension, index in enumerate(read.indices) if dimension not in (place, across[0])
        ]
        tiled = {axis.var, axes[target].var}
        if any(tiled & set(free_vars(index)) for index in others):
            return None
        return Transpose(read, number, target, place, across[0])
    return None


def constant_extent_is_one(read: Read, dimension: int) -> bool:
    """True if a dimension of the tensor has one element."""
    return str(read.tensor.shape[dimension]) == "1"


def schedule_transpose(
    schedule: Schedule, materialized: MaterializedStage, found: Transpose, machine: GpuMachine
) -> None:
    """Reads a tile along the source's contiguous axis, and writes it along the result's."""
    stage = materialized.stage
    tensor = next(
        one
        for one in stage.op.input_tensors
        if schedule.stage_map[one.op] is schedule.stage_map[found.read.tensor.op]
        and one.value_index == found.read.tensor.value_index
    )
    copy = schedule[schedule.cache_read(tensor, "shared", [stage.op])]
    axes = list(stage.op.axis)
    extents = extent_of(axes[found.source]), extent_of(axes[found.target])
    width = _width(materialized, found, extents)
    side = min(TILE * width, power_of_two_below(min(extents)))
    threads = thread_axis("threadIdx.x"), thread_axis("threadIdx.y")
    source_block, source_tile = stage.split(axes[found.source], factor=side)
    target_block, target_tile = stage.split(axes[found.target], factor=side)
    others = [axis for number, axis in enumerate(axes) if number not in (found.source, found.target)]
    stage.reorder(*others, source_block, target_block, source_tile, target_tile)
    block = stage.fuse(*others, source_block, target_block)
    stage.bind(block, thread_axis("blockIdx.x"))
    _bind_tile(stage, source_tile, target_tile, side // width, width, threads)
    copy.compute_at(stage, block)
    dimensions = list(copy.op.axis)
    inner, outer = dimensions[found.source_dimension], dimensions[found.target_dimension]
    # Threads of a warp read a column of the tile: a pitch of an odd number of words puts it into different banks.
    copy.storage_align(outer, 2 * width, width)
    rest = [axis for axis in dimensions if axis is not inner and axis is not outer]
    copy.reorder(*rest, outer, inner)
    _bind_tile(copy, outer, inner, side // width, width, threads)


def _width(materialized: MaterializedStage, found: Transpose, extents: tuple[int, int]) -> int:
    """Neighbouring elements that a thread loads and stores: four bytes of narrow types."""
    dtypes = [found.read.tensor.dtype, *(one.dtype for one in materialized.operation.outputs)]
    width = max(WORD_BITS // max(*(dtype.bits for dtype in dtypes), 8), 1)
    while any(extent % (TILE * width) for extent in extents) and width > 1:
        width //= 2
    return width


def _bind_tile(
    stage: Stage, rows: IterVar, columns: IterVar, lanes: int, width: int, threads: tuple[IterVar, IterVar]
) -> None:
    """Deals a tile out to threads: neighbouring columns to neighbours, a few rows at a time."""
    vector = None
    if width > 1:
        columns, vector = stage.split(columns, factor=width)
    step, lane = stage.split(columns, factor=lanes)
    line, row = stage.split(rows, factor=THREAD_ROWS)
    stage.reorder(row, lane, line, step, *([] if vector is None else [vector]))
    stage.bind(row, threads[1])
    stage.bind(lane, threads[0])
    stage.unroll(line)
    stage.unroll(step)
    if vector is not None:
        stage.vectorize(vector)
