"""AutoScheduler: schedules found by search over states of a program's loops."""

from tilewright.auto_scheduler import compute_dag, loop_state, measure_record, search_task, workload_registry
from tilewright.auto_scheduler.compute_dag import (
    ComputeDAG,
    LayoutRewriteOption,
    get_shape_from_rewritten_layout,
)
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.measure_record import (
    RecordReader,
    RecordToFile,
    load_best_record,
    load_records,
    save_records,
)
from tilewright.auto_scheduler.search_task import HardwareParams, SearchTask, create_task
from tilewright.auto_scheduler.workload_registry import make_workload_key, register_workload

__all__ = [
    "ComputeDAG",
    "HardwareParams",
    "LayoutRewriteOption",
    "RecordReader",
    "RecordToFile",
    "SearchTask",
    "State",
    "compute_dag",
    "create_task",
    "get_shape_from_rewritten_layout",
    "load_best_record",
    "load_records",
    "loop_state",
    "make_workload_key",
    "measure_record",
    "register_workload",
    "save_records",
    "search_task",
    "workload_registry",
]
