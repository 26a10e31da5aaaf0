"""Runners: they measure the candidates that builders built."""

from tilewright.meta_schedule.runner.config import EvaluatorConfig, RPCConfig
from tilewright.meta_schedule.runner.local_runner import LocalRunner
from tilewright.meta_schedule.runner.rpc_runner import RPCRunner
from tilewright.meta_schedule.runner.runner import (
    PyRunner,
    Runner,
    RunnerFuture,
    RunnerInput,
    RunnerResult,
)

__all__ = [
    "EvaluatorConfig",
    "LocalRunner",
    "PyRunner",
    "RPCConfig",
    "RPCRunner",
    "Runner",
    "RunnerFuture",
    "RunnerInput",
    "RunnerResult",
]
