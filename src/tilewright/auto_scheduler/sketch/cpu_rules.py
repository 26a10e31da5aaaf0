"""The rules for processors; most of them serve GPUs as well."""

from __future__ import annotations

from typing import Any

from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.sketch.draft import Draft
from tilewright.auto_scheduler.sketch.rule import Condition, Derived, SketchRule
from tilewright.auto_scheduler.sketch.tiling import (
    CPU_STRUCTURE,
    GPU_STRUCTURE,
    follow_tiling,
    fuse_reductions,
    tile,
)
from tilewright.auto_scheduler.state_nodes import Iterator, IteratorAnnotation, StageKind, StateObject
from tilewright.te.operation import ComputeOp


def _structure(task: Any) -> str:
    return GPU_STRUCTURE if queries.is_gpu_task(task) else CPU_STRUCTURE


class SkipStage(SketchRule):
    """Leave a stage as it is."""

    name = "SkipStage"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        return Condition.APPLY

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        return [(state, stage_id - 1)]


class AlwaysInline(SketchRule):
    """Inline what is cheap; on a GPU, all that can be."""

    name = "AlwaysInline"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        stage = state.stages[stage_id]
        if (
            stage.op_type == StageKind.PLACEHOLDER
            or queries.is_output(task, state, stage_id)
            or queries.has_reduction(stage)
            or state.attach_map.attached_to(stage_id)
        ):
            return Condition.PASS
        analyzer = queries.analyzer(task, state)
        if queries.is_gpu_task(task) or analyzer.is_strictly_inlineable(stage.op):
            return Condition.APPLY_AND_SKIP_REST
        return Condition.PASS

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        draft = Draft(state, task.compute_dag)
        draft.compute_inline(stage_id)
        return [(draft.state, stage_id - 1)]


class MultiLevelTiling(SketchRule):
    """Tile a stage that reads the same elements again and again."""

    name = "MultiLevelTiling"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        needed = queries.needs_tiling(task, state, stage_id)
        return Condition.APPLY_AND_SKIP_REST if needed else Condition.PASS

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        draft = Draft(state, task.compute_dag)
        tile(draft, stage_id, _structure(task))
        return [(draft.state, stage_id - 1)]


class MultiLevelTilingWithFusion(SketchRule):
    """Tile a stage, and compute it inside the tiles of the stage that reads it element by element."""

    name = "MultiLevelTilingWithFusion"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        if (
            not queries.needs_tiling(task, state, stage_id)
            or queries.elementwise_consumer(task, state, stage_id) is None
        ):
            return Condition.PASS
        if queries.has_cache_write(state, stage_id) or queries.is_gpu_task(task):
            return Condition.APPLY_AND_SKIP_REST
        return Condition.APPLY

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        target = queries.elementwise_consumer(task, state, stage_id)
        assert target is not None
        tiled = Draft(state, task.compute_dag)
        structure = _structure(task)
        followed = tile(tiled, stage_id, structure)
        derived: Derived = []
        for level in (3,) if queries.is_gpu_task(task) else (1, 2):
            if structure[level - 1] != "S":
                continue
            draft = tiled.copy()
            place = follow_tiling(draft, target, followed, level)
            draft.compute_at(stage_id, target, place)
            derived.append((draft.state, stage_id - 1))
        return derived


class AddCacheWrite(SketchRule):
    """Compute a tile in memory of its own before it is written."""

    name = "AddCacheWrite"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        if (
            not queries.needs_tiling(task, state, stage_id)
            or queries.has_cache_write(state, stage_id)
            or queries.elementwise_consumer(task, state, stage_id) is not None
        ):
            return Condition.PASS
        return Condition.APPLY_AND_SKIP_REST if queries.is_gpu_task(task) else Condition.APPLY

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        draft = Draft(state, task.compute_dag)
        draft.cache_write(stage_id, "local")
        return [(draft.state, stage_id)]


class AddRfactor(SketchRule):
    """Split a long reduction of few results in two parts: over its outer loop, which can run in parallel then, and over
    its inner one, which can be vectorized."""

    name = "AddRfactor"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        stage = state.stages[stage_id]
        if not isinstance(stage.op, ComputeOp) or queries.has_cache_write(state, stage_id):
            return Condition.PASS
        space, reduced = queries.space_and_reduction_lengths(stage)
        cores = task.hardware_params.num_cores
        if queries.needs_tiling(task, state, stage_id):
            needed = space <= reduced and space <= cores * 16
        else:
            needed = reduced > 1 and reduced > cores
        return Condition.APPLY if needed else Condition.PASS

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        base = Draft(state, task.compute_dag)
        fused = fuse_reductions(base, stage_id)
        # The length is opened when the sketch is complete: stages that are added later need it.
        base.split(stage_id, fused, [1])
        derived: Derived = []
        for part in (0, 1):
            draft = base.copy()
            made = draft.rfactor(stage_id, fused + part, fused)
            if part == 1:
                order = list(draft.iters(made))
                order.append(order.pop(fused))
                draft.reorder(made, order)
            derived.append((draft.state, made - 1))
        return derived


class SimplifyComputeWithConstTensor(SketchRule):
    """Unroll the loops over the indices of constant tensors, so that their values are in the code, and tile the
    others."""

    name = "SimplifyComputeWithConstTensor"

    def condition(self, task: Any, state: StateObject, stage_id: int) -> Condition:
        marked = queries.CONST_TENSOR_INDICES in state.stages[stage_id].op.attrs
        return Condition.APPLY_AND_SKIP_REST if marked else Condition.PASS

    def apply(self, task: Any, state: StateObject, stage_id: int) -> Derived:
        draft = Draft(state, task.compute_dag)
        constant = queries.names_in_attribute(state.stages[stage_id], queries.CONST_TENSOR_INDICES)
        levels: list[list[Iterator]] = [[], []]
        unrolled: list[Iterator] = []
        for iterator in state.stages[stage_id].iters:
            place = draft.stages[stage_id].index_of(iterator)
            if iterator.name in constant:
                draft.annotate(stage_id, place, IteratorAnnotation.UNROLL)
                unrolled.append(draft.iters(stage_id)[place])
                continue
            draft.split(stage_id, place, [None])
            for level, part in enumerate(draft.iters(stage_id)[place : place + 2]):
                levels[level].append(part)
        draft.reorder(stage_id, [*levels[0], *levels[1], *unrolled])
        return [(draft.state, stage_id - 1)]
