"""Reductions over small windows (pooling, depthwise convolution): each thread computes whole elements.

Neighbouring threads have neighbouring elements, so that they read neighbouring elements; a thread has a vector of
results, and where channels are innermost several pixels, whose windows overlap in its registers.
"""

from __future__ import annotations

from math import prod
from typing import Final

from tilewright.ir.expr import IterVar, Var
from tilewright.ir.functor import free_vars
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage, reads_in_place
from tilewright.schedule.decisions import decide
from tilewright.schedule.gpu.injective import deal_out, vector_width
from tilewright.schedule.gpu.machine import GpuMachine, power_of_two_divisor, powers_of_two
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage

SMALL_WINDOW: Final = 32
"""Steps of a reduction that one thread does by itself, whatever it reads."""

LARGE_WINDOW: Final = 1024
"""Steps of a reduction over overlapping windows that one thread does by itself."""

UNROLLED_STEPS: Final = 128
"""Steps that are written out, for all elements of a thread together."""

ELEMENTS: Final = 16
"""Elements of a thread whose windows overlap: with more, registers would limit the number of threads."""


def anchor_of(root: MaterializedStage, cone: list[MaterializedStage]) -> MaterializedStage | None:
    """The only reduction of a kernel, if the root is it or reads it where it computes, and nothing else is inside."""
    reductions = [one for one in (*cone, root) if one.is_reduction]
    if len(reductions) != 1:
        return None
    anchor = reductions[0]
    if anchor is root:
        return root if not cone else None
    return anchor if cone == [anchor] and reads_in_place(root, anchor) else None


def is_window(anchor: MaterializedStage) -> bool:
    """True for a reduction that each thread should do by itself."""
    axes = anchor.compute.reduce_axis
    if any(constant_extent(axis) is None for axis in axes):
        return False
    steps = prod(extent_of(axis) for axis in axes)
    return (steps <= SMALL_WINDOW and not _is_row(anchor)) or (steps <= LARGE_WINDOW and overlaps(anchor))


def _is_row(anchor: MaterializedStage) -> bool:
    """True if the steps of the reduction read adjacent elements that no other element of the result needs."""
    axis = anchor.compute.reduce_axis[-1]
    return (
        not overlaps(anchor)
        and extent_of(axis) > 4
        and any(read.moves_with(axis) and read.steps(axis, 2) == 1 for read in anchor.reads)
    )


def overlaps(anchor: MaterializedStage) -> bool:
    """True if an index depends on a data axis and on a reduction axis together."""
    data: set[Var] = {axis.var for axis in anchor.compute.axes if extent_of(axis) > 1}
    reduced: set[Var] = {axis.var for axis in anchor.compute.reduce_axis if extent_of(axis) > 1}
    for read in anchor.reads:
        for index in read.indices:
            found = set(free_vars(index))
            if found & data and found & reduced:
                return True
    return False


def schedule_window(
    schedule: Schedule, root: MaterializedStage, anchor: MaterializedStage, machine: GpuMachine
) -> None:
    """Schedules the reduction with its epilogue; ``root`` may be the reduction itself."""
    stage = root.stage
    widest = _memory_width(root, anchor, machine)
    width = decide("vector", widest, lambda: powers_of_two(1, widest))
    lanes = _lanes(anchor, width)
    if anchor is root:
        made = schedule.cache_write(
            list(stage.op.outputs) if stage.op.num_outputs > 1 else stage.op.output(0), "local"
        )
        inner = schedule[made[0] if isinstance(made, list) else made]
    else:
        width = min(width, max(vector_width(root, machine, anchor.operation), 1))
        inner = anchor.stage
        inner.set_scope("local")
    is_vector = lanes >= width > 1
    pixels = 1
    if is_vector and overlaps(anchor):
        most = _most_pixels(root, width)
        pixels = decide("pixels", _pixels(root, width, most, machine), lambda: powers_of_two(1, most))
    place = deal_out(stage, width, machine, 1, pixels)
    inner.compute_at(stage, place)
    _write_out(inner, width, is_vector, pixels)


def _innermost(anchor: MaterializedStage) -> IterVar | None:
    long = [axis for axis in anchor.compute.axes if extent_of(axis) > 1]
    return long[-1] if long else None


def _memory_width(root: MaterializedStage, anchor: MaterializedStage, machine: GpuMachine) -> int:
    """Adjacent results that one store takes, and whose operands one load takes where these are adjacent, too."""
    axis = _innermost(root)
    extent = None if axis is None else constant_extent(axis)
    if extent is None:
        return 1
    types = [tensor.dtype for tensor in root.operation.outputs]
    types += [read.tensor.dtype for read in anchor.reads if any(read.moves_with(one) for one in read.axes)]
    return power_of_two_divisor(extent, min(machine.lanes(dtype) for dtype in types))


def _lanes(anchor: MaterializedStage, width: int) -> int:
    """Adjacent results, at most ``width``, whose steps read adjacent elements."""
    axis = _innermost(anchor)
    if axis is None:
        return 1
    moving = [read for read in anchor.reads if read.moves_with(axis)]
    while width > 1 and not all(read.steps(axis, width) == 1 for read in moving):
        width //= 2
    return width


def _most_pixels(root: MaterializedStage, width: int) -> int:
    """Neighbouring pixels that a thread can have."""
    long = [axis for axis in root.compute.axes if extent_of(axis) > 1]
    extent = constant_extent(long[-2]) if len(long) > 1 else None
    return 1 if extent is None else power_of_two_divisor(extent, max(ELEMENTS // width, 1))


def _pixels(root: MaterializedStage, width: int, pixels: int, machine: GpuMachine) -> int:
    """Neighbouring pixels of a thread, at most ``pixels``, as long as every multiprocessor has threads enough."""
    enough = machine.multiprocessors * machine.multiprocessor_threads
    while pixels > 1 and root.elements() // width // pixels < enough:
        pixels //= 2
    return pixels


def _write_out(inner: Stage, width: int, is_vector: bool, pixels: int) -> None:
    """The loops of the reduction of one thread: steps outside, its elements inside."""
    operation = inner.op
    assert isinstance(operation, ComputeOp)
    steps = list(operation.reduce_axis)
    if not operation.axes:
        return
    long = [axis for axis in operation.axes if constant_extent(axis) != 1]
    element = long[-1] if long else operation.axes[-1]
    own = [*([long[-2]] if pixels > 1 else []), element]
    others = [axis for axis in operation.axes if not any(axis is one for one in own)]
    inner.reorder(*others, *steps, *own)
    if pixels > 1:
        inner.unroll(own[0])
    if is_vector:
        inner.vectorize(element)
    elif width > 1:
        inner.unroll(element)
    count = pixels * (1 if is_vector else width)
    for axis in reversed(steps):
        count *= extent_of(axis)
        if count > UNROLLED_STEPS:
            break
        inner.unroll(axis)
