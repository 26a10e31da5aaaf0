"""Stages that are computed together, row by row: which rows they share, and what each has inside a row.

A *row* is what one team of threads computes: for softmax, the elements along its axis; for a reduction, everything
that one result is made of. Stages share rows if they can be computed slice by slice without computing anything twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.ir.expr import IntImm, IterVar, PrimExpr, Var
from tilewright.ir.functor import free_vars
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage
from tilewright.te.tensor import Operation, Tensor


@dataclass(eq=False)
class Member:
    """A stage of a group: the positions of its data axes that run over rows, and the axes inside a row."""

    materialized: MaterializedStage
    rows: tuple[int, ...]
    inside: tuple[IterVar, ...]
    """The reduction axes of a reduction; otherwise the data axes that do not run over rows. Axes of one element are
    left out."""

    @property
    def length(self) -> int:
        """Elements of a row."""
        return prod(extent_of(axis) for axis in self.inside)

    @property
    def is_constant(self) -> bool:
        """True if the length of a row is known."""
        return all(constant_extent(axis) is not None for axis in self.inside)


@dataclass(eq=False)
class RowGroup:
    """A root and the stages that are computed inside its rows, producers first."""

    root: Member
    cone: list[Member]
    row_axes: tuple[IterVar, ...]
    staged: dict[Tensor, tuple[int, ...]] = field(default_factory=dict)
    """Inputs that several stages read along the row, with the dimensions that run inside the row."""

    @property
    def members(self) -> list[Member]:
        """All stages, producers first."""
        return [*self.cone, self.root]

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return prod(extent_of(axis) for axis in self.row_axes)

    @property
    def length(self) -> int:
        """The longest row of any member."""
        return max(member.length for member in self.members)

    @property
    def is_constant(self) -> bool:
        """True if all rows have a known length."""
        return all(member.is_constant for member in self.members)


def row_group(root: MaterializedStage, cone: Sequence[MaterializedStage]) -> RowGroup | None:
    """The group of a root and its cone, if all of them share rows and agree on what a row is."""
    places = _shared_rows(root, cone)
    if places is None:
        return None
    rows = places[root]
    members = [_member(one, places[one]) for one in (*cone, root)]
    if any(member is None for member in members):
        return None
    found = [member for member in members if member is not None]
    longest = max(member.length for member in found)
    if any(member.length not in (1, longest) for member in found):
        return None
    by_operation = {member.materialized.operation: member for member in found}
    if not all(_reads_in_row(member, by_operation) for member in found):
        return None
    axes = tuple(root.compute.axes[position] for position in rows)
    group = RowGroup(found[-1], found[:-1], axes)
    group.staged = _staged_inputs(group)
    return group


def _shared_rows(
    root: MaterializedStage, cone: Sequence[MaterializedStage]
) -> dict[MaterializedStage, tuple[int, ...]] | None:
    """For each stage the positions of its axes that run over the shared rows, in the order of the root's."""
    chosen: list[dict[MaterializedStage, int]] = []
    for position, axis in enumerate(root.compute.axes):
        if constant_extent(axis) == 1:
            continue
        places: dict[MaterializedStage, int] = {root: position}
        if all(_slice(one, places) for one in reversed(cone)):
            chosen.append(places)
    if not cone:
        return {root: tuple(places[root] for places in chosen)} if root.is_reduction else None
    return {one: tuple(places[one] for places in chosen) for one in (*cone, root)}


def _slice(one: MaterializedStage, places: dict[MaterializedStage, int]) -> bool:
    """Find the dimension of a stage that all its readers index with their sliced axis."""
    found: set[int | None] = set()
    for reader in one.readers:
        sliced: Var = reader.compute.axes[places[reader]].var
        for read in reader.reads:
            if read.tensor.op is one.operation:
                dimensions = [place for place, index in enumerate(read.indices) if index is sliced]
                found.add(dimensions[0] if len(dimensions) == 1 else None)
    place = found.pop() if len(found) == 1 else None
    if place is None:
        return False
    places[one] = place
    return True


def _member(one: MaterializedStage, rows: tuple[int, ...]) -> Member | None:
    """A stage as part of a group; None for a reduction with data axes that are not rows."""
    axes = one.compute.axes
    rest = [axis for position, axis in enumerate(axes) if position not in rows and constant_extent(axis) != 1]
    if one.is_reduction:
        inside = [axis for axis in one.compute.reduce_axis if constant_extent(axis) != 1]
        return None if rest else Member(one, rows, tuple(_in_memory_order(one, inside)))
    return Member(one, rows, tuple(rest))


def _in_memory_order(one: MaterializedStage, axes: list[IterVar]) -> list[IterVar]:
    """Reduction axes in the order of the dimensions that they index: terms may be added in any order."""
    for read in one.reads:
        places = [
            next(
                (place for place, index in enumerate(read.indices) if axis.var in set(free_vars(index))), None
            )
            for axis in axes
        ]
        if all(place is not None for place in places):
            order = sorted(range(len(axes)), key=lambda number: (places[number] or 0, number))
            return [axes[number] for number in order]
    return axes


def _reads_in_row(reader: Member, members: dict[Operation, Member]) -> bool:
    """True if a stage reads the elements of other members at its own place in the row."""
    for read in reader.materialized.reads:
        producer = members.get(read.tensor.op)
        if producer is None or producer.materialized.is_reduction or producer.length == 1:
            continue
        axes = producer.materialized.compute.axes
        kept = {id(axis) for axis in producer.inside}
        indices = [index for axis, index in zip(axes, read.indices, strict=True) if id(axis) in kept]
        if not _is_place(indices, reader):
            return False
    return True


def _is_place(indices: Sequence[PrimExpr], reader: Member) -> bool:
    wanted = [axis.var for axis in reader.inside]
    return len(indices) == len(wanted) and all(
        one is other for one, other in zip(indices, wanted, strict=True)
    )


def _staged_inputs(group: RowGroup) -> dict[Tensor, tuple[int, ...]]:
    """Inputs from memory that more than one member reads at its place in the row, with those dimensions."""
    own = {member.materialized.operation for member in group.members}
    patterns: dict[Tensor, set[tuple[int, ...] | None]] = {}
    counts: dict[Tensor, int] = {}
    for member in group.members:
        seen: set[Tensor] = set()
        for read in member.materialized.reads:
            if read.tensor.op in own or member.length == 1:
                continue
            patterns.setdefault(read.tensor, set()).add(_dimensions(read.indices, member))
            seen.add(read.tensor)
        for tensor in seen:
            counts[tensor] = counts.get(tensor, 0) + 1
    found: dict[Tensor, tuple[int, ...]] = {}
    for tensor, known in patterns.items():
        dimensions = next(iter(known))
        if counts[tensor] > 1 and len(known) == 1 and dimensions:
            found[tensor] = dimensions
    return found


def _dimensions(indices: Sequence[PrimExpr], member: Member) -> tuple[int, ...] | None:
    """The dimensions that are indexed with the axes inside the row; None unless they are exactly those, in order, and
    the others depend on the row only."""
    inside = [axis.var for axis in member.inside]
    found = [place for place, index in enumerate(indices) if any(index is variable for variable in inside)]
    if not _is_place([indices[place] for place in found], member):
        return None
    rows = [member.materialized.compute.axes[position].var for position in member.rows]
    others = [index for place, index in enumerate(indices) if place not in found]
    if all(isinstance(index, IntImm) or any(index is row for row in rows) for index in others):
        return tuple(found)
    return None
