"""Giving inputs the layout in which a schedule's loops read them.

An operation names the inputs that may have any layout in its attribute ``layout_free_placeholders``: weights, which can
be transposed before the program runs. The rewritten input has a dimension for each loop that goes over it, in the order
of the loops, so that it is read from end to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from tilewright.auto_scheduler.loop_parts import AxisPart, LoopParts, read_parts
from tilewright.auto_scheduler.replay import Replay
from tilewright.auto_scheduler.state_nodes import IteratorAnnotation, StateObject
from tilewright.auto_scheduler.steps import AnnotationStep, FuseStep, Step
from tilewright.auto_scheduler.steps.new_stages import CacheReadStep, CacheWriteStep, RfactorStep
from tilewright.auto_scheduler.steps.place import ComputeAtStep
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, ProducerLoad, Range, Var
from tilewright.target.target import Target
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.rewritten_layout import LAYOUT_FREE, Part, RewrittenLayout, read_rewritten
from tilewright.te.tensor import Operation, Tensor


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
    layout: RewrittenLayout
    original_layout: str
    new_layout: str

    @property
    def parts(self) -> tuple[Part, ...]:
        """The new dimensions, as parts of the old ones."""
        return self.layout.parts

    @property
    def shape(self) -> tuple[int, ...]:
        """The new shape."""
        return self.layout.shape


def layout_changes(operations: Sequence[Operation], state: StateObject, replay: Replay) -> list[LayoutChange]:
    """The layouts that a state's loops want for the inputs that may have any.

    An input keeps its layout if it is read more than once or through a copy, if an index is more than an axis or a part
    of one, if a split of one of these axes leaves a rest, or if inner parts of an axis come before its outer ones. A
    weight that the graph computes itself is not an input.
    """
    found: list[LayoutChange] = []
    loops: LoopParts | None = None
    for operation in operations:
        for given in operation.attrs.get(LAYOUT_FREE, ()):
            placeholder = given if isinstance(given, Tensor) else given.output(0)
            readers = [stage for stage in replay.stages if placeholder in stage.op.input_tensors]
            if not isinstance(placeholder.op, PlaceholderOp) or len(readers) != 1:
                continue
            if LAYOUT_FREE not in readers[0].op.attrs:
                continue
            read = read_parts(operation, placeholder)
            if read is None:
                continue
            loops = loops or LoopParts(state, replay)
            parts = loops.of_read(replay.stages.index(readers[0]), placeholder)
            layout = None if parts is None else RewrittenLayout(parts)
            if layout is not None and layout.is_nested:
                axes = _names(read)
                old = "".join(f"{extent}{axis}" for extent, axis in zip(placeholder.shape, axes, strict=True))
                found.append(LayoutChange(placeholder, layout, old, layout.text(axes)))
    return found


def _names(read: Sequence[AxisPart]) -> list[str]:
    """A name for each dimension: that of its axis, with letters for digits, which stand for extents in a layout."""
    names: list[str] = []
    for one in read:
        name = one.axis.var.name.translate(_LETTERS)
        while name in names:
            name += "_"
        names.append(name)
    return names


_LETTERS: Final = str.maketrans("0123456789", "abcdefghij")


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
        if current is not fresh.op:
            current = read_rewritten(current, change.placeholder, fresh, change.layout)
        if current is not operation:
            for old, new in zip(operation.outputs, current.outputs, strict=True):
                mapping[old] = new
                replaced.update({given: new for given, stand_in in replaced.items() if stand_in is old})
                replaced[old] = new
        made.append(current)
    return made


def _transform(change: LayoutChange, name: str) -> ComputeOp:
    """The operation that changes the layout inside the program."""
    axes = [
        IterVar(Range(0, extent), Var(f"ax{number}"), IterVar.DataPar)
        for number, extent in enumerate(change.shape)
    ]
    indices = change.layout.old_indices([axis.var for axis in axes])
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
