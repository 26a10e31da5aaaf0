"""Functions that TVM's AutoScheduler has in its C++ part, and that programs call through ``_ffi_api``."""

from __future__ import annotations

import json
from typing import Any

from tilewright.auto_scheduler.measure_record import deserialize_measure_input, serialize_measure_input
from tilewright.auto_scheduler.measure_types import MeasureInput
from tilewright.auto_scheduler.search_task import SearchTask
from tilewright.auto_scheduler.sketch import queries
from tilewright.ir.container import Map

__all__ = [
    "DeserializeMeasureInput",
    "DeserializeSearchTask",
    "SearchPolicyUtilsGetConsumers",
    "SearchPolicyUtilsHasCacheReadStage",
    "SearchPolicyUtilsHasCacheWriteStage",
    "SearchPolicyUtilsHasCrossThreadReduction",
    "SearchPolicyUtilsHasRfactorStage",
    "SearchPolicyUtilsIsElementwiseMatch",
    "SearchPolicyUtilsIsTiled",
    "SerializeMeasureInput",
    "SerializeSearchTask",
]


def _object(state: Any) -> Any:
    return getattr(state, "state_object", state)


def SearchPolicyUtilsIsTiled(stage: Any) -> bool:
    """True if a stage has other loops than one for each axis."""
    return queries.is_tiled(stage)


def SearchPolicyUtilsGetConsumers(task: SearchTask, state: Any, stage_id: int) -> Map[int, int]:
    """The stages that read a stage, through inlined ones, as keys and as values."""
    return Map({number: number for number in queries.consumers(task, _object(state), stage_id)})


def SearchPolicyUtilsIsElementwiseMatch(
    task: SearchTask, state: Any, stage_id: int, target_stage_id: int
) -> bool:
    """True if a stage reads another one element by element."""
    return queries.is_elementwise_match(task, _object(state), stage_id, target_stage_id)


def SearchPolicyUtilsHasCacheReadStage(state: Any, stage_id: int) -> bool:
    """True for a stage whose result is copied for its readers."""
    return queries.has_cache_read(_object(state), stage_id)


def SearchPolicyUtilsHasCacheWriteStage(state: Any, stage_id: int) -> bool:
    """True for the stage that computes in other memory what another one copies."""
    return queries.has_cache_write(_object(state), stage_id)


def SearchPolicyUtilsHasRfactorStage(state: Any, stage_id: int) -> bool:
    """True for the first part of a reduction in two."""
    return queries.has_rfactor(_object(state), stage_id)


def SearchPolicyUtilsHasCrossThreadReduction(state: Any, stage_id: int) -> bool:
    """True if several threads reduce together."""
    return queries.has_cross_thread_reduction(_object(state), stage_id)


def SerializeSearchTask(task: SearchTask) -> str:
    """A task as JSON text."""
    return json.dumps(task.to_record())


def DeserializeSearchTask(text: str) -> SearchTask:
    """The task of a JSON text."""
    return SearchTask.from_record(json.loads(text))


def SerializeMeasureInput(inp: MeasureInput) -> str:
    """What was measured, as JSON text."""
    return serialize_measure_input(inp)


def DeserializeMeasureInput(text: str) -> MeasureInput:
    """What ``SerializeMeasureInput`` wrote."""
    return deserialize_measure_input(text)
