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
from tilewright.schedule.gpu.injective import deal_out, vector_width
from tilewright.schedule.gpu.machine import GpuMachine
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage

SMALL_WINDOW: Final = 32
"""Steps of a reduction that one thread does by itself, whatever it reads."""

LARGE_WINDOW: Final = 1024
"""Steps of a reduction over overlapping windows that one thread does by itself."""

UNROLLED_STEPS: Final = 128
"""Steps that are written out, for all elements of a thread together."""

PIXELS: Final = 4
"""Neighbouring pixels of a thread whose windows overlap."""


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
    return steps <= SMALL_WINDOW and not _is_row(anchor) or (steps <= LARGE_WINDOW and overlaps(anchor))


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
    along = _innermost(anchor)
    lanes = 1 if along is None else _lanes(anchor, along, machine)
    if anchor is root:
        width = _store_width(root, machine)
        made = schedule.cache_write(list(stage.op.outputs) if stage.op.num_outputs > 1 else stage.op.output(0), "local")
        inner = schedule[made[0] if isinstance(made, list) else made]
    else:
        width = vector_width(root, machine)
        inner = anchor.stage
        inner.set_scope("local")
    width = min(width, max(lanes, _store_width(anchor, machine)))
    place = deal_out(stage, width, machine) if stage.op.axis else None
    if place is None:
        return
    inner.compute_at(stage, place)
    _write_out(inner, width, lanes >= width > 1)


def _innermost(anchor: MaterializedStage) -> IterVar | None:
    long = [axis for axis in anchor.compute.axes if extent_of(axis) > 1]
    return long[-1] if long else None


def _store_width(one: MaterializedStage, machine: GpuMachine) -> int:
    """Adjacent results that one store takes."""
    axis = _innermost(one)
    extent = None if axis is None else constant_extent(axis)
    if extent is None:
        return 1
    width = min(machine.lanes(tensor.dtype) for tensor in one.operation.outputs)
    while width > 1 and extent % width:
        width //= 2
    return width


def _lanes(anchor: MaterializedStage, axis: IterVar, machine: GpuMachine) -> int:
    """Adjacent results whose steps read adjacent elements."""
    width = _store_width(anchor, machine)
    moving = [read for read in anchor.reads if read.moves_with(axis)]
    while width > 1 and not all(read.steps(axis, width) == 1 for read in moving):
        width //= 2
    return width


def _write_out(inner: Stage, width: int, is_vector: bool) -> None:
    """The loops of the reduction of one thread: steps outside, its elements inside."""
    operation = inner.op
    assert isinstance(operation, ComputeOp)
    steps = list(operation.reduce_axis)
    if not operation.axes:
        return
    element = operation.axes[-1]
    inner.reorder(*operation.axes[:-1], *steps, element)
    if is_vector:
        inner.vectorize(element)
    elif width > 1:
        inner.unroll(element)
    count = 1 if is_vector else width
    for axis in reversed(steps):
        count *= extent_of(axis)
        if count > UNROLLED_STEPS:
            break
        inner.unroll(axis)
