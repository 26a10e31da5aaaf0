"""Reductions over small windows (pooling, depthwise convolution): each thread computes whole elements.

Neighbouring threads have neighbouring elements, so that they read neighbouring elements; a thread has a vector of
results, and where channels are innermost a patch of pixels, whose windows overlap in its registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from tilewright.ir.expr import IterVar, Var
from tilewright.ir.functor import free_vars
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage, reads_in_place
from tilewright.schedule.decisions import decide
from tilewright.schedule.gpu.injective import BLOCK, deal_out, vector_width
from tilewright.schedule.gpu.machine import GpuMachine, power_of_two_divisor, powers_of_two
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage

SMALL_WINDOW: Final = 32
"""Steps of a reduction that one thread does by itself, whatever it reads."""

LARGE_WINDOW: Final = 1024
"""Steps of a reduction over overlapping windows that one thread does by itself."""

UNROLLED_STEPS: Final = 256
"""Steps that are written out, for all elements of a thread together."""

PATCH_VECTOR: Final = 4
"""Adjacent results of a thread whose windows overlap: with more, its patch would be smaller."""

PATCH_ELEMENTS: Final = 128
"""Results of a thread whose windows overlap."""

PATCH_REGISTERS: Final = 224
"""Registers of such a thread, for its results and for all that it reads: it loads everything before it adds."""

PATCH_THREADS: Final = 64
"""Threads of a block of such threads: with their many registers, smaller blocks leave fewer places of a multiprocessor
empty."""

HARDLY_MORE: Final = 1.15
"""A patch that reads so many times the fewest elements is as fast."""


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
    patch = _patch(anchor, width, machine) if is_vector and overlaps(anchor) else ()
    block = PATCH_THREADS if prod(patch) > 1 else BLOCK
    place = deal_out(stage, width, machine, 1, patch, block=block)
    inner.compute_at(stage, place)
    _write_out(inner, width, is_vector, patch)


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
    most = min(machine.lanes(dtype) for dtype in types)
    if overlaps(anchor) and not _Window.of(anchor, _innermost(anchor)).overlaps:
        most = min(most, PATCH_VECTOR)
    return power_of_two_divisor(extent, most)


def _lanes(anchor: MaterializedStage, width: int) -> int:
    """Adjacent results, at most ``width``, whose steps read adjacent elements."""
    axis = _innermost(anchor)
    if axis is None:
        return 1
    moving = [read for read in anchor.reads if read.moves_with(axis)]
    while width > 1 and not all(read.steps(axis, width) == 1 for read in moving):
        width //= 2
    return width


def _patch(anchor: MaterializedStage, width: int, machine: GpuMachine) -> tuple[int, ...]:
    """Neighbouring results of a thread whose windows overlap: in a row, and in how many rows.

    What several windows read is loaded and converted once, and a weight serves all of them. The smallest patch is best
    that reads hardly more for a result than any other, as long as every multiprocessor has threads enough; of two, the
    one with more rows, because rows that different blocks read come from L2.
    """
    axes = [axis for axis in anchor.compute.axes if extent_of(axis) > 1][-2:-4:-1]
    reads = [_Window.of(anchor, axis) for axis in axes]
    sides = [
        _divisors(extent_of(axis)) if read.overlaps else [1] for axis, read in zip(axes, reads, strict=True)
    ]

    def elements_read(patch: tuple[int, ...]) -> int:
        return prod(read.elements(count) for count, read in zip(patch, reads, strict=True))

    def registers(patch: tuple[int, ...]) -> int:
        bits = prod(patch) * anchor.operation.output(0).dtype.bits
        bits += elements_read(patch) * max(read.tensor.dtype.bits for read in anchor.reads)
        return bits * width // 32

    single = (1,) * len(axes)
    possible = [
        patch
        for patch in product(*sides)
        if patch == single or (prod(patch) * width <= PATCH_ELEMENTS and registers(patch) <= PATCH_REGISTERS)
    ]
    threads = machine.multiprocessors * machine.multiprocessor_threads // 8
    suitable = [
        patch
        for patch in possible
        if patch == single
        or (anchor.elements() // width // prod(patch) >= threads and patch[-1] <= 2 * patch[0])
    ]
    fewest = min(elements_read(patch) / prod(patch) for patch in suitable)
    best = min(
        (patch for patch in suitable if elements_read(patch) / prod(patch) <= HARDLY_MORE * fewest),
        key=lambda patch: (prod(patch), elements_read(patch), -patch[-1]),
        default=single,
    )
    return decide("patch", best, lambda: possible)


@dataclass(frozen=True)
class _Window:
    """What a reduction reads along the dimension of one of its axes: ``size`` elements, the next ``step`` further."""

    step: int
    size: int

    @classmethod
    def of(cls, anchor: MaterializedStage, axis: IterVar | None) -> _Window:
        if axis is None or constant_extent(axis) is None:
            return cls(1, 1)
        found = [read.window(axis, anchor.compute.reduce_axis) for read in anchor.reads]
        known = [one for one in found if one is not None]
        return cls(*max(known, key=lambda one: one[1] - one[0], default=(1, 1)))

    @property
    def overlaps(self) -> bool:
        """True if the next window reads some of the same elements."""
        return self.size > self.step

    def elements(self, count: int) -> int:
        """What so many neighbouring windows read."""
        return (count - 1) * self.step + self.size


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, min(number, PATCH_ELEMENTS) + 1) if number % one == 0]


def _write_out(inner: Stage, width: int, is_vector: bool, patch: Sequence[int]) -> None:
    """The loops of the reduction of one thread: steps outside, its elements inside."""
    operation = inner.op
    assert isinstance(operation, ComputeOp)
    steps = list(operation.reduce_axis)
    if not operation.axes:
        return
    long = [axis for axis in operation.axes if constant_extent(axis) != 1]
    element = long[-1] if long else operation.axes[-1]
    neighbours = [axis for axis, count in zip(long[-2::-1], patch, strict=False) if count > 1][::-1]
    own = [*neighbours, element]
    others = [axis for axis in operation.axes if not any(axis is one for one in own)]
    inner.reorder(*others, *steps, *own)
    for axis in neighbours:
        inner.unroll(axis)
    if is_vector:
        inner.vectorize(element)
    elif width > 1:
        inner.unroll(element)
    count = prod(patch) * (1 if is_vector else width)
    for axis in reversed(steps):
        count *= extent_of(axis)
        if count > UNROLLED_STEPS:
            break
        inner.unroll(axis)
