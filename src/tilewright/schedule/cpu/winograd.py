"""The schedule of a Winograd convolution.

Outputs are computed in blocks of whole rows of tiles. For each block the inputs are transformed into a buffer that
stays in L2, multiplied into another one, and transformed back, with the epilogue applied, as they are stored. Blocks
run in parallel; if the image has too few of them, all inputs are transformed first, and groups of output channels run
in parallel too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.contraction import classify, vector_position
from tilewright.schedule.cpu.graph import materialized_stages
from tilewright.schedule.cpu.injective import schedule_injective_root
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.schedule.cpu.reduction import tile_sizes
from tilewright.schedule.cpu.tagged import schedule_of, storing_stage
from tilewright.schedule.cpu.tile_schedule import tile_stages
from tilewright.schedule.cpu.winograd_model import (
    Blocks,
    Convolution,
    ranked_winograd_blocks,
    winograd_blocks_of_open_height,
)
from tilewright.schedule.decisions import decide
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor
from tilewright.topi.tag import WINOGRAD

COLUMNS: Final = 5
"""The position of a tile's column among the axes of the product."""
BLOCKS_TO_TRY: Final = 16
"""Of the blocks, as the model ranks them, those that a tuner may choose from."""


@dataclass(frozen=True)
class Stages:
    """The stages of the convolution, in the order of the computation."""

    gathered: Stage
    halfway: Stage
    transformed: Stage
    product: Stage
    back_rows: Stage
    back: Stage
    convolution: Stage


def schedule_winograd(outs: Tensor | Sequence[Tensor]) -> Schedule:
    """The schedule of a tagged Winograd convolution with its epilogue."""
    schedule, convolution = schedule_of(outs, WINOGRAD)
    cpu = current_cpu()
    stages = _stages(schedule, convolution)
    result = storing_stage(schedule, convolution, vars(stages).values())
    _schedule_blocks(schedule, stages, result, cpu)
    for materialized in materialized_stages(schedule):
        if materialized.stage.is_output and materialized.stage is not result:
            schedule_injective_root(materialized, cpu)
    return schedule


def _stages(schedule: Schedule, convolution: Stage) -> Stages:
    chain = [convolution]
    while len(chain) < 7:
        chain.append(schedule[chain[-1].op.input_tensors[0]])
    return Stages(*reversed(chain))


def _schedule_blocks(schedule: Schedule, stages: Stages, result: Stage, cpu: CPUDescription) -> None:
    tile = extent_of(stages.back.op.axis[0])
    blocks = _chosen_blocks(stages, cpu)
    batch, outer, height, width, inner = result.op.axis
    block, within = result.split(height, factor=blocks.rows * tile)
    row, down = result.split(within, factor=tile)
    column, right = result.split(width, factor=tile)
    group, member = result.split(outer, factor=blocks.group)
    vectors: list[Any] = []
    if _vectors_of_block(stages, cpu) > 1:
        # Tiles of one vector: those of a whole block would not fit in the registers.
        vector, inner = result.split(inner, factor=lanes_of(cpu, stages.back.op.output(0).dtype))
        vectors.append(vector)
    result.reorder(batch, block, group, member, *vectors, row, column, down, right, inner)
    _unroll_and_vectorize(result, [down, right], inner)
    if blocks.inputs_first:
        if constant_extent(height) is None:
            # However many rows there are, the weights of a group stay in the cache for all of them.
            result.reorder(group, batch, block)
            place = result.fuse(group, batch, block)
        else:
            place = result.fuse(batch, block, group)
        result.parallel(place)
    else:
        shared = result.fuse(batch, block)
        result.parallel(shared)
        place = group
        stages.transformed.compute_at(result, shared)
    for stage in (stages.back_rows, stages.back):
        stage.compute_at(result, column)
        stage.set_scope("local")
        _unroll_and_vectorize(stage, stage.op.axis[:2], stage.op.axis[-1])
    _schedule_inputs(stages, blocks.inputs_first)
    local, has_remainder = _schedule_product(schedule, stages.product, blocks.group, result, place, cpu)
    computed = [stages.gathered, stages.halfway, local, stages.product, stages.back_rows, stages.back]
    if not blocks.inputs_first:
        computed.append(stages.transformed)
    for stage in computed:
        # Past the last tile everything is computed from zeros, which is what is gathered outside of the image.
        _, _, _, images, rows, columns, _ = stage.op.axis
        # The product computes what its tiles of columns leave over in a smaller tile instead: past the last column it
        # would read and write outside of its buffers.
        is_cut = has_remainder and stage in (local, stages.product)
        stage.overcompute(images, rows, *([] if is_cut else [columns]))


def _unroll_and_vectorize(stage: Stage, unrolled: Sequence[Any], vector: Any) -> None:
    for axis in unrolled:
        stage.unroll(axis)
    stage.vectorize(vector)


def _schedule_inputs(stages: Stages, in_parallel: bool) -> None:
    transformed = stages.transformed
    first, second, outer, batch, row, column, inner = transformed.op.axis
    transformed.reorder(outer, batch, row, column, first, second, inner)
    _unroll_and_vectorize(transformed, [first, second], inner)
    if in_parallel:
        transformed.parallel(transformed.fuse(outer, batch, row))
    for stage in (stages.gathered, stages.halfway):
        stage.compute_at(transformed, column)
        stage.set_scope("local")
        _unroll_and_vectorize(stage, stage.op.axis[:2], stage.op.axis[-1])


def _schedule_product(
    schedule: Schedule, stage: Stage, group: int, result: Stage, place: Any, cpu: CPUDescription
) -> tuple[Stage, bool]:
    """The stage of the sums in registers, and whether register tiles may leave columns over."""
    (local,) = schedule.cache_write([stage.op.output(0)], "local")
    materialized = next(
        materialized
        for materialized in materialized_stages(schedule)
        if materialized.stage is schedule[local]
    )
    vector = vector_position(materialized)
    assert vector is not None
    lanes = lanes_of(cpu, local.dtype)
    found = classify(materialized, vector, lanes)
    # The block belongs to one core and was sized for its cache: neither is decided again.
    inside = replace(cpu, cores=1, l2_bytes=1 << 40)
    sizes = tile_sizes(materialized, found, lanes, inside, group)
    tile_stages(stage, schedule[local], materialized, found, sizes, inside, within=True)
    stage.compute_at(result, place)
    columns = constant_extent(materialized.compute.axes[COLUMNS])
    return schedule[local], columns is None or columns % sizes[COLUMNS] != 0


def _vectors_of_block(stages: Stages, cpu: CPUDescription) -> int:
    """Vectors of sums in a block of output channels: several for packed lanes, whose blocks are those of 8-bit data."""
    sums = stages.convolution.op.output(0).dtype
    if stages.transformed.op.output(0).dtype.bits == sums.bits:
        return 1
    return -(-extent_of(stages.convolution.op.axis[-1]) // lanes_of(cpu, sums))


def _chosen_blocks(stages: Stages, cpu: CPUDescription) -> Blocks:
    """The blocks that the model chooses for the sizes of the stages, unless a tuner wants others of the good ones."""
    inputs, block = (extent_of(stages.transformed.op.axis[number]) for number in (2, 6))
    batch, outer, height, width, lanes = (extent_of(axis) for axis in stages.convolution.op.axis)
    size, sum_size = (
        stage.op.output(0).dtype.bits // 8 for stage in (stages.transformed, stages.convolution)
    )
    convolution = Convolution(
        *(batch, inputs * block, outer * lanes, height, width, lanes, size, sum_size),
        vectors=_vectors_of_block(stages, cpu),
        products=sum_size // size,
    )
    tile = extent_of(stages.back.op.axis[0])
    if constant_extent(stages.convolution.op.axis[2]) is None:
        return winograd_blocks_of_open_height(cpu, convolution, tile)
    ranked = ranked_winograd_blocks(cpu, convolution, tile)
    sizes = [tuple(vars(blocks).values()) for blocks, _ in ranked[:BLOCKS_TO_TRY]]
    return Blocks(*decide("blocks", sizes[0], lambda: sizes))
