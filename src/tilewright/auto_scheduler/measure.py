"""Building and measuring programs: TVM's names."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.auto_scheduler.builders import BuildFunc, LocalBuilder, ProgramBuilder
from tilewright.auto_scheduler.measure_record import recover_measure_input
from tilewright.auto_scheduler.measure_types import (
    BuildResult,
    MeasureCallback,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    PythonBasedMeasureCallback,
)
from tilewright.auto_scheduler.measurer import ProgramMeasurer
from tilewright.auto_scheduler.runners import LocalRPCMeasureContext, LocalRunner, ProgramRunner, RPCRunner
from tilewright.auto_scheduler.task_inputs import (
    prepare_input_map,
    prepare_runner_args,
    register_task_input_check_func,
)

__all__ = [
    "BuildFunc",
    "BuildResult",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "MeasureCallback",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "ProgramBuilder",
    "ProgramMeasurer",
    "ProgramRunner",
    "PythonBasedMeasureCallback",
    "RPCRunner",
    "local_builder_build",
    "local_run",
    "prepare_input_map",
    "prepare_runner_args",
    "recover_measure_input",
    "register_task_input_check_func",
    "rpc_runner_run",
]


def local_builder_build(
    inputs: Sequence[MeasureInput],
    timeout: float,
    n_parallel: int,
    build_func: str = "default",
    verbose: int = 1,
) -> list[BuildResult]:
    """What ``LocalBuilder.build`` does."""
    return LocalBuilder(timeout, n_parallel, build_func).build(inputs, verbose)


def local_run(
    inputs: Sequence[MeasureInput],
    build_results: Sequence[BuildResult],
    timeout: float = 10,
    number: int = 3,
    repeat: int = 1,
    min_repeat_ms: int = 0,
    cooldown_interval: float = 0,
    enable_cpu_cache_flush: bool = False,
    verbose: int = 1,
) -> list[MeasureResult]:
    """What ``LocalRunner.run`` does."""
    runner = LocalRunner(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush)
    return runner.run(inputs, build_results, verbose)


def rpc_runner_run(
    inputs: Sequence[MeasureInput],
    build_results: Sequence[BuildResult],
    key: str,
    host: str,
    port: int,
    priority: int = 1,
    n_parallel: int = 1,
    timeout: float = 10,
    number: int = 3,
    repeat: int = 1,
    min_repeat_ms: int = 0,
    cooldown_interval: float = 0.0,
    enable_cpu_cache_flush: bool = False,
    verbose: int = 1,
) -> list[MeasureResult]:
    """What ``RPCRunner.run`` does."""
    options = (timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush)
    return RPCRunner(key, host, port, priority, n_parallel, *options).run(inputs, build_results, verbose)
