"""``tvmc tune``: AutoTVM or AutoScheduler over the tasks of a model, with TVM's options.

``tilewright tune`` is the shorter way: it takes a time, searches the kernels as they are compiled, and compares the
whole model at the end.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright import auto_scheduler, autotvm
from tilewright.driver.tvmc import common, frontends
from tilewright.driver.tvmc.arguments import (
    Commands,
    add_model_arguments,
    add_target_arguments,
    target_options,
)
from tilewright.driver.tvmc.composite_target import get_codegen_by_target, load_plugins
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.measurable import require_device
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.suggestions import did_you_mean
from tilewright.target import Target

logger = logging.getLogger("TVMC")

TUNERS = ("ga", "gridsearch", "random", "xgb", "xgb_knob", "xgb-rank")
_HARDWARE = {
    "cache_line_bytes": "the size of a cache line in bytes",
    "num_cores": "the number of cores of the device",
    "vector_unit_bytes": "the width of vectors in bytes",
    "max_shared_memory_per_block": "the bytes of shared memory that a block of threads may have",
    "max_local_memory_per_block": "the bytes of local memory that a block of threads may have",
    "max_threads_per_block": "the threads that a block may have",
    "max_vthread_extent": "the virtual threads that there may be",
    "warp_size": "the threads of a warp",
}
"""What AutoScheduler may be told about a device."""


def add_tune_parser(subparsers: Commands[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command with the options of ``tvmc tune``."""
    parser = subparsers.add_parser("tune", help="search for faster schedules for a model")
    add_model_arguments(parser)
    add_target_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="PATH", help="where records are appended")
    parser.add_argument(
        "--tuning-records", metavar="PATH", help="records of earlier searches, which this one starts from"
    )
    parser.add_argument("--trials", type=int, default=1000, metavar="N", help="candidates to measure")
    parser.add_argument("--tuner", choices=TUNERS, default="xgb", help="of AutoTVM; default: xgb")
    parser.add_argument(
        "--early-stopping", type=int, metavar="N", help="stop after so many candidates without a better one"
    )
    parser.add_argument("--number", type=int, default=10, help="calls of one measurement; default: 10")
    parser.add_argument("--repeat", type=int, default=1, help="measurements of a candidate; default: 1")
    parser.add_argument(
        "--min-repeat-ms", type=int, metavar="MS", help="the least time of a measurement; default: 0 on a CPU"
    )
    parser.add_argument("--parallel", type=int, default=4, help="remote devices at once; default: 4")
    parser.add_argument(
        "--timeout", type=int, default=10, metavar="S", help="seconds for a candidate; default: 10"
    )
    parser.add_argument("--target-host", help="the target of the host code")
    parser.add_argument("--desired-layout", choices=("NCHW", "NHWC"), help="the data layout of convolutions")
    parser.add_argument("--rpc-tracker", metavar="HOST[:PORT]", help="the tracker of remote devices")
    parser.add_argument("--rpc-key", metavar="KEY", help="the kind of remote device")
    group = parser.add_argument_group("AutoScheduler")
    group.add_argument("--enable-autoscheduler", action="store_true", help="use it in the place of AutoTVM")
    for name, text in _HARDWARE.items():
        group.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=text)
    group.add_argument(
        "--include-simple-tasks", action="store_true", help="also tune functions without reductions"
    )
    group.add_argument(
        "--log-estimated-latency",
        action="store_true",
        help="write the estimated time of the model as it falls",
    )
    parser.set_defaults(func=drive_tune)
    return parser


def drive_tune(args: Any) -> int:
    """Runs the command."""
    load_plugins(args.plugin)
    hostname, port = common.tracker_host_port_from_cli(args.rpc_tracker)
    if not hostname:
        require_device(common.target_from_cli(args.target, target_options(args))[0])
    tvmc_model = frontends.load_model(args.FILE, args.model_format, shape_dict=_shapes(args.input_shapes))
    hardware = auto_scheduler.HardwareParams(
        num_cores=args.num_cores,
        vector_unit_bytes=args.vector_unit_bytes,
        cache_line_bytes=args.cache_line_bytes,
        max_shared_memory_per_block=args.max_shared_memory_per_block,
        max_local_memory_per_block=args.max_local_memory_per_block,
        max_threads_per_block=args.max_threads_per_block,
        max_vthread_extent=args.max_vthread_extent,
        warp_size=args.warp_size,
        target=args.target,
        target_host=args.target_host,
    )
    tune_model(
        tvmc_model,
        args.target,
        tuning_records=args.output,
        prior_records=args.tuning_records,
        enable_autoscheduler=args.enable_autoscheduler,
        rpc_key=args.rpc_key,
        hostname=hostname,
        port=port or 9090,
        trials=args.trials,
        target_host=args.target_host,
        tuner=args.tuner,
        min_repeat_ms=args.min_repeat_ms,
        early_stopping=args.early_stopping,
        desired_layout=args.desired_layout,
        timeout=args.timeout,
        repeat=args.repeat,
        number=args.number,
        parallel=args.parallel,
        hardware_params=hardware,
        include_simple_tasks=args.include_simple_tasks,
        log_estimated_latency=args.log_estimated_latency,
        additional_target_options=target_options(args),
    )
    return 0


def _shapes(text: Any) -> dict[str, list[Any]] | None:
    return common.parse_shape_string(text) if isinstance(text, str) and text else None


def tune_model(
    tvmc_model: TVMCModel,
    target: Any,
    tuning_records: str | None = None,
    prior_records: str | None = None,
    enable_autoscheduler: bool = False,
    rpc_key: str | None = None,
    hostname: str | None = None,
    port: int | str = 9090,
    trials: int = 10000,
    target_host: Any = None,
    tuner: str = "xgb",
    min_repeat_ms: int | None = None,
    early_stopping: int | None = None,
    desired_layout: str | None = None,
    timeout: int = 10,
    repeat: int = 1,
    number: int = 10,
    parallel: int = 4,
    hardware_params: Any = None,
    include_simple_tasks: bool = False,
    log_estimated_latency: bool = False,
    additional_target_options: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Tune a model with AutoTVM, or with AutoScheduler; gives the path of the records.

    ``trials`` are those of each task for AutoTVM, and of all together for AutoScheduler, as in TVM. ``prior_records``
    are of earlier searches. With ``hostname``, candidates run on devices of the tracker there with the key ``rpc_key``.
    """
    if isinstance(target, str):
        chosen, generators = common.target_from_cli(target, additional_target_options)
    else:
        chosen, generators = Target(target), []
    if target_host is not None:
        chosen = Target(chosen, target_host)
    if not hostname:
        require_device(chosen)
    mod, params = _with_generators(tvmc_model.mod, tvmc_model.params, generators)
    records = tuning_records or tvmc_model.default_tuning_records_path()
    _require_file(prior_records)
    if min_repeat_ms is None:
        min_repeat_ms = 0 if "cpu" in chosen.keys else 1000
    runner = _runner(
        auto_scheduler if enable_autoscheduler else autotvm,
        hostname,
        port,
        rpc_key,
        parallel,
        number=number,
        repeat=repeat,
        timeout=timeout,
        min_repeat_ms=min_repeat_ms,
    )
    if enable_autoscheduler:
        tasks, weights = autoscheduler_get_tuning_tasks(
            mod,
            params,
            chosen,
            alter_layout=desired_layout,
            hardware_params=hardware_params,
            include_simple_tasks=include_simple_tasks,
        )
        options = auto_scheduler.TuningOptions(
            num_measure_trials=trials,
            measure_callbacks=[auto_scheduler.RecordToFile(records)],
            runner=runner,
            early_stopping=early_stopping,
        )
        schedule_tasks(tasks, weights, options, prior_records, log_estimated_latency)
        return records
    tune_tasks(
        autotvm_get_tuning_tasks(mod, params, chosen, alter_layout=desired_layout),
        records,
        autotvm.measure_option(builder=autotvm.LocalBuilder(build_func="default"), runner=runner),
        tuner,
        trials,
        early_stopping,
        prior_records,
    )
    return records


def _with_generators(
    mod: IRModule, params: Mapping[str, Any], generators: Sequence[Mapping[str, Any]]
) -> tuple[IRModule, Mapping[str, Any]]:
    """The module without what other code generators compile."""
    for one in generators:
        found = get_codegen_by_target(one["name"])
        key = found["config_key"]
        with PassContext(config={} if key is None else {key: dict(one["opts"])}):
            mod = found["pass_pipeline"](mod, params, **one["opts"])
    return mod, params


def _require_file(path: str | None) -> None:
    if path is not None and not Path(path).is_file():
        raise TVMCException(f"there is no file {path} of earlier records")


def _runner(
    tuners: Any,
    hostname: str | None,
    port: int | str,
    key: str | None,
    parallel: int,
    **options: Any,
) -> Any:
    """Where candidates run: here, or on devices of a tracker."""
    if not hostname:
        return tuners.LocalRunner(**options)
    if not key:
        raise TVMCException("remote devices are chosen by a key of the tracker: give rpc_key, or --rpc-key")
    return tuners.RPCRunner(key=key, host=hostname, port=int(port), n_parallel=parallel, **options)


def autotvm_get_tuning_tasks(
    mod: IRModule,
    params: Mapping[str, Any],
    target: Any,
    target_host: Any = None,
    alter_layout: str | None = None,
) -> list[Any]:
    """The tasks of a model for AutoTVM."""
    if alter_layout:
        mod = common.convert_graph_layout(mod, alter_layout)
    tasks: list[Any] = autotvm.task.extract_from_program(
        mod["main"], target=target, params=params, target_host=target_host
    )
    return tasks


def autoscheduler_get_tuning_tasks(
    mod: IRModule,
    params: Mapping[str, Any],
    target: Any,
    target_host: Any = None,
    alter_layout: str | None = None,
    hardware_params: Any = None,
    include_simple_tasks: bool = False,
) -> tuple[list[Any], list[int]]:
    """The tasks of a model for AutoScheduler, and how often each is called."""
    if alter_layout:
        mod = common.convert_graph_layout(mod, alter_layout)
    return auto_scheduler.extract_tasks(
        mod["main"],
        params,
        target=target,
        target_host=target_host,
        hardware_params=hardware_params,
        include_simple_tasks=include_simple_tasks,
    )


def schedule_tasks(
    tasks: Sequence[Any],
    task_weights: Sequence[float],
    tuning_options: Any,
    prior_records: str | None = None,
    log_estimated_latency: bool = False,
) -> None:
    """Tune tasks with AutoScheduler."""
    callbacks: list[Any] = [auto_scheduler.task_scheduler.PrintTableInfo()]
    if log_estimated_latency:
        callbacks.append(auto_scheduler.task_scheduler.LogEstimatedLatency("total_latency.tsv"))
    scheduler = auto_scheduler.TaskScheduler(
        tasks, task_weights, load_log_file=prior_records, callbacks=callbacks
    )
    scheduler.tune(tuning_options)


def tune_tasks(
    tasks: Sequence[Any],
    log_file: str,
    measure_option: Any,
    tuner: str,
    trials: int,
    early_stopping: int | None = None,
    tuning_records: str | None = None,
) -> None:
    """Tune tasks with AutoTVM, one after the other; each measures so many candidates."""
    if tuner not in TUNERS:
        raise TVMCException(f"the tuners are {', '.join(TUNERS)}, not {tuner!r}{did_you_mean(tuner, TUNERS)}")
    if not tasks:
        logger.warning("there were no tasks found to be tuned")
        return
    stop = early_stopping or trials
    for number, task in enumerate(tasks, 1):
        prefix = f"[Task {number:2d}/{len(tasks):2d}] "
        made = _tuner(tuner, task)
        if tuning_records and os.path.exists(tuning_records):
            made.load_history(autotvm.record.load_from_file(tuning_records))
        made.tune(
            n_trial=min(trials, len(task.config_space)),
            early_stopping=stop,
            measure_option=measure_option,
            callbacks=[
                autotvm.callback.progress_bar(trials, prefix=prefix),
                autotvm.callback.log_to_file(log_file),
            ],
        )


def _tuner(name: str, task: Any) -> Any:
    tuners = autotvm.tuner
    if name in ("xgb", "xgb-rank"):
        return tuners.XGBTuner(task, loss_type="rank")
    if name == "xgb_knob":
        return tuners.XGBTuner(task, loss_type="rank", feature_type="knob")
    if name == "ga":
        return tuners.GATuner(task, pop_size=50)
    return tuners.RandomTuner(task) if name == "random" else tuners.GridSearchTuner(task)
