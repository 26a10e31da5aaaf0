"""Questions about the stages of a state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tilewright.auto_scheduler.access_analysis import AccessAnalyzer
from tilewright.auto_scheduler.state_nodes import (
    ComputeAtKind,
    Iterator,
    IteratorAnnotation,
    IteratorKind,
    Stage,
    StageKind,
    StateObject,
)
from tilewright.auto_scheduler.steps import CacheReadStep, CacheWriteStep, RfactorStep, SplitStep, Step
from tilewright.ir.expr import StringImm
from tilewright.te.tensor import Operation

NO_SPLIT_AT_INNER = "auto_scheduler_no_split_at_inner"
ALWAYS_UNROLL_INNER = "auto_scheduler_always_unroll_inner"
CONST_TENSOR_INDICES = "auto_scheduler_simplify_const_tensor_indices"

THREADS = (IteratorAnnotation.THREAD_X, IteratorAnnotation.THREAD_Y, IteratorAnnotation.THREAD_Z)


def analyzer(task: Any, state: StateObject) -> AccessAnalyzer:
    """How the operations of a state read one another."""
    dag = state.current_compute_dag or task.compute_dag
    found: AccessAnalyzer = dag.access_analyzer
    return found


def is_gpu_task(task: Any) -> bool:
    """True for a task whose programs run in threads and blocks."""
    return "gpu" in task.target.keys or task.target.kind.name in ("cuda", "nvptx")


def _numbers(state: StateObject, operations: Iterable[Operation]) -> list[int]:
    wanted = set(operations)
    return [number for number, stage in enumerate(state.stages) if stage.op in wanted]


def consumers(task: Any, state: StateObject, stage_id: int) -> list[int]:
    """The stages that read a stage, through inlined ones."""
    return _numbers(state, analyzer(task, state).get_consumers(state, state.stages[stage_id].op))


def producers(task: Any, state: StateObject, stage_id: int) -> list[int]:
    """The stages that a stage reads, through inlined ones."""
    return _numbers(state, analyzer(task, state).get_producers(state, state.stages[stage_id].op))


def direct_producers(task: Any, state: StateObject, stage_id: int) -> list[int]:
    """The stages whose results a stage's expression reads."""
    return _numbers(state, analyzer(task, state).get_direct_producers(state.stages[stage_id].op))


def single_consumer(task: Any, state: StateObject, stage_id: int) -> int | None:
    """The only stage that reads a stage, or that all its readers are computed in."""
    found = consumers(task, state, stage_id)
    if len(found) == 1:
        return found[0]
    places = {state.attach_map.stage_to_attach_iter.get(one, (-1, 0))[0] for one in found}
    if len(places) == 1 and -1 not in places:
        return places.pop()
    # All but one are computed in the one that is left.
    roots = {one for one in found if state.stages[one].compute_at != ComputeAtKind.ITER}
    rest = {state.attach_map.stage_to_attach_iter[one][0] for one in found if one not in roots}
    return next(iter(roots)) if len(roots) == 1 and rest == roots else None


def needs_tiling(task: Any, state: StateObject, stage_id: int) -> bool:
    """True if a stage reads the same elements again and again."""
    return analyzer(task, state).needs_multi_level_tiling(state.stages[stage_id].op)


def is_output(task: Any, state: StateObject, stage_id: int) -> bool:
    """True if a stage's result is one of the program's."""
    return analyzer(task, state).is_output(state.stages[stage_id].op)


def elementwise_consumer(task: Any, state: StateObject, stage_id: int) -> int | None:
    """The only reader of a stage, if it reads it element by element and may be tiled with it."""
    found = consumers(task, state, stage_id)
    if len(found) != 1:
        return None
    (target,) = found
    stage, reader = state.stages[stage_id], state.stages[target]
    if not is_elementwise_match(task, state, stage_id, target):
        return None
    if has_reduction(stage) and has_reduction(reader):
        return None
    return None if reader.op.name.endswith(".shared") else target


def is_elementwise_match(task: Any, state: StateObject, stage_id: int, target: int) -> bool:
    """True if a stage reads another one element by element."""
    return bool(analyzer(task, state).element_wise_match(state.stages[stage_id].op, state.stages[target].op))


def has_reduction(stage: Stage) -> bool:
    """True if a stage has a loop that is not over its results."""
    return any(one.iter_kind != IteratorKind.SPATIAL for one in stage.iters)


def is_computed(stage: Stage) -> bool:
    """True for a stage with loops of its own."""
    return stage.op_type != StageKind.PLACEHOLDER and stage.compute_at != ComputeAtKind.INLINED


def is_tiled(stage: Stage) -> bool:
    """True if a stage has other loops than one for each axis."""
    return len(stage.iters) != len(stage.op.root_iter_vars)


def extent(iterator: Iterator) -> int:
    """The length of a loop; one where it is not known."""
    return iterator.extent or 1


def space_and_reduction_lengths(stage: Stage) -> tuple[int, int]:
    """The products of the lengths of the loops over results, and of those over what is reduced."""
    space = [extent(one) for one in stage.iters if one.iter_kind == IteratorKind.SPATIAL]
    reduced = [extent(one) for one in stage.iters if one.iter_kind == IteratorKind.REDUCTION]
    return math.prod(space), math.prod(reduced)


def names_in_attribute(stage: Stage, attribute: str) -> frozenset[str]:
    """The names of the axes that an attribute of the operation lists."""
    given = stage.op.attrs.get(attribute, ())
    return frozenset({str(given)} if isinstance(given, (str, StringImm)) else map(str, given))


def _has_step(state: StateObject, stage_id: int, kind: type[Step]) -> bool:
    """True if a step of this kind was taken on a stage; stages were numbered otherwise before later steps."""
    for step in reversed(state.transform_steps):
        if isinstance(step, kind) and step.stage_id == stage_id:
            return True
        if isinstance(step, (CacheWriteStep, CacheReadStep, RfactorStep)) and stage_id > step.stage_id:
            stage_id -= 1
    return False


def has_cache_write(state: StateObject, stage_id: int) -> bool:
    """True for the stage that computes in other memory what another one copies."""
    return _has_step(state, stage_id, CacheWriteStep)


def has_cache_read(state: StateObject, stage_id: int) -> bool:
    """True for a stage whose result is copied for its readers."""
    return _has_step(state, stage_id, CacheReadStep)


def has_rfactor(state: StateObject, stage_id: int) -> bool:
    """True for the first part of a reduction in two."""
    return _has_step(state, stage_id, RfactorStep)


def has_cross_thread_reduction(state: StateObject, stage_id: int) -> bool:
    """True if several threads reduce together."""
    return any(
        one.annotation in THREADS and one.iter_kind == IteratorKind.REDUCTION
        for one in state.stages[stage_id].iters
    )


def split_steps(state: StateObject, stage_id: int) -> list[int]:
    """The numbers of the steps that split loops of a stage by lengths of their own."""
    found: list[int] = []
    for number in reversed(range(len(state.transform_steps))):
        step = state.transform_steps[number]
        if isinstance(step, SplitStep) and step.stage_id == stage_id:
            found.append(number)
        if isinstance(step, (CacheWriteStep, CacheReadStep, RfactorStep)) and stage_id > step.stage_id:
            stage_id -= 1
    return found


def original_names(name: str) -> frozenset[str]:
    """The axes that an iterator was made of: ``i.0@j.0@`` is of ``i`` and ``j``."""
    return frozenset(part.partition(".")[0] for part in name.split("@") if part)
