"""A state as text: its loops, nested as they run."""

from __future__ import annotations

from tilewright.auto_scheduler.state_nodes import (
    ANNOTATION_TEXTS,
    ComputeAtKind,
    StageKind,
    StateObject,
)


def state_text(state: StateObject, delete_trivial_loop: bool = True) -> str:
    """Every stage with its loops; stages computed inside a loop stand there. Loops of one iteration are left out
    where asked."""
    inputs = [stage.op.name for stage in state.stages if stage.op_type == StageKind.PLACEHOLDER]
    lines = [f"Placeholder: {', '.join(inputs)}"]
    inside = state.attach_map.iter_to_attached_stages
    for number, stage in enumerate(state.stages):
        if stage.op_type == StageKind.COMPUTE and stage.compute_at == ComputeAtKind.ROOT:
            lines += _stage_lines(state, number, 0, inside, delete_trivial_loop)
    return "\n".join(lines) + "\n"


def _stage_lines(
    state: StateObject,
    number: int,
    indent: int,
    inside: dict[tuple[int, int], list[int]],
    delete_trivial_loop: bool,
) -> list[str]:
    stage = state.stages[number]
    name, lines = stage.op.name, []
    if stage.attrs.auto_unroll_max_step:
        lines.append(f"{' ' * indent}{name} auto_unroll: {stage.attrs.auto_unroll_max_step}")
    if stage.attrs.storage_offset:
        lines.append(f"{' ' * indent}{name} storage_offset: {stage.attrs.storage_offset}")
    for position, iterator in enumerate(stage.iters):
        if not (delete_trivial_loop and iterator.extent == 1):
            where = "None" if iterator.range is None else f"{iterator.range.min},{iterator.range.extent}"
            lines.append(f"{' ' * indent}{ANNOTATION_TEXTS[iterator.annotation]} {iterator.name} ({where})")
            indent += 2
        for held in inside.get((number, position), ()):
            lines += _stage_lines(state, held, indent, inside, delete_trivial_loop)
    return [*lines, f"{' ' * indent}{name} = ..."]
