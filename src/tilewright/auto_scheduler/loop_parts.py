"""What part of a tensor's dimensions each loop of a stage goes over.

A split divides an axis into parts with a stride and an extent; a fusion lists the parts of several. Loops around the
place where a stage is computed count as well: they go over parts of what the stage as a whole computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.auto_scheduler.replay import Replay
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.ir.expr import FloorDiv, FloorMod, IntImm, IterVar, PrimExpr, ProducerLoad, Var
from tilewright.ir.functor import post_order
from tilewright.te.operation import ComputeOp
from tilewright.te.rewritten_layout import Part
from tilewright.te.schedule import Fuse, Split, infer_bound
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation, Tensor


@dataclass(frozen=True, slots=True)
class AxisPart:
    """``(axis // stride) % extent``."""

    axis: IterVar
    stride: int
    extent: int

    @property
    def is_whole(self) -> bool:
        """True for the axis itself."""
        extent = None if self.axis.dom is None else self.axis.dom.extent
        return self.stride == 1 and isinstance(extent, IntImm) and extent.value == self.extent


def read_axes(operation: Operation, tensor: Tensor) -> list[IterVar] | None:
    """The axes that an operation reads a tensor with; None if an index is something else, or reads differ."""
    read = read_parts(operation, tensor)
    if read is None or not all(one.is_whole for one in read):
        return None
    return [one.axis for one in read]


def read_parts(operation: Operation, tensor: Tensor) -> list[AxisPart] | None:
    """The parts of axes that an operation reads a tensor with, one for each dimension: an axis, or an axis divided by a
    constant or modulo one, as for blocked weights. None if an index is something else, or reads differ."""
    if not isinstance(operation, ComputeOp):
        return None
    roots = {axis.var: axis for axis in operation.root_iter_vars}
    found: list[AxisPart] | None = None
    for value in operation.body:
        for part in post_order(value):
            if isinstance(part, ProducerLoad) and part.producer is tensor:
                read = [_part_of(index, roots) for index in part.indices]
                known = [one for one in read if one is not None]
                if len(known) != len(read) or (found is not None and found != known):
                    return None
                found = known
    return found


def _part_of(index: PrimExpr, roots: Mapping[Var, IterVar]) -> AxisPart | None:
    """The part of an axis that an index is; None if it is something else."""
    if isinstance(index, Var):
        axis = roots.get(index)
        extent = None if axis is None or axis.dom is None else axis.dom.extent
        if axis is None or not isinstance(extent, IntImm):
            return None
        return AxisPart(axis, 1, extent.value)
    if not isinstance(index, (FloorDiv, FloorMod)) or not isinstance(index.b, IntImm):
        return None
    whole, factor = _part_of(index.a, roots), index.b.value
    if whole is None or factor <= 0:
        return None
    if factor >= whole.extent and isinstance(index, FloorMod):
        return whole
    if whole.extent % factor:
        return None
    if isinstance(index, FloorMod):
        return AxisPart(whole.axis, whole.stride, factor)
    return AxisPart(whole.axis, whole.stride * factor, whole.extent // factor)


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
        read = read_parts(self.stages[stage_id].op, tensor)
        loops = self.of_stage(stage_id, len(self.stages[stage_id].leaf_iter_vars))
        if read is None or loops is None:
            return None
        parts: list[Part] = []
        for loop in loops:
            if any(one.axis is loop.axis for one in read):
                among = _among(loop, read)
                if among is None:
                    return None
                parts += among
        # A dimension of one element, which no loop goes over, stays one.
        known = {part.dimension for part in parts}
        parts[:0] = [Part(dimension, 1, 1) for dimension in range(len(read)) if dimension not in known]
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

    def of_stage(self, stage_id: int, count: int) -> list[AxisPart] | None:
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

    def _around(self, stage_id: int) -> list[AxisPart] | None:
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
        return [AxisPart(found[part.axis], part.stride, part.extent) for part in outer if part.axis in found]

    def _own(self, stage: Stage) -> dict[IterVar, list[AxisPart]] | None:
        """The parts of every axis of a stage."""
        parts: dict[IterVar, list[AxisPart] | None] = {}
        for root in stage.op.root_iter_vars:
            extent = self._extent(root)
            if extent is None:
                return None
            parts[root] = [AxisPart(root, 1, extent)]
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


def _among(loop: AxisPart, read: Sequence[AxisPart]) -> list[Part] | None:
    """The parts of a tensor's dimensions, which are themselves parts of axes, that a loop goes over, outermost first;
    None where the loop crosses the boundary of two dimensions in the middle of a step."""
    mine = sorted(
        (place for place, one in enumerate(read) if one.axis is loop.axis),
        key=lambda place: -read[place].stride,
    )
    if loop.extent == 1:
        inside = [place for place in mine if read[place].stride <= loop.stride]
        return [Part(inside[0], loop.stride // read[inside[0]].stride, 1)] if inside else []
    found: list[Part] = []
    for place in mine:
        one = read[place]
        low = max(loop.stride, one.stride)
        high = min(loop.stride * loop.extent, one.stride * one.extent)
        if high > low:
            if low % one.stride or high % low:
                return None
            found.append(Part(place, low // one.stride, high // low))
    return found if prod(part.extent for part in found) == loop.extent else None


def _divided(
    whole: list[AxisPart] | None, factor: int | None
) -> tuple[list[AxisPart] | None, list[AxisPart] | None]:
    """The parts of the two axes of a split; None if it leaves a rest or splits a fused axis."""
    if whole is None or factor is None or len(whole) != 1 or whole[0].extent % factor:
        return None, None
    part = whole[0]
    outer = AxisPart(part.axis, part.stride * factor, part.extent // factor)
    return [outer], [AxisPart(part.axis, part.stride, factor)]


def _value(tensor: Tensor, dimension: int) -> int:
    extent = tensor.shape[dimension]
    return extent.value if isinstance(extent, IntImm) else -1
