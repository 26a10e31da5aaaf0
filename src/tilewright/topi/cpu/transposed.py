"""The schedule of a transposed convolution that is put together from its phases.

The result is computed in blocks of whole rows. For each block the phases are computed one after the other, in register
tiles, into buffers that stay in the cache; then the block is put together, with what follows the convolution, on the
way to memory. Blocks are what runs in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor
from tilewright.topi.cpu.access import extent_of
from tilewright.topi.cpu.contraction import classify, vector_position
from tilewright.topi.cpu.graph import Kept, kept_stages
from tilewright.topi.cpu.injective import schedule_injective_root
from tilewright.topi.cpu.loops import BALANCE
from tilewright.topi.cpu.machine import current_cpu, lanes_of
from tilewright.topi.cpu.reduction import tile_sizes
from tilewright.topi.cpu.tagged import schedule_of, storing_stage
from tilewright.topi.cpu.tile_schedule import tile_stages

TRANSPOSED: Final = "conv2d_transpose_NCHWc"
"""The tag of the convolution."""


@dataclass(frozen=True)
class Blocks:
    """Rows of each phase in a block, and vectors of output channels in a group."""

    rows: int
    group: int


def schedule_transposed(outs: Tensor | Sequence[Tensor]) -> Schedule:
    """The schedule of a convolution tagged as transposed, in phases, and what follows it elementwise."""
    schedule, convolution = schedule_of(outs, TRANSPOSED)
    cpu = current_cpu()
    phases = [schedule[tensor] for tensor in convolution.op.input_tensors]
    padded = {tensor for phase in phases for tensor in phase.op.input_tensors if tensor.op.name == "data_pad"}
    result = storing_stage(schedule, convolution, [*phases, *(schedule[tensor] for tensor in padded)])
    _schedule_blocks(schedule, phases, convolution.op.attrs["strides"], result, cpu)
    for kept in kept_stages(schedule):
        if kept.is_schedulable and kept.stage is not result:
            schedule_injective_root(kept, cpu)
    return schedule


def _schedule_blocks(
    schedule: Schedule, phases: list[Stage], strides: Sequence[int], result: Stage, cpu: CPUDescription
) -> None:
    locals_of = [schedule[schedule.cache_write([phase.op.output(0)], "local")[0]] for phase in phases]
    found = {kept.stage: kept for kept in kept_stages(schedule)}
    tiles = [_tile(found[local], cpu) for local in locals_of]
    blocks = _chosen_blocks(found[locals_of[0]], tiles[0], len(phases), cpu)
    batch, outer, height, width, inner = result.op.axis
    block, within = result.split(height, factor=blocks.rows * strides[0])
    row, down = result.split(within, factor=strides[0])
    column, right = result.split(width, factor=strides[1])
    group, member = result.split(outer, factor=blocks.group)
    result.reorder(batch, group, block, member, row, column, down, right, inner)
    result.unroll(down)
    result.unroll(right)
    result.vectorize(inner)
    place = result.fuse(batch, group, block)
    result.parallel(place)
    for phase, local, sizes in zip(phases, locals_of, tiles, strict=True):
        _schedule_phase(phase, local, found[local], sizes, result, place, cpu)


def _tile(kept: Kept, cpu: CPUDescription) -> list[int]:
    """The register tile of a phase."""
    lanes = lanes_of(cpu, kept.operation.output(0).dtype)
    vector = vector_position(kept)
    assert vector is not None
    return tile_sizes(kept, classify(kept, vector, lanes), lanes, cpu)


def _schedule_phase(
    phase: Stage,
    local: Stage,
    kept: Kept,
    sizes: Sequence[int],
    result: Stage,
    place: IterVar,
    cpu: CPUDescription,
) -> None:
    vector = vector_position(kept)
    assert vector is not None
    found = classify(kept, vector, lanes_of(cpu, kept.operation.output(0).dtype))
    # The block is one core's and was made to fit its cache: neither is to be done again.
    inside = replace(cpu, cores=1, l2_bytes=1 << 40)
    tile_stages(phase, local, kept, found, sizes, inside)
    phase.compute_at(result, place)


def _chosen_blocks(kept: Kept, sizes: Sequence[int], phases: int, cpu: CPUDescription) -> Blocks:
    """As many panels as a tile has in a group; of the numbers of rows with which all cores have about the same to do,
    the largest with which the phases of a block stay in the second cache."""
    batch, outer, height, width, inner = (extent_of(axis) for axis in kept.compute.axes)
    group = next(size for size in range(sizes[1], outer + 1) if outer % size == 0)
    row_bytes = phases * group * width * inner * kept.operation.output(0).dtype.bits // 8

    def cost(rows: int) -> tuple[float, bool, bool, int]:
        units = batch * (outer // group) * (height // rows)
        imbalance = -(-units // cpu.cores) * cpu.cores / units
        return (
            max(imbalance, BALANCE),
            rows * row_bytes > cpu.l2_bytes // 4,
            rows % sizes[2] != 0,
            -rows,
        )

    return Blocks(min((rows for rows in range(1, height + 1) if height % rows == 0), key=cost), group)
