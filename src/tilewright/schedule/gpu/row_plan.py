"""How many threads compute a row, how many rows a block has, and whether rows are kept in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.ir.expr import IntImm, PrimExpr
from tilewright.schedule.cpu.access import Read, constant_extent, extent_of
from tilewright.schedule.decisions import decide
from tilewright.schedule.gpu.machine import (
    GpuMachine,
    power_of_two_below,
    power_of_two_divisor,
    powers_of_two,
)
from tilewright.schedule.gpu.rows import Member, RowGroup
from tilewright.te.tensor import Tensor

VECTORS_A_THREAD: Final = 4
"""Loads of a thread that are on their way at the same time: enough to hide the latency of memory."""

REGISTERS_A_THREAD: Final = 96
"""Registers of a thread for elements that are kept; with more, too few threads would run at a time."""

ROWS_BLOCK: Final = 256
"""Threads of a block of short rows."""

COPIED_BLOCK: Final = 128
"""Threads of a block that copies its rows to shared memory: all of them wait for the copy, so that small blocks leave
more for others to do."""

COPIED_STEPS: Final = 32
"""Elements of a row for one thread of such a block."""

ACROSS_BLOCK: Final = 512
"""Threads of a block whose neighbouring threads have neighbouring rows."""


@dataclass(frozen=True)
class RowPlan:
    """``team`` threads compute a row, in ``steps`` steps of ``vector`` adjacent elements each; a block has ``rows``.

    ``is_across``: the elements of a row are not adjacent, those of neighbouring rows are; neighbouring threads then
    have neighbouring rows. ``is_kept``: the elements of a row stay in registers. ``is_copied``: all rows of a block are
    copied to shared memory at once, and the results back, because single rows do not fill whole vectors.
    """

    team: int
    rows: int
    vector: int
    steps: int
    is_across: bool
    is_kept: bool
    is_copied: bool = False


def plan_rows(group: RowGroup, machine: GpuMachine) -> RowPlan:
    """The plan for a group of stages that share rows."""
    is_across = _is_across(group, machine)
    vector = 1 if is_across else _vector(group, machine)
    pieces = -(-group.length // vector)
    if is_across:
        team, rows = _across_threads(group, machine)
    else:
        team, rows = _copied_threads(group, vector, machine) or _row_threads(group, pieces, machine)
    if group.is_constant:
        team, rows = decide("row_threads", (team, rows), lambda: _row_shapes(group, pieces, machine))
    steps = -(-pieces // team)
    is_kept = _is_kept(group, steps * vector)
    is_copied = is_kept and not is_across and vector == 1 and _is_copied(group, rows, machine)
    return RowPlan(team, rows, vector, steps, is_across, is_kept, is_copied)


def _row_shapes(group: RowGroup, pieces: int, machine: GpuMachine) -> list[tuple[int, int]]:
    """Threads of a row and rows of a block: blocks of a warp at least, with no thread that has nothing to do."""
    return [
        (team, rows)
        for team in powers_of_two(1, min(power_of_two_below(pieces), machine.threads(1024)))
        for rows in powers_of_two(1, min(power_of_two_below(group.row_count), machine.threads(1024) // team))
        if team * rows >= machine.warp
    ]


def _is_kept(group: RowGroup, elements: int) -> bool:
    """True if the elements of a thread, of everything that is read or written more than once, fit into registers."""
    if not group.is_constant:
        return False
    types = [tensor.dtype for tensor in group.staged]
    types += [
        member.materialized.operation.output(0).dtype
        for member in group.cone
        if not member.materialized.is_reduction and member.length > 1
    ]
    return sum(max(dtype.bits, 16) * elements for dtype in types) <= REGISTERS_A_THREAD * 32


def _copied_threads(group: RowGroup, vector: int, machine: GpuMachine) -> tuple[int, int] | None:
    """Threads of a row, and rows of a block, if the rows of blocks are copied: since the copies fill vectors whichever
    thread computes what, few threads a row do, and exchange little."""
    if vector > 1 or not group.is_constant:
        return None
    team = 1 << (-(-group.length // COPIED_STEPS) - 1).bit_length()
    rows = power_of_two_divisor(group.row_count, COPIED_BLOCK // team) if team <= COPIED_BLOCK else 1
    is_full = team * rows >= machine.warp and group.row_count >= 2 * rows * machine.multiprocessors
    return (team, rows) if is_full and _is_copied(group, rows, machine) else None


def _is_copied(group: RowGroup, rows: int, machine: GpuMachine) -> bool:
    """True if single elements are so narrow that loading them wastes bandwidth, and those of a block of rows lie one
    after the other, in whole vectors."""
    root = group.root
    if root.materialized.is_reduction or root.length == 1 or not group.staged:
        return False
    if rows == 1 or group.row_count % rows:
        return False
    made, block = root.materialized.operation.output(0), rows * root.length
    tensors = [made, *group.staged]
    if any(tensor.dtype.bits >= 32 or block % machine.lanes(tensor.dtype) for tensor in tensors):
        return False
    if sum(block * tensor.dtype.bits // 8 for tensor in tensors) > machine.shared_bytes // 2:
        return False
    indices: list[PrimExpr] = [axis.var for axis in root.materialized.compute.axes]
    places = [(made, indices, root)]
    for member in group.members:
        if member.length > 1:
            reads = [read for read in member.materialized.reads if read.tensor in group.staged]
            places += [(read.tensor, list(read.indices), member) for read in reads]
    return all(_is_in_order(*place) for place in places)


def _is_in_order(tensor: Tensor, indices: Sequence[PrimExpr], member: Member) -> bool:
    """True if a tensor has nothing but the rows, along one axis, and the elements of each one after the other."""
    axes = member.materialized.compute.axes
    rows = [axes[place] for place in member.rows if extent_of(axes[place]) > 1]
    wanted = [*rows, *member.inside]
    extents = [extent.value if isinstance(extent, IntImm) else 0 for extent in tensor.shape]
    found = [(index, extent) for index, extent in zip(indices, extents, strict=True) if extent != 1]
    return (
        len(rows) == 1
        and len(found) == len(wanted)
        and all(
            index is axis.var and extent == extent_of(axis)
            for (index, extent), axis in zip(found, wanted, strict=True)
        )
    )


def _long_reads(member: Member, group: RowGroup) -> list[Read]:
    """The loads of a stage from memory that depend on the place in the row."""
    own = {one.materialized.operation for one in group.members}
    return [
        read
        for read in member.materialized.reads
        if read.tensor.op not in own and any(read.moves_with(axis) for axis in member.inside)
    ]


def _is_across(group: RowGroup, machine: GpuMachine) -> bool:
    """True if most bytes are adjacent along rows' own axes rather than inside a row."""
    inside, across = 0, 0
    for member in group.members:
        if member.length == 1:
            continue
        axes = member.materialized.compute.axes
        rows = [axes[position] for position in member.rows if extent_of(axes[position]) > 1]
        for read in _long_reads(member, group):
            weight = max(read.tensor.dtype.bits, 8)
            if read.steps(member.inside[-1], 2) == 1:
                inside += weight
            elif rows and read.steps(rows[-1], 2) == 1:
                across += weight
    root = group.root
    if root.length > 1 and not root.materialized.is_reduction:
        long = [axis for axis in root.materialized.compute.axes if extent_of(axis) > 1]
        weight = max(root.materialized.operation.output(0).dtype.bits, 8)
        if long[-1] is root.inside[-1]:
            inside += weight
        else:
            across += weight
    return across > inside


def _vector(group: RowGroup, machine: GpuMachine) -> int:
    """Adjacent elements that one load or store takes."""
    if not group.is_constant:
        return 1
    widest = 8
    for member in group.members:
        if member.length == 1:
            continue
        extent = constant_extent(member.inside[-1])
        assert extent is not None
        widest = min(widest, power_of_two_divisor(extent, widest))
        for read in _long_reads(member, group):
            widest = min(widest, machine.lanes(read.tensor.dtype))
            while widest > 1 and not read.is_contiguous(member.inside[-1], widest):
                widest //= 2
    root = group.root
    if root.length > 1 and not root.materialized.is_reduction:
        long = [axis for axis in root.materialized.compute.axes if extent_of(axis) > 1]
        widest = min(widest, machine.lanes(root.materialized.operation.output(0).dtype))
        if long[-1] is not root.inside[-1]:
            return 1
    return max(widest, 1)


def _row_threads(group: RowGroup, pieces: int, machine: GpuMachine) -> tuple[int, int]:
    """Threads of a row, and rows of a block."""
    warp = max(machine.warp, 8)
    most = machine.threads(1024)
    if not group.is_constant:
        return min(ROWS_BLOCK, most), 1
    if pieces <= warp * VECTORS_A_THREAD:
        team = min(warp, power_of_two_below(pieces))
    else:
        team = min(max(power_of_two_below(pieces // VECTORS_A_THREAD), warp), most)
    if not group.staged and not any(member.length > 1 for member in group.cone):
        # Nothing has to fit into registers: more and smaller teams end at about the same time.
        team = min(team, ROWS_BLOCK)
    # Few rows: more threads each, so that all multiprocessors have work.
    while group.row_count * team < machine.multiprocessors * ROWS_BLOCK and team * 2 <= min(
        power_of_two_below(pieces), most
    ):
        team *= 2
    rows = min(max(min(ROWS_BLOCK, most) // team, 1), power_of_two_below(group.row_count))
    while rows > 1 and -(-group.row_count // rows) < 2 * machine.multiprocessors:
        rows //= 2
    return team, rows


def _across_threads(group: RowGroup, machine: GpuMachine) -> tuple[int, int]:
    """Threads of a row, and rows of a block, where neighbouring threads have neighbouring rows."""
    rows = min(32, power_of_two_below(group.row_count))
    most = machine.threads(ACROSS_BLOCK)
    team = 1
    wanted = machine.multiprocessors * machine.multiprocessor_threads // 2
    while (
        team * rows * 2 <= most
        and team * 2 * VECTORS_A_THREAD <= group.length
        and (group.row_count * team < wanted or group.length // team > 16 * VECTORS_A_THREAD)
    ):
        team *= 2
    while team == 1 and rows * 2 <= 128 and group.row_count // rows > 4 * machine.multiprocessors:
        rows *= 2
    return team, rows
