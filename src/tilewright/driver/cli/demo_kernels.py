"""The two kernels of the demo: tensor expressions, and schedules whose tiles follow from the machine description."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.target.cpu import CPUDescription


def matrix_product(rows: int, columns: int, depth: int, cpu: CPUDescription) -> tuple[Any, list[Any]]:
    """C = A · B in float32: a schedule and its arguments A, B, C.

    A tile of C stays in vector registers while the whole reduction passes. B is first packed into panels, in the
    order in which the innermost loop reads it. A block of rows is a task for one thread.
    """
    lanes = max(cpu.lanes(32), 4)
    tile_rows = 8 if cpu.vector_registers >= 32 else 4
    tile_columns = 2 * lanes
    left = te.placeholder((rows, depth), name="A")
    right = te.placeholder((depth, columns), name="B")
    panels = te.compute(
        (columns // tile_columns, depth, tile_columns),
        lambda panel, k, lane: right[k, panel * tile_columns + lane],
        name="panels",
    )
    k = te.reduce_axis((0, depth), name="k")
    product = te.compute(
        (rows, columns),
        lambda i, j: te.sum(left[i, k] * panels[j // tile_columns, k, j % tile_columns], axis=k),
        name="C",
    )

    schedule = te.create_schedule(product.op)
    tile = schedule.cache_write(product, "local")
    i, j = product.op.axis
    task, i = schedule[product].split(i, factor=128)
    i_outer, i_inner = schedule[product].split(i, factor=tile_rows)
    j_outer, j_inner = schedule[product].split(j, factor=tile_columns)
    schedule[product].reorder(task, j_outer, i_outer, i_inner, j_inner)
    schedule[product].parallel(task)
    _, j_vector = schedule[product].split(j_inner, factor=lanes)
    schedule[product].vectorize(j_vector)

    schedule[tile].compute_at(schedule[product], i_outer)
    i_tile, j_tile = tile.op.axis
    (k_tile,) = tile.op.reduce_axis
    k_outer, k_inner = schedule[tile].split(k_tile, factor=4)
    j_unrolled, j_lanes = schedule[tile].split(j_tile, factor=lanes)
    schedule[tile].reorder(k_outer, k_inner, i_tile, j_unrolled, j_lanes)
    schedule[tile].unroll(k_inner)
    schedule[tile].unroll(i_tile)
    schedule[tile].unroll(j_unrolled)
    schedule[tile].vectorize(j_lanes)

    panel, _, lane = panels.op.axis
    schedule[panels].parallel(panel)
    schedule[panels].vectorize(lane)
    return schedule, [left, right, product]


def softmax(rows: int, columns: int, cpu: CPUDescription) -> tuple[Any, list[Any]]:
    """Softmax over the last axis in float32: a schedule and its arguments X and Y.

    Each row is finished while it is in the cache. The two reductions keep one partial result for each vector lane,
    so that they run on full vectors.
    """
    lanes = max(cpu.lanes(32), 4)
    source = te.placeholder((rows, columns), name="X")
    k = te.reduce_axis((0, columns), name="k")
    largest = te.compute((rows,), lambda i: te.max(source[i, k], axis=k), name="largest")
    powers = te.compute((rows, columns), lambda i, j: te.exp(source[i, j] - largest[i]), name="powers")
    k_sum = te.reduce_axis((0, columns), name="k_sum")
    total = te.compute((rows,), lambda i: te.sum(powers[i, k_sum], axis=k_sum), name="total")
    result = te.compute((rows, columns), lambda i, j: powers[i, j] / total[i], name="Y")

    schedule = te.create_schedule(result.op)
    row, column = result.op.axis
    schedule[result].parallel(row)
    _, vector = schedule[result].split(column, factor=lanes)
    schedule[result].vectorize(vector)
    for reduction in (total, largest):
        # With several vectors of partial results, one addition need not wait for the one before it.
        _, lane = schedule[reduction].split(schedule[reduction].op.reduce_axis[0], factor=4 * lanes)
        partial = schedule.rfactor(reduction, lane, factor_axis=1)
        schedule[reduction].compute_at(schedule[result], row)
        schedule[partial].compute_at(schedule[result], row)
        schedule[partial].set_scope("local")
        (block,) = schedule[partial].op.reduce_axis
        partial_lane = schedule[partial].op.axis[1]
        unrolled, lane_vector = schedule[partial].split(partial_lane, factor=lanes)
        schedule[partial].reorder(block, unrolled, lane_vector)
        schedule[partial].unroll(unrolled)
        schedule[partial].vectorize(lane_vector)
    schedule[powers].compute_at(schedule[result], row)
    _, power_vector = schedule[powers].split(powers.op.axis[1], factor=lanes)
    schedule[powers].vectorize(power_vector)
    return schedule, [source, result]
