"""Tuning, which is not in this version: every function says so."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from tilewright.driver.tvmc.errors import TVMCException

_MESSAGE = (
    "tuning is not in this version. Models are compiled with schedules that are computed from the "
    "target's registers and caches, which need no tuning: 'tilewright compile' uses them."
)


def not_in_this_version() -> NoReturn:
    """Raise the error."""
    raise TVMCException(_MESSAGE)


def add_tune_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Add the command, which takes any argument."""
    parser = subparsers.add_parser(
        "tune", help="search for faster schedules for a model (not in this version)", add_help=False
    )
    parser.set_defaults(func=drive_tune, takes_any_argument=True)
    return parser


def drive_tune(args: argparse.Namespace) -> int:
    """Runs the command."""
    not_in_this_version()


def tune_model(
    tvmc_model: Any,
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
    additional_target_options: Any = None,
) -> str:
    """The path of a file with the best schedules that were found."""
    not_in_this_version()


def autotvm_get_tuning_tasks(
    mod: Any, params: Any, target: Any, target_host: Any = None, alter_layout: str | None = None
) -> Any:
    """The tasks of a model for tuning with templates."""
    not_in_this_version()


def autoscheduler_get_tuning_tasks(
    mod: Any,
    params: Any,
    target: Any,
    target_host: Any = None,
    alter_layout: str | None = None,
    hardware_params: Any = None,
    include_simple_tasks: bool = False,
) -> Any:
    """The tasks of a model for tuning without templates, and their weights."""
    not_in_this_version()


def schedule_tasks(
    tasks: Any,
    task_weights: Any,
    tuning_options: Any,
    prior_records: str | None = None,
    log_estimated_latency: bool = False,
) -> None:
    """Tune without templates."""
    not_in_this_version()


def tune_tasks(
    tasks: Any,
    log_file: str,
    measure_option: Any,
    tuner: str,
    trials: int,
    early_stopping: int | None = None,
    tuning_records: str | None = None,
) -> None:
    """Tune with templates."""
    not_in_this_version()
