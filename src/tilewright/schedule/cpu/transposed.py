"""The schedule of a transposed convolution that is assembled from its phases.

The result is computed in blocks of whole rows. For each block the phases are computed one after the other, in register
tiles, into buffers that stay in cache; then the block is interleaved, and the epilogue applied, as it is stored. Blocks
run in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.contraction import Contraction, classify, vector_position
from tilewright.schedule.cpu.graph import MaterializedStage, materialized_stages
from tilewright.schedule.cpu.injective import schedule_injective_root
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.schedule.cpu.reduction import tile_problem, tile_sizes
from tilewright.schedule.cpu.tagged import schedule_of, storing_stage
from tilewright.schedule.cpu.tile_model import choose_tile, tile_cycles
from tilewright.schedule.cpu.tile_schedule import tile_stages
from tilewright.schedule.decisions import decide
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor
from tilewright.topi.tag import TRANSPOSED

BLOCKS_TO_TRY: Final = 16
"""Of the blocks, as the model ranks them, those that a tuner may choose from."""
SPILLED: Final = 1.3
"""The slowdown if the phases of a block do not fit in L2."""


@dataclass(frozen=True)
class Blocks:
    """Rows of each phase in a block, and vectors of output channels in a group."""

    rows: int
    group: int


def schedule_transposed(outs: Tensor | Sequence[Tensor]) -> Schedule:
    """The schedule of a tagged transposed convolution, in phases, with its epilogue."""
    schedule, convolution = schedule_of(outs, TRANSPOSED)
    cpu = current_cpu()
    phases = [schedule[tensor] for tensor in convolution.op.input_tensors]
    padded = {tensor for phase in phases for tensor in phase.op.input_tensors if tensor.op.name == "data_pad"}
    result = storing_stage(schedule, convolution, [*phases, *(schedule[tensor] for tensor in padded)])
    _schedule_blocks(
        schedule, phases, [int(stride) for stride in convolution.op.attrs["strides"]], result, cpu
    )
    for materialized in materialized_stages(schedule):
        if materialized.is_schedulable and materialized.stage is not result:
            schedule_injective_root(materialized, cpu)
    return schedule


def _schedule_blocks(
    schedule: Schedule, phases: list[Stage], strides: Sequence[int], result: Stage, cpu: CPUDescription
) -> None:
    locals_of = [schedule[schedule.cache_write([phase.op.output(0)], "local")[0]] for phase in phases]
    found = {materialized.stage: materialized for materialized in materialized_stages(schedule)}
    blocks = _chosen_blocks([found[local] for local in locals_of], cpu)
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
    for phase, local in zip(phases, locals_of, strict=True):
        _schedule_phase(phase, local, found[local], blocks.group, result, place, cpu)


def _contraction(materialized: MaterializedStage, lanes: int) -> Contraction:
    vector = vector_position(materialized)
    assert vector is not None
    return classify(materialized, vector, lanes)


def _schedule_phase(
    phase: Stage,
    local: Stage,
    materialized: MaterializedStage,
    group: int,
    result: Stage,
    place: IterVar,
    cpu: CPUDescription,
) -> None:
    lanes = lanes_of(cpu, materialized.operation.output(0).dtype)
    found = _contraction(materialized, lanes)
    # The block belongs to one core and was sized for its cache: neither is decided again.
    inside = replace(cpu, cores=1, l2_bytes=1 << 40)
    sizes = tile_sizes(materialized, found, lanes, cpu, group)
    tile_stages(phase, local, materialized, found, sizes, inside, within=True)
    phase.compute_at(result, place)


def _chosen_blocks(phases: Sequence[MaterializedStage], cpu: CPUDescription) -> Blocks:
    """The blocks with the shortest time of the busiest core: the steps of its tiles, and one pass over the weights of a
    group per block of rows."""
    batch, outer, height, width, inner = (extent_of(axis) for axis in phases[0].compute.axes)
    dtype = phases[0].operation.output(0).dtype
    size, lanes = dtype.bits // 8, lanes_of(cpu, dtype)
    steps = [prod(extent_of(axis) for axis in phase.compute.reduce_axis) for phase in phases]
    weight_bytes = sum(steps) * outer * inner * size

    def arithmetic(group: int) -> float:
        problems = [tile_problem(phase, _contraction(phase, lanes), lanes, group) for phase in phases]
        cycles = [tile_cycles(cpu, problem, choose_tile(cpu, problem)) for problem in problems]
        return batch * outer // group * sum(one * count for one, count in zip(cycles, steps, strict=True))

    def cost(blocks: Blocks) -> tuple[float, int, int]:
        lines = batch * height // blocks.rows
        units = lines * (outer // blocks.group)
        imbalance = -(-units // cpu.cores) * cpu.cores / units
        materialized_bytes = len(phases) * blocks.rows * blocks.group * width * inner * size
        spilled = SPILLED if materialized_bytes > cpu.l2_bytes // 4 else 1.0
        cycles = arithmetics[blocks.group] + weight_bytes * lines / cpu.memory_bytes_per_cycle
        return cycles * imbalance * spilled, -blocks.rows, blocks.group

    arithmetics = {group: arithmetic(group) for group in range(1, outer + 1) if outer % group == 0}
    # Of an open height no more than a row at a time, so that none is computed in vain.
    is_open = constant_extent(phases[0].compute.axes[2]) is None
    rows = [1] if is_open else [count for count in range(1, height + 1) if height % count == 0]
    ranked = sorted((Blocks(count, group) for count in rows for group in arithmetics), key=cost)
    sizes = [(blocks.rows, blocks.group) for blocks in ranked[:BLOCKS_TO_TRY]]
    return Blocks(*decide("blocks", sizes[0], lambda: sizes))
