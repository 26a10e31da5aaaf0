"""Kernels that read along another axis than they write: through tiles in shared memory, so that both are coalesced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.ir.functor import free_vars
from tilewright.schedule.cpu.access import Read, constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.gpu.machine import GpuMachine
from tilewright.te.operation import thread_axis
from tilewright.te.schedule.schedule import Schedule

TILE: Final = 32
"""Elements of a side of a tile, for elements of four bytes."""

THREAD_ROWS: Final = 8
"""Rows of a tile that a block's threads take at a time."""

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
    bytes_each = max(found.read.tensor.dtype.bits // 8, 1)
    side = TILE * max(4 // bytes_each, 1) if bytes_each < 4 else TILE
    side = min(side, 2 * TILE)
    tensor = next(
        one
        for one in stage.op.input_tensors
        if schedule.stage_map[one.op] is schedule.stage_map[found.read.tensor.op]
        and one.value_index == found.read.tensor.value_index
    )
    copy = schedule[schedule.cache_read(tensor, "shared", [stage.op])]
    axes = list(stage.op.axis)
    threads = thread_axis("threadIdx.x"), thread_axis("threadIdx.y")
    source_block, source_tile = stage.split(
        axes[found.source], factor=min(side, extent_of(axes[found.source]))
    )
    target_block, target_tile = stage.split(
        axes[found.target], factor=min(side, extent_of(axes[found.target]))
    )
    others = [axis for number, axis in enumerate(axes) if number not in (found.source, found.target)]
    stage.reorder(*others, source_block, target_block, source_tile, target_tile)
    block = stage.fuse(*others, source_block, target_block)
    stage.bind(block, thread_axis("blockIdx.x"))
    columns = min(
        TILE, power_below(extent_of(axes[found.target])), power_below(extent_of(axes[found.source]))
    )
    step, lane = stage.split(target_tile, factor=columns)
    line, row = stage.split(source_tile, factor=THREAD_ROWS)
    stage.reorder(row, lane, line, step)
    stage.bind(row, threads[1])
    stage.bind(lane, threads[0])
    stage.unroll(line)
    stage.unroll(step)
    copy.compute_at(stage, block)
    dimensions = list(copy.op.axis)
    inner = dimensions[found.source_dimension]
    outer = dimensions[found.target_dimension]
    # Threads of a warp read a column of the tile: an odd pitch puts it into different banks.
    copy.storage_align(outer, 2, 1)
    rest = [axis for number, axis in enumerate(dimensions) if axis is not inner and axis is not outer]
    step, lane = copy.split(inner, factor=columns)
    line, row = copy.split(outer, factor=THREAD_ROWS)
    copy.reorder(*rest, row, lane, line, step)
    copy.bind(row, threads[1])
    copy.bind(lane, threads[0])
    copy.unroll(line)
    copy.unroll(step)


def power_below(number: int) -> int:
    """The largest power of two that is not above a number."""
    return 1 << (number.bit_length() - 1)
