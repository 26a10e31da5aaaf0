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
from tilewright.te.schedule.stage import Stage

SOURCE_WORDS: Final = 64
"""Adjacent words of the source that a tile has."""

TARGET_ELEMENTS: Final = 32
"""Adjacent elements of the result that a tile has: two narrow neighbours in the source are in one word of it, so that a
warp that reads few columns of several rows meets fewer bank conflicts than one that reads many columns of one."""

THREADS: Final = 256

SECTOR_BITS: Final = 256
"""What the memory writes at once."""

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
    bits = max(one.dtype.bits for one in materialized.operation.outputs)
    sides = (
        _side(extents[0], SOURCE_WORDS * width, width, SECTOR_BITS // found.read.tensor.dtype.bits),
        _side(extents[1], TARGET_ELEMENTS, width, SECTOR_BITS // bits),
    )
    source_block, source_tile = stage.split(axes[found.source], factor=sides[0])
    target_block, target_tile = stage.split(axes[found.target], factor=sides[1])
    others = [axis for number, axis in enumerate(axes) if number not in (found.source, found.target)]
    stage.reorder(*others, source_block, target_block, source_tile, target_tile)
    block = stage.fuse(*others, source_block, target_block)
    stage.bind(block, thread_axis("blockIdx.x"))
    _deal_out(stage, source_tile, target_tile, width)
    copy.compute_at(stage, block)
    dimensions = list(copy.op.axis)
    inner, outer = dimensions[found.source_dimension], dimensions[found.target_dimension]
    # Threads of a warp read a column of the tile: a pitch of an odd number of words puts it into different banks.
    copy.storage_align(outer, 2 * width, width)
    rest = [axis for axis in dimensions if axis is not inner and axis is not outer]
    copy.reorder(*rest, outer, inner)
    _deal_out(copy, outer, inner, width)


def _width(materialized: MaterializedStage, found: Transpose, extents: tuple[int, int]) -> int:
    """Neighbouring elements that a thread loads and stores: four bytes of narrow types."""
    dtypes = [found.read.tensor.dtype, *(one.dtype for one in materialized.operation.outputs)]
    width = max(WORD_BITS // max(*(dtype.bits for dtype in dtypes), 8), 1)
    while any(extent % width for extent in extents):
        width //= 2
    return width


def _side(extent: int, wanted: int, width: int, sector: int) -> int:
    """The side of a tile along an axis: near to what is wanted, a divisor of the extent, of whole sectors if possible.
    Where there is none, tiles at the end are not full."""
    if extent <= wanted:
        return extent
    divisors = [
        side for side in range(wanted // 2, 2 * wanted + 1) if extent % side == 0 and side % width == 0
    ]
    return min(divisors, default=wanted, key=lambda side: (side % sector > 0, abs(side - wanted)))


def _deal_out(stage: Stage, rows: IterVar, columns: IterVar, width: int) -> None:
    """Deals a tile out to the threads of a block in the order of its words."""
    if width > 1:
        columns, vector = stage.split(columns, factor=width)
        stage.reorder(rows, columns, vector)
    line, word = stage.split(stage.fuse(rows, columns), factor=THREADS)
    stage.reorder(word, line)
    stage.bind(word, thread_axis("threadIdx.x"))
    stage.unroll(line)
    if width > 1:
        stage.vectorize(vector)
