"""AutoScheduler: schedules found by search over states of a program's loops."""

from tilewright.auto_scheduler import compute_dag, loop_state, workload_registry
from tilewright.auto_scheduler.compute_dag import ComputeDAG, LayoutRewriteOption
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.workload_registry import make_workload_key, register_workload

__all__ = [
    "ComputeDAG",
    "LayoutRewriteOption",
    "State",
    "compute_dag",
    "loop_state",
    "make_workload_key",
    "register_workload",
    "workload_registry",
]
