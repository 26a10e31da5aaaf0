"""What part of a tensor's dimensions each loop of a stage goes over.

A split divides an axis into parts with a stride and an extent; a fusion lists the parts of several. Loops around the
place where a stage is computed count as well: they go over parts of what the stage as a whole computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.auto_scheduler.replay import Replay
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, ProducerLoad
from tilewright.ir.functor import post_order
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule import Fuse, Split, infer_bound
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation, Tensor


@dataclass(frozen=True, slots=True)
class Part:
    """``(index // stride) % extent`` of a dimension. ``last``: nothing is left above it."""

    dimension: int
    stride: int
    extent: int
    last: bool = False

    def of(self, index: PrimExpr) -> PrimExpr:
        """The part of an index."""
        if self.extent == 1:
            return operators.const(0, index.dtype)
        found = index if self.stride == 1 else operators.floordiv(index, self.stride)
        return found if self.last else operators.floormod(found, self.extent)


@dataclass(frozen=True, slots=True)
class _AxisPart:
    axis: IterVar
    stride: int
    extent: int


def read_axes(operation: Operation, tensor: Tensor) -> list[IterVar] | None:
    """The axes that an operation reads a tensor with; None if an index is something else, or reads differ."""
    if not isinstance(operation, ComputeOp):
        return None
    roots = {axis.var: axis for axis in operation.root_iter_vars}
    found: list[IterVar] | None = None
    for value in operation.body:
        for part in post_order(value):
            if isinstance(part, ProducerLoad) and part.producer is tensor:
                axes = [roots.get(index) for index in part.indices]  # type: ignore[call-overload]
                known = [axis for axis in axes if axis is not None]
                if len(known) != len(axes) or (found is not None and not _same(found, known)):
                    return None
                found = known
    return found


def _same(one: list[IterVar], other: list[IterVar]) -> bool:
    return len(one) == len(other) and all(mine is others for mine, others in zip(one, other, strict=True))


class LoopParts:
    """The parts for the stages of one schedule."""

    def __init__(self, state: StateObject, replay: Replay) -> None:
        self.places = state.attach_map.stage_to_attach_iter
        self.stages = replay.stages
        normal = replay.schedule.normalize()
        self.ranges = infer_bound(normal)
        inlined = dict(zip(replay.schedule.stages, normal.stages, strict=True))
        self.normal = [inlined[stage] for stage in self.stages]

    def of_read(self, stage_id: int, tensor: Tensor) -> tuple[Part, ...] | None:
        """The parts of a tensor's dimensions in the order in which a stage's loops go over them; None if they do not
        divide it evenly."""
        axes = read_axes(self.stages[stage_id].op, tensor)
        loops = self.of_stage(stage_id, len(self.stages[stage_id].leaf_iter_vars))
        dimensions = {axis: number for number, axis in enumerate(axes or ())}
        if axes is None or loops is None or len(dimensions) != len(axes):
            return None
        parts = [
            Part(dimensions[one.axis], one.stride, one.extent) for one in loops if one.axis in dimensions
        ]
        for dimension, extent in enumerate(tensor.shape):
            total = 1
            mine = sorted(
                (part for part in parts if part.dimension == dimension),
                key=lambda part: (part.stride, part.extent),
            )
            for part in mine:
                if part.stride != total:
                    return None
                total *= part.extent
            if not isinstance(extent, IntImm) or total != extent.value:
                return None
        return tuple(
            Part(
                one.dimension,
                one.stride,
                one.extent,
                one.stride * one.extent == _value(tensor, one.dimension),
            )
            for one in parts
        )

    def of_stage(self, stage_id: int, count: int) -> list[_AxisPart] | None:
        """The parts that the loops around a stage and its first ``count`` own ones go over; None where a loop goes
        over no such part."""
        around = self._around(stage_id)
        own = self._own(self.stages[stage_id])
        if around is None or own is None:
            return None
        for leaf in self.stages[stage_id].leaf_iter_vars[:count]:
            parts = own.get(leaf)
            if parts is None:
                return None
            around = around + parts
        return around

    def _around(self, stage_id: int) -> list[_AxisPart] | None:
        """What the loops around a stage go over, as parts of its own axes."""
        place = self.places.get(stage_id)
        if place is None:
            return []
        parent, position = place
        outer = self.of_stage(parent, position + 1)
        mine = self.normal[stage_id].op
        axes = read_axes(self.normal[parent].op, mine.output(0))
        if outer is None or axes is None:
            return None
        found = dict(zip(axes, mine.axis, strict=True))
        return [_AxisPart(found[part.axis], part.stride, part.extent) for part in outer if part.axis in found]

    def _own(self, stage: Stage) -> dict[IterVar, list[_AxisPart]] | None:
        """The parts of every axis of a stage."""
        parts: dict[IterVar, list[_AxisPart] | None] = {}
        for root in stage.op.root_iter_vars:
            extent = self._extent(root)
            if extent is None:
                return None
            parts[root] = [_AxisPart(root, 1, extent)]
        for relation in stage.relations:
            if isinstance(relation, Split):
                outer, inner = _divided(parts[relation.parent], self._extent(relation.inner))
                parts[relation.outer], parts[relation.inner] = outer, inner
            elif isinstance(relation, Fuse):
                first, second = parts[relation.outer], parts[relation.inner]
                parts[relation.fused] = None if first is None or second is None else first + second
            else:
                return None
        return {axis: found for axis, found in parts.items() if found is not None}

    def _extent(self, axis: IterVar) -> int | None:
        found = self.ranges.get(axis)
        return found.extent.value if found is not None and isinstance(found.extent, IntImm) else None


def _divided(
    whole: list[_AxisPart] | None, factor: int | None
) -> tuple[list[_AxisPart] | None, list[_AxisPart] | None]:
    """The parts of the two axes of a split; None if it leaves a rest or splits a fused axis."""
    if whole is None or factor is None or len(whole) != 1 or whole[0].extent % factor:
        return None, None
    part = whole[0]
    outer = _AxisPart(part.axis, part.stride * factor, part.extent // factor)
    return [outer], [_AxisPart(part.axis, part.stride, factor)]


def _value(tensor: Tensor, dimension: int) -> int:
    extent = tensor.shape[dimension]
    return extent.value if isinstance(extent, IntImm) else -1
