"""MetaSchedule: tuning of block schedules, task by task.

The parts are those of TVM 0.8: a ``TuneContext`` has a module, a target, a generator of design spaces
(``space_generator``) and a strategy (``search_strategy``); a task scheduler has builders and runners measure
candidates, and puts what they measured into a ``database``. ``relay_integration`` has the two functions that PyTorch's
backend ``tvm`` calls; they tune whole models with AutoScheduler.
"""

from tilewright.meta_schedule import (
    arg_info,
    builder,
    database,
    integration,
    relay_integration,
    runner,
    search_strategy,
    space_generator,
    task_scheduler,
    testing,
    utils,
)
from tilewright.meta_schedule.relay_integration import Database, compile_relay, tune_relay
from tilewright.meta_schedule.search_strategy import MeasureCandidate
from tilewright.meta_schedule.tune_context import TuneContext

__all__ = [
    "Database",
    "MeasureCandidate",
    "TuneContext",
    "arg_info",
    "builder",
    "compile_relay",
    "database",
    "integration",
    "relay_integration",
    "runner",
    "search_strategy",
    "space_generator",
    "task_scheduler",
    "testing",
    "tune_relay",
    "utils",
]
