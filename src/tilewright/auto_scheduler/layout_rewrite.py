"""Giving inputs the layout in which a schedule's loops read them.

An operation names the inputs that may have any layout in its attribute ``layout_free_placeholders``: weights, which can
be transposed before the program runs. The rewritten input has a dimension for each loop that goes over it, in the order
of the loops, so that it is read from end to end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import prod
from typing import Any, Final

from tilewright.auto_scheduler.loop_parts import LoopParts, Part, read_axes
from tilewright.auto_scheduler.replay import Replay
from tilewright.auto_scheduler.state_nodes import IteratorAnnotation, StateObject
from tilewright.auto_scheduler.steps import AnnotationStep, FuseStep, Step
from tilewright.auto_scheduler.steps.new_stages import CacheReadStep, CacheWriteStep, RfactorStep
from tilewright.auto_scheduler.steps.place import ComputeAtStep
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Range, Var
from tilewright.ir.functor import Mutator
from tilewright.support.errors import ScheduleError
from tilewright.support.recursion import recursion_room
from tilewright.target.target import Target
from tilewright.te.operation import ComputeOp, PlaceholderOp, share_reduction
from tilewright.te.tensor import Operation, Tensor

ATTRIBUTE: Final = "layout_free_placeholders"


class LayoutRewriteOption(IntEnum):
    """What happens to inputs that may have any layout."""

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: Any, in_relay_integration: bool = False) -> LayoutRewriteOption:
        """What pays on a target: on processors, the weights of a network are transposed before it runs, and those of
        a single program inside of it."""
        found = Target(target)
        if found.kind.name == "llvm" or found.attrs.get("device") == "mali":
            return (
                LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
                if in_relay_integration
                else LayoutRewriteOption.INSERT_TRANSFORM_STAGE
            )
        return LayoutRewriteOption.NO_REWRITE


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """The layout that an input gets: its dimensions are parts of its old ones. The texts are of the form ``4k16j8k``:
    the extent and the axis of each dimension."""

    placeholder: Tensor
    parts: tuple[Part, ...]
    original_layout: str
    new_layout: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The new shape."""
        return tuple(part.extent for part in self.parts)

    def new_indices(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Where an element of the old layout is in the new one."""
        return [part.of(indices[part.dimension]) for part in self.parts]

    def old_indices(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Where an element of the new layout was in the old one."""
        found: list[PrimExpr] = [operators.const(0, "int32") for _ in self.placeholder.shape]
        for part, index in zip(self.parts, indices, strict=True):
            scaled = index if part.stride == 1 else operators.multiply(index, part.stride)
            found[part.dimension] = operators.add(found[part.dimension], scaled)
        return found


def layout_changes(operations: Sequence[Operation], state: StateObject, replay: Replay) -> list[LayoutChange]:
    """The layouts that a state's loops want for the inputs that may have any.

    An input keeps its layout if it is read more than once or through a copy, if an index is not just an axis, or if a
    split of one of these axes leaves a rest. A weight that the graph computes itself is not an input.
    """
    found: list[LayoutChange] = []
    loops: LoopParts | None = None
    for operation in operations:
        for given in operation.attrs.get(ATTRIBUTE, ()):
            placeholder = given if isinstance(given, Tensor) else given.output(0)
            readers = [stage for stage in replay.stages if placeholder in stage.op.input_tensors]
            if not isinstance(placeholder.op, PlaceholderOp) or len(readers) != 1:
                continue
            if ATTRIBUTE not in readers[0].op.attrs:
                continue
            names = read_axes(operation, placeholder)
            if names is None:
                continue
            loops = loops or LoopParts(state, replay)
            parts = loops.of_read(replay.stages.index(readers[0]), placeholder)
            if parts is not None:
                old = "".join(
                    f"{extent}{axis.var.name}" for extent, axis in zip(placeholder.shape, names, strict=True)
                )
                new = "".join(f"{part.extent}{names[part.dimension].var.name}" for part in parts)
                found.append(LayoutChange(placeholder, parts, old, new))
    return found


def rewrite_layout(
    operations: Sequence[Operation],
    tensors: Sequence[Tensor],
    state: StateObject,
    replay: Replay,
    option: LayoutRewriteOption,
) -> tuple[list[Operation], list[Tensor], tuple[Step, ...]]:
    """The operations with the layouts changed, the tensors that the program takes then, and the steps for them."""
    steps = state.transform_steps
    rewritten: list[Operation] = list(operations)
    replaced: dict[Tensor, Tensor] = {}
    for change in layout_changes(operations, state, replay):
        position = next(number for number, one in enumerate(rewritten) if one is change.placeholder.op)
        name = change.placeholder.op.name
        if option == LayoutRewriteOption.INSERT_TRANSFORM_STAGE:
            fresh: Operation = _transform(change, f"{name}_layout_transform")
            rewritten.insert(position + 1, fresh)
            steps = _with_transform_stage(steps, position + 1, len(change.parts))
        else:
            shape = [operators.as_expr(extent) for extent in change.shape]
            fresh = PlaceholderOp(name, shape, str(change.placeholder.dtype), change.placeholder.op.span)
            rewritten[position] = fresh
            replaced[change.placeholder] = fresh.output(0)
        rewritten = _reading(rewritten, change, fresh.output(0), replaced)
    return rewritten, [replaced.get(tensor, tensor) for tensor in tensors], steps


def _reading(
    operations: list[Operation], change: LayoutChange, fresh: Tensor, replaced: dict[Tensor, Tensor]
) -> list[Operation]:
    """The operations with the one that reads an input reading it in its new layout, and those after it reading what
    they gave before."""
    made: list[Operation] = []
    mapping: dict[Tensor, Tensor] = {}
    for operation in operations:
        current = operation.replace_inputs(mapping)
        if (
            change.placeholder in current.input_tensors
            and isinstance(current, ComputeOp)
            and current is not fresh.op
        ):
            rewriter = _ReadsElsewhere(change, fresh)
            with recursion_room():
                body = [rewriter.visit(value) for value in current.body]
            left = [one for one in current.attrs.get(ATTRIBUTE, ()) if one is not change.placeholder]
            attrs = {**current.attrs, ATTRIBUTE: left}
            current = ComputeOp(
                current.name, current.tag, attrs, current.axes, share_reduction(body), current.span
            )
        if current is not operation:
            for old, new in zip(operation.outputs, current.outputs, strict=True):
                mapping[old] = new
                replaced.update({given: new for given, stand_in in replaced.items() if stand_in is old})
                replaced[old] = new
        made.append(current)
    return made


class _ReadsElsewhere(Mutator):
    """Makes reads of an input reads of its new layout."""

    def __init__(self, change: LayoutChange, fresh: Tensor) -> None:
        super().__init__()
        self.change = change
        self.fresh = fresh

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        if node.producer is not self.change.placeholder:
            return made
        return ProducerLoad(self.fresh, self.change.new_indices(made.indices), made.span)


def _transform(change: LayoutChange, name: str) -> ComputeOp:
    """The operation that changes the layout inside the program."""
    axes = [
        IterVar(Range(0, extent), Var(f"ax{number}"), IterVar.DataPar)
        for number, extent in enumerate(change.shape)
    ]
    indices = change.old_indices([axis.var for axis in axes])
    return ComputeOp(name, "", None, axes, [ProducerLoad(change.placeholder, indices)])


def _with_transform_stage(steps: Sequence[Step], position: int, dimensions: int) -> tuple[Step, ...]:
    """Steps for a graph with one more stage, and its own: its outer loops run in parallel."""

    def moved(stage_id: int) -> int:
        return stage_id + 1 if stage_id >= position else stage_id

    made: list[Step] = []
    for step in steps:
        changes: dict[str, Any] = {"stage_id": moved(step.stage_id)}
        if isinstance(step, ComputeAtStep):
            changes["target_stage_id"] = moved(step.target_stage_id)
        elif isinstance(step, CacheReadStep):
            changes["reader_stage_ids"] = tuple(moved(number) for number in step.reader_stage_ids)
        made.append(replace(step, **changes))
        # What a step adds in front of the stage moves it, and the numbers that later steps mean.
        if isinstance(step, CacheReadStep):
            position += step.stage_id + 1 <= position
        elif isinstance(step, (CacheWriteStep, RfactorStep)):
            position += step.stage_id < position
    fused = tuple(range(min(3, max(dimensions - 1, 1))))
    return (*made, FuseStep(position, fused), AnnotationStep(position, 0, IteratorAnnotation.PARALLEL))


_ITEM: Final = re.compile(r"(\d+)([^\d\s]+)")


def parse_layout(layout: str) -> list[tuple[int, str]]:
    """The extents and axes of a layout such as ``4k16j8k``."""
    items = _ITEM.findall(layout)
    if not items or "".join(f"{extent}{axis}" for extent, axis in items) != layout.replace(" ", ""):
        raise ScheduleError(f"{layout!r} is not a layout such as 4k16j8k")
    return [(int(extent), axis) for extent, axis in items]


def get_shape_from_rewritten_layout(rewritten_layout: str, axis_names: Sequence[str]) -> list[int]:
    """The shape that an input had before its layout was rewritten, for its axes in their old order."""
    items = parse_layout(rewritten_layout)
    shape: list[int] = []
    for name in axis_names:
        extents = [extent for extent, axis in items if axis == name]
        if not extents:
            raise ScheduleError(f"the layout {rewritten_layout} has no axis {name}")
        shape.append(prod(extents))
    return shape
