"""The graph of the stages that are materialized after inlining, and which of them can be computed inside another.

A *root* has a loop nest of its own. Its *cone* is the stages that only the root reads, directly or through other stages
of the cone: those may be computed inside the root's loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.access import Read, assumed, extent_of, reads_of
from tilewright.schedule.cpu.cost import cost_of
from tilewright.schedule.cpu.machine import STORE_WORK
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.tensor import Operation


@dataclass(eq=False)
class MaterializedStage:
    """A stage that is not inlined, with its operation after inlining."""

    stage: Stage
    operation: Operation
    reads: list[Read] = field(default_factory=list)
    readers: list[MaterializedStage] = field(default_factory=list)

    @property
    def compute(self) -> ComputeOp:
        """The operation of a stage that is known to be a computation."""
        assert isinstance(self.operation, ComputeOp)
        return self.operation

    @property
    def is_reduction(self) -> bool:
        """True for a computation with reduction axes."""
        return isinstance(self.operation, ComputeOp) and bool(self.operation.reduce_axis)

    @property
    def is_movable(self) -> bool:
        """True for a computation that has not been attached to another stage."""
        return (
            isinstance(self.operation, ComputeOp)
            and not self.stage.is_output
            and self.stage.group is None
            and self.stage.attach_type == AttachType.GROUP_ROOT
        )

    @property
    def is_schedulable(self) -> bool:
        """True for a computation with untransformed loops, outside any scan."""
        return (
            isinstance(self.operation, ComputeOp)
            and self.stage.group is None
            and self.stage.attach_type == AttachType.GROUP_ROOT
            and not self.stage.relations
        )

    def elements(self) -> int:
        """The number of elements."""
        return prod(assumed(extent) for extent in self.operation.output(0).shape)

    def work(self) -> int:
        """Operations for all elements, including their stores."""
        steps = prod(extent_of(axis) for axis in self.compute.reduce_axis)
        return self.elements() * (STORE_WORK + steps * max(cost_of(self.compute).operations, 1))


def materialized_stages(schedule: Schedule) -> list[MaterializedStage]:
    """The stages that are not inlined, producers first, each with its readers."""
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
    """The cone of each root, producers first. Stages that several roots read become roots themselves."""
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
    """True if the reader loads the producer only at the index that it computes."""
    axes = reader.compute.axes
    for read in reader.reads:
        if read.tensor.op is producer.operation:
            if len(read.indices) != len(axes):
                return False
            if any(index is not axis.var for index, axis in zip(read.indices, axes, strict=True)):
                return False
    return True


def row_axes(root: MaterializedStage, cone: list[MaterializedStage]) -> list[IterVar]:
    """Axes of the root along which the whole cone can be computed slice by slice without recomputation."""
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
        sliced = reader.compute.axes[dimension[reader]]
        for read in reader.reads:
            if read.tensor.op is materialized.operation:
                places.add(read.place_of(sliced))
    place = places.pop() if len(places) == 1 else None
    if place is None:
        return False
    dimension[materialized] = place
    return True
