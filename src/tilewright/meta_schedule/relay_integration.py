"""Tuning and compiling a Relay module, with MetaSchedule's names for the two steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.auto_scheduler.dispatcher import ApplyHistoryBest
from tilewright.auto_scheduler.measure_record import RecordToFile
from tilewright.auto_scheduler.relay_integration import extract_tasks
from tilewright.auto_scheduler.task_scheduler import TaskScheduler
from tilewright.auto_scheduler.tuning_options import TuningOptions
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.build_module import build
from tilewright.relay.function import Function
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target, TargetLike

_STRATEGIES = ("evolutionary", "replay-func", "replay-trace")


@dataclass(frozen=True)
class Database:
    """What tuning found: a file of AutoScheduler's records."""

    path: Path


def tune_relay(
    mod: IRModule | Function,
    params: Mapping[str, Any],
    target: TargetLike,
    work_dir: str,
    max_trials_global: int,
    num_trials_per_iter: int = 64,
    strategy: str = "evolutionary",
    opt_level: int = 3,
) -> Database:
    """Tune the functions of a module until so many candidates were measured in all; with ``evolutionary`` they are
    ranked by a model that learns, otherwise at random. A folder that has records is continued from."""
    if strategy not in _STRATEGIES:
        raise TilewrightError(f"the strategies are {', '.join(_STRATEGIES)}, not {strategy!r}")
    if max_trials_global <= 0:
        raise TilewrightError(
            f"max_trials_global is {max_trials_global}: at least one candidate has to be measured"
        )
    folder = Path(work_dir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "records.json"
    tasks, weights = extract_tasks(mod, params, target, opt_level=opt_level)
    if tasks:
        scheduler = TaskScheduler(
            tasks, weights, load_log_file=str(path) if path.exists() else None, callbacks=[]
        )
        options = TuningOptions(
            num_measure_trials=max_trials_global,
            num_measures_per_round=num_trials_per_iter,
            verbose=0,
            measure_callbacks=[RecordToFile(path)],
        )
        scheduler.tune(options, "sketch.xgb" if strategy == "evolutionary" else "sketch.random")
    return Database(path)


def compile_relay(
    database: Database,
    mod: IRModule | Function,
    target: TargetLike,
    params: Mapping[str, Any] | None,
    backend: str = "graph",
    opt_level: int = 3,
) -> Any:
    """Compile a module with the best of what tuning found; what was slower than untuned is not used."""
    if backend != "graph":
        raise TilewrightError(
            f"the backend is 'graph', not {backend!r}; relay.vm.compile is the virtual machine"
        )
    with (
        ApplyHistoryBest(database.path if database.path.exists() else None),
        PassContext(opt_level=opt_level, config={"relay.backend.use_auto_scheduler": True}),
    ):
        return build(mod, target=Target(target), params=dict(params or {}))
