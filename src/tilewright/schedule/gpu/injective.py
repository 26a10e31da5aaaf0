"""Elementwise kernels: neighbouring threads have neighbouring elements, 16 bytes each where they are adjacent."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import Read, constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.schedule.decisions import decide
from tilewright.schedule.gpu.machine import GpuMachine, power_of_two_divisor, powers_of_two
from tilewright.te.operation import thread_axis
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation

BLOCK: Final = 256
"""Threads of a block: enough to fill the schedulers of a multiprocessor."""

VECTORS_A_THREAD: Final = 4
"""Vectors of a thread in a large kernel: their loads are on their way at the same time."""


def schedule_injective(materialized: MaterializedStage, machine: GpuMachine) -> IterVar:
    """Deals the elements of a stage out to blocks of threads; the axis of a thread's own elements."""
    stage = materialized.stage
    if not stage.op.axis:
        # One element: one thread around the whole stage.
        only = stage.fuse()
        stage.env_threads([thread_axis((0, 1), "blockIdx.x"), thread_axis((0, 1), "threadIdx.x")])
        return only
    width, widest = vector_width(materialized, machine), _flat_width(materialized, machine)
    if widest > width:
        return deal_out(stage, widest, machine, crosses_rows=True)
    return deal_out(stage, width, machine)


def _flat_width(materialized: MaterializedStage, machine: GpuMachine) -> int:
    """Elements of a vector that may go on from one row to the next, because everything is read in the order in which
    the results are written; 1 if something is not."""
    axes = materialized.compute.axes
    variables = tuple([axis.var for axis in axes])
    outputs = materialized.operation.outputs
    for read in materialized.reads:
        if tuple(read.indices) != variables or tuple(read.tensor.shape) != tuple(outputs[0].shape):
            return 1
    types = [tensor.dtype for tensor in (*outputs, *(read.tensor for read in materialized.reads))]
    width = min(machine.lanes(dtype) for dtype in types)
    is_known = all(constant_extent(axis) is not None for axis in axes)
    return width if is_known and prod(extent_of(axis) for axis in axes) >= width else 1


def vector_width(
    materialized: MaterializedStage, machine: GpuMachine, in_registers: Operation | None = None
) -> int:
    """Adjacent elements that a thread computes at a time: all that are loaded or stored with 16 bytes. What is in the
    thread's registers has any type."""
    axes = materialized.compute.axes
    long = [axis for axis in axes if extent_of(axis) > 1]
    if not long:
        return 1
    extent = constant_extent(long[-1])
    if extent is None:
        return 1
    types = [tensor.dtype for tensor in materialized.operation.outputs]
    moving = [
        read
        for read in materialized.reads
        if read.moves_with(long[-1]) and read.tensor.op is not in_registers
    ]
    types += [read.tensor.dtype for read in moving]
    width = power_of_two_divisor(extent, min(machine.lanes(dtype) for dtype in types))
    while width > 1 and not all(_is_adjacent(read, long[-1], width) for read in moving):
        width //= 2
    return width


def _is_adjacent(read: Read, axis: IterVar, width: int) -> bool:
    """True if ``width`` steps along the axis load adjacent elements that start at a multiple of ``width``."""
    return read.steps(axis, width) == 1 and _is_aligned(read, axis, width)


def _is_aligned(read: Read, axis: IterVar, width: int) -> bool:
    """True if the loads of all vectors start at multiples of the width, at a few points."""
    for number in range(4):
        point = {
            one.var: (7 * number * (place + 1)) % max(extent_of(one), 1)
            for place, one in enumerate(read.axes)
        }
        point[axis.var] = point[axis.var] // width * width
        address = read.address(point)
        if address is None or address % width:
            return False
    return True


def deal_out(
    stage: Stage,
    width: int,
    machine: GpuMachine,
    vectors: int = VECTORS_A_THREAD,
    patch: Sequence[int] = (),
    crosses_rows: bool = False,
    block: int = BLOCK,
) -> IterVar:
    """Deals the elements out to blocks of threads, vectors of ``width`` to each; the innermost axis of a thread.

    In a large kernel a thread has ``vectors`` of them. ``patch`` counts the neighbours of a thread along the axes
    before the vectors', the innermost first, and ``block`` the threads of a block. If a vector ``crosses_rows``, all
    axes are one, and the last vector may be shorter.
    """
    axes = list(stage.op.axis)
    long = [number for number, axis in enumerate(axes) if constant_extent(axis) != 1]
    total, is_constant = 1, True
    for axis in axes:
        extent = constant_extent(axis)
        is_constant = is_constant and extent is not None
        total *= 1 if extent is None else extent
    if crosses_rows and len(axes) > 1:
        axes, long = [stage.fuse(*axes)], [0]
    vector = None
    if width > 1:
        axes[long[-1]], vector = stage.split(axes[long[-1]], factor=width)
        stage.reorder(*axes, vector)
    neighbours: list[IterVar] = []
    for number, count in zip(reversed(long[:-1]), patch, strict=False):
        if count > 1:
            axes[number], neighbour = stage.split(axes[number], factor=count)
            neighbours.insert(0, neighbour)
            stage.unroll(neighbour)
    if neighbours:
        stage.reorder(*axes, *neighbours, *([] if vector is None else [vector]))
    fused = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    pieces = -(-total // width) // prod(patch)
    threads = machine.threads(min(block, max(pieces, 1)) if is_constant else block)
    if is_constant:
        threads = decide("threads", threads, lambda: powers_of_two(machine.warp, machine.threads(pieces)))
    outer, thread = stage.split(fused, factor=threads)
    grid, last = outer, thread
    if is_constant and vectors > 1 and pieces >= vectors * machine.blocks_at_once(threads) * threads:
        grid, step = stage.split(outer, factor=vectors)
        stage.reorder(grid, thread, step)
        stage.unroll(step)
        last = step
    stage.bind(grid, thread_axis("blockIdx.x"))
    stage.bind(thread, thread_axis("threadIdx.x"))
    if vector is not None:
        stage.vectorize(vector)
    return last
