"""The stages of a schedule that are left after inlining, and which of them can be computed inside of another.

A *root* is computed by loops of its own. Its *cone* is what is read by it, directly or through others of the cone,
and by nothing else: what may be computed inside of the root's loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from tilewright.ir.expr import IterVar, Var
from tilewright.schedule.cpu.access import Read, assumed, extent_of, reads_of
from tilewright.schedule.cpu.cost import cost_of
from tilewright.schedule.cpu.machine import STORE_WORK
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.tensor import Operation


@dataclass(eq=False)
class MaterializedStage:
    """A stage that is not inlined, with its operation as it will be: what is inlined put in."""

    stage: Stage
    operation: Operation
    reads: list[Read] = field(default_factory=list)
    readers: list[MaterializedStage] = field(default_factory=list)

    @property
    def compute(self) -> ComputeOp:
        """The operation, of a stage that is known to be a computation."""
        assert isinstance(self.operation, ComputeOp)
        return self.operation

    @property
    def is_reduction(self) -> bool:
        """True for a computation over reduction axes."""
        return isinstance(self.operation, ComputeOp) and bool(self.operation.reduce_axis)

    @property
    def is_movable(self) -> bool:
        """True for a computation that nothing else has placed."""
        return (
            isinstance(self.operation, ComputeOp)
            and not self.stage.is_output
            and self.stage.group is None
            and self.stage.attach_type == AttachType.GROUP_ROOT
        )

    @property
    def is_schedulable(self) -> bool:
        """True for a computation whose loops are still as they were made, outside of any scan."""
        return (
            isinstance(self.operation, ComputeOp)
            and self.stage.group is None
            and self.stage.attach_type == AttachType.GROUP_ROOT
            and not self.stage.relations
        )

    def elements(self) -> int:
        """How many elements there are."""
        return prod(assumed(extent) for extent in self.operation.output(0).shape)

    def work(self) -> int:
        """Operations for all elements, their way to memory included."""
        steps = prod(extent_of(axis) for axis in self.compute.reduce_axis)
        return self.elements() * (STORE_WORK + steps * max(cost_of(self.compute).operations, 1))


def materialized_stages(schedule: Schedule) -> list[MaterializedStage]:
    """The stages that are computed, producers first, each with its readers."""
    found: dict[Operation, MaterializedStage] = {}
    # Both lists have the same order: normalisation only replaces the operations.
    for stage, normal in zip(schedule.stages, schedule.normalize().stages, strict=True):
        if normal.attach_type == AttachType.INLINED_ALREADY or not normal.op.input_tensors:
            if isinstance(normal.op, ComputeOp) and normal.attach_type != AttachType.INLINED_ALREADY:
                found[normal.op] = MaterializedStage(stage, normal.op)
            continue
        reads = reads_of(normal.op) if isinstance(normal.op, ComputeOp) else []
        materialized = MaterializedStage(stage, normal.op, reads)
        found[normal.op] = materialized
        for operation in dict.fromkeys(tensor.op for tensor in normal.op.input_tensors):
            if operation in found:
                found[operation].readers.append(materialized)
    return list(found.values())


def cones(
    stages: list[MaterializedStage], roots: set[MaterializedStage]
) -> dict[MaterializedStage, list[MaterializedStage]]:
    """The cone of each root, producers first. Stages that belong to no single root are added to the roots."""
    owner: dict[MaterializedStage, MaterializedStage] = {}
    for materialized in reversed(stages):
        owners = {owner[reader] for reader in materialized.readers}
        single = next(iter(owners)) if len(owners) == 1 else None
        if (
            materialized in roots
            or not materialized.is_movable
            or single is None
            or not single.is_schedulable
        ):
            roots.add(materialized)
            owner[materialized] = materialized
        else:
            owner[materialized] = single
    found: dict[MaterializedStage, list[MaterializedStage]] = {root: [] for root in stages if root in roots}
    for materialized in stages:
        if owner[materialized] is not materialized:
            found[owner[materialized]].append(materialized)
    return found


def reads_in_place(reader: MaterializedStage, producer: MaterializedStage) -> bool:
    """True if every read of the producer is at the very index that the reader computes."""
    axes = reader.compute.axes
    for read in reader.reads:
        if read.tensor.op is producer.operation:
            if len(read.indices) != len(axes):
                return False
            if any(index is not axis.var for index, axis in zip(read.indices, axes, strict=True)):
                return False
    return True


def row_axes(root: MaterializedStage, cone: list[MaterializedStage]) -> list[IterVar]:
    """Axes of the root along which the whole cone can be computed slice by slice, with nothing repeated."""
    found = []
    for position, axis in enumerate(root.compute.axes):
        dimension: dict[MaterializedStage, int] = {root: position}
        if all(_slice_dimension(materialized, dimension) for materialized in reversed(cone)):
            found.append(axis)
    return found


def _slice_dimension(materialized: MaterializedStage, dimension: dict[MaterializedStage, int]) -> bool:
    """Find the dimension of a stage that its readers index with their sliced axis; False if there is none."""
    places: set[int | None] = set()
    for reader in materialized.readers:
        sliced: Var = reader.compute.axes[dimension[reader]].var
        for read in reader.reads:
            if read.tensor.op is materialized.operation:
                places.add(_only_place(read.indices, sliced))
    place = places.pop() if len(places) == 1 else None
    if place is None:
        return False
    dimension[materialized] = place
    return True


def _only_place(indices: tuple[Any, ...], sliced: Var) -> int | None:
    """Where the variable itself is an index."""
    return next((place for place, index in enumerate(indices) if index is sliced), None)
