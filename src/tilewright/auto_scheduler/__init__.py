"""AutoScheduler: schedules found by search over states of a program's loops.

A task is tuned, its records applied:

    task = auto_scheduler.SearchTask(func=matmul, args=(512, 512, 512), target="llvm")
    task.tune(auto_scheduler.TuningOptions(200, measure_callbacks=[auto_scheduler.RecordToFile("records.json")]))
    schedule, arguments = task.apply_best("records.json")
"""

from tilewright.auto_scheduler import (
    compute_dag,
    cost_model,
    dispatcher,
    feature,
    loop_state,
    measure,
    measure_record,
    relay_integration,
    search_policy,
    search_task,
    task_scheduler,
    utils,
    workload_registry,
)
from tilewright.auto_scheduler.compute_dag import (
    ComputeDAG,
    LayoutRewriteOption,
    get_shape_from_rewritten_layout,
)
from tilewright.auto_scheduler.cost_model import RandomModel, XGBModel
from tilewright.auto_scheduler.dispatcher import ApplyHistoryBest, ApplyHistoryBestOrSample, DispatchContext
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.measure import (
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    register_task_input_check_func,
)
from tilewright.auto_scheduler.measure_record import (
    RecordReader,
    RecordToFile,
    load_best_record,
    load_records,
    save_records,
)
from tilewright.auto_scheduler.relay_integration import extract_tasks, is_auto_scheduler_enabled
from tilewright.auto_scheduler.search_policy import (
    EmptyPolicy,
    PreloadCustomSketchRule,
    PreloadMeasuredStates,
    SketchPolicy,
)
from tilewright.auto_scheduler.search_task import (
    HardwareParams,
    SearchTask,
    TuningOptions,
    auto_schedule,
    create_task,
)
from tilewright.auto_scheduler.sparse_inputs import try_get_sparse_input
from tilewright.auto_scheduler.task_scheduler import TaskScheduler
from tilewright.auto_scheduler.workload_registry import make_workload_key, register_workload

__all__ = [
    "ApplyHistoryBest",
    "ApplyHistoryBestOrSample",
    "ComputeDAG",
    "DispatchContext",
    "EmptyPolicy",
    "HardwareParams",
    "LayoutRewriteOption",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "MeasureInput",
    "MeasureResult",
    "PreloadCustomSketchRule",
    "PreloadMeasuredStates",
    "RPCRunner",
    "RandomModel",
    "RecordReader",
    "RecordToFile",
    "SearchTask",
    "SketchPolicy",
    "State",
    "TaskScheduler",
    "TuningOptions",
    "XGBModel",
    "auto_schedule",
    "compute_dag",
    "cost_model",
    "create_task",
    "dispatcher",
    "extract_tasks",
    "feature",
    "get_shape_from_rewritten_layout",
    "is_auto_scheduler_enabled",
    "load_best_record",
    "load_records",
    "loop_state",
    "make_workload_key",
    "measure",
    "measure_record",
    "register_task_input_check_func",
    "try_get_sparse_input",
    "register_workload",
    "relay_integration",
    "save_records",
    "search_policy",
    "search_task",
    "task_scheduler",
    "utils",
    "workload_registry",
]
