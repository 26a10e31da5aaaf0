"""A schedule as the nest of loops that it asks for, before any extent is known that only lowering finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.expr_axis import IterVar
from tilewright.te.operation import PlaceholderOp
from tilewright.te.schedule.relations import Fuse, Split
from tilewright.te.schedule.stage import AttachType

if TYPE_CHECKING:
    from tilewright.te.schedule.schedule import Schedule
    from tilewright.te.schedule.stage import Stage

_KINDS = {
    IterVar.CommReduce: "reduce",
    IterVar.Unrolled: "unroll",
    IterVar.Vectorized: "vectorize",
    IterVar.Parallelized: "parallel",
    IterVar.Tensorized: "tensorize",
}


def loops_text(schedule: Schedule) -> str:
    """Every stage with its loops, and the stages that are computed inside of them; inlined ones at the end."""
    lines: list[str] = []
    stages = [stage for stage in schedule.stages if not isinstance(stage.op, PlaceholderOp)]
    for stage in stages:
        if _place(stage) is None and not _is_inlined(stage):
            lines += _stage_lines(stage, stages, 0)
    inlined = [stage.label for stage in stages if _is_inlined(stage)]
    if inlined:
        lines.append(f"inlined: {', '.join(inlined)}")
    return "\n".join(lines)


def _is_inlined(stage: Stage) -> bool:
    return stage.attach_type in (AttachType.INLINE, AttachType.INLINED_ALREADY)


def _place(stage: Stage) -> tuple[Stage, IterVar] | None:
    """The stage and the axis that a stage is computed at; None for the root."""
    spec = stage.attach_spec()
    if spec.is_placed and spec.attach_stage is not None and spec.attach_ivar is not None:
        return spec.attach_stage, spec.attach_ivar
    return None


def _stage_lines(stage: Stage, stages: list[Stage], depth: int) -> list[str]:
    scope = f" in {stage.scope}" if stage.scope else ""
    lines = [f"{'  ' * depth}{stage.label}{scope}:"]
    for axis in stage.leaf_iter_vars:
        depth += 1
        lines.append(f"{'  ' * depth}for {axis.var.name}{_about(stage, axis)}")
        for other in stages:
            place = _place(other)
            if other is not stage and place is not None and place[0] is stage and place[1] is axis:
                lines += _stage_lines(other, stages, depth + 1)
    if not stage.leaf_iter_vars:
        lines.append(f"{'  ' * (depth + 1)}once")
    return lines


def _about(stage: Stage, axis: IterVar) -> str:
    """What is known of a loop: its extent, what it was made of, and how it runs."""
    attributes = stage.attributes(axis)
    words = []
    kind = _KINDS.get(attributes.iter_type)
    if kind:
        words.append(kind)
    if attributes.bind_thread is not None:
        words.append(f"bound to {attributes.bind_thread.thread_tag or attributes.bind_thread.var.name}")
    words += [f"pragma {key}" for key, _ in attributes.pragmas]
    # Of a stage inside another's loops, only as much is computed as is read there: lowering finds how much.
    known = axis.dom is not None and (_place(stage) is None or axis.iter_type == IterVar.CommReduce)
    extent = f" in {axis.dom.extent}" if known and axis.dom is not None else _extent(stage, axis)
    return extent + (f"  [{', '.join(words)}]" if words else "")


def _extent(stage: Stage, axis: IterVar) -> str:
    """The factor or the number of parts of a split, or the axes that were fused."""
    for relation in stage.relations:
        if isinstance(relation, Split):
            if axis is relation.inner and relation.factor is not None:
                return f" in {relation.factor}"
            if axis is relation.outer and relation.nparts is not None:
                return f" in {relation.nparts}"
        elif isinstance(relation, Fuse) and axis is relation.fused:
            return f" over {relation.outer.var.name} and {relation.inner.var.name}"
    return ""
