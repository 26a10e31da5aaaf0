"""Functions of TVM's ``auto_scheduler._ffi_api`` that programs call by name."""

from __future__ import annotations

import json
from typing import Any

from tilewright.auto_scheduler.compute_dag import ComputeDAG
from tilewright.auto_scheduler.dag_text import dag_text
from tilewright.auto_scheduler.measure_record import deserialize_measure_input, serialize_measure_input
from tilewright.auto_scheduler.measure_types import MeasureInput
from tilewright.auto_scheduler.search_task import SearchTask
from tilewright.auto_scheduler.sketch import queries
from tilewright.auto_scheduler.state_nodes import Stage, StateObject
from tilewright.support.errors import ScheduleError

__all__ = [
    "ComputeDAGPrintDAG",
    "DeserializeMeasureInput",
    "DeserializeSearchTask",
    "SearchPolicyUtilsHasCacheReadStage",
    "SearchPolicyUtilsHasCacheWriteStage",
    "SearchPolicyUtilsHasCrossThreadReduction",
    "SearchPolicyUtilsHasRfactorStage",
    "SearchPolicyUtilsIsTiled",
    "SerializeMeasureInput",
    "SerializeSearchTask",
    "StateEqual",
]


def SerializeSearchTask(task: SearchTask) -> str:
    """A task as JSON text."""
    return json.dumps(task.to_record())


def DeserializeSearchTask(record: str) -> SearchTask:
    """The task of a text."""
    try:
        found = json.loads(record)
    except (json.JSONDecodeError, TypeError) as error:
        raise ScheduleError(f"the record of a task is not JSON: {error}") from error
    return SearchTask.from_record(found)


def SerializeMeasureInput(inp: MeasureInput) -> str:
    """A measured input as JSON text."""
    return serialize_measure_input(inp)


def DeserializeMeasureInput(text: str) -> MeasureInput:
    """The measured input of a text."""
    return deserialize_measure_input(text)


def ComputeDAGPrintDAG(dag: ComputeDAG, simple_mode: bool = False) -> str:
    """A graph as text."""
    return dag_text(dag.ops, simple_mode)


def StateEqual(one: Any, other: Any) -> bool:
    """True if two states have the same steps."""
    return bool(one.transform_steps == other.transform_steps)


def _object(state: Any) -> StateObject:
    found: StateObject = getattr(state, "state_object", state)
    return found


def SearchPolicyUtilsIsTiled(stage: Stage) -> bool:
    """True if a stage was tiled."""
    return queries.is_tiled(stage)


def SearchPolicyUtilsHasCacheWriteStage(state: Any, stage_id: int) -> bool:
    """True if a stage is written through a cache."""
    return queries.has_cache_write(_object(state), int(stage_id))


def SearchPolicyUtilsHasCacheReadStage(state: Any, stage_id: int) -> bool:
    """True if a stage is read through a cache."""
    return queries.has_cache_read(_object(state), int(stage_id))


def SearchPolicyUtilsHasRfactorStage(state: Any, stage_id: int) -> bool:
    """True if the reduction of a stage was factored."""
    return queries.has_rfactor(_object(state), int(stage_id))


def SearchPolicyUtilsHasCrossThreadReduction(state: Any, stage_id: int) -> bool:
    """True if the threads of a block reduce a stage together."""
    return queries.has_cross_thread_reduction(_object(state), int(stage_id))
