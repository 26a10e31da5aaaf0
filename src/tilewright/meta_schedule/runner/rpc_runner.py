"""The runner that measures on other machines, which a tracker lends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.meta_schedule.isolated import run_isolated
from tilewright.meta_schedule.runner.arguments import (
    T_ARG_INFO_JSON_OBJ,
    T_ARG_INFO_JSON_OBJ_LIST,
    T_ARGUMENT,
    T_ARGUMENT_LIST,
    allocate,
    measure,
)
from tilewright.meta_schedule.runner.config import EvaluatorConfig, RPCConfig
from tilewright.meta_schedule.runner.local_runner import result_of
from tilewright.meta_schedule.runner.runner import PyRunner, RunnerFuture, RunnerInput, known_future
from tilewright.meta_schedule.utils import cpu_count, get_global_func_with_default_on_worker
from tilewright.rpc.client import RPCSession
from tilewright.rpc.tracker_session import TrackerSession, connect_tracker

_Step = str | Callable[..., Any] | None


class RPCRunner(PyRunner):
    """Runs each candidate in a session of its own with a device that the tracker of ``rpc_config`` lends. The steps
    can be replaced; as names of registered functions, they may be registered by ``initializer``, which runs in each
    worker first."""

    def __init__(
        self,
        rpc_config: RPCConfig | None = None,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_create_session: _Step = None,
        f_upload_module: _Step = None,
        f_alloc_argument: _Step = None,
        f_run_evaluator: _Step = None,
        f_cleanup: _Step = None,
        max_workers: int | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self.rpc_config = RPCConfig._normalized(rpc_config)
        self.evaluator_config = EvaluatorConfig._normalized(evaluator_config)
        self.cooldown_sec = cooldown_sec
        self.alloc_repeat = alloc_repeat
        self.f_create_session = f_create_session
        self.f_upload_module = f_upload_module
        self.f_alloc_argument = f_alloc_argument
        self.f_run_evaluator = f_run_evaluator
        self.f_cleanup = f_cleanup
        self.initializer = initializer
        self.max_workers = cpu_count() if max_workers is None else max_workers
        seconds = self.rpc_config.session_timeout_sec
        (answer,) = run_isolated([self._check], seconds, 1, "the runner")
        if answer.problem is not None:
            raise ValueError(f"RPCRunner cannot start: {answer.problem}")

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        def action(one: RunnerInput) -> Callable[[], list[float]]:
            return lambda: self._run(one)

        seconds = self.rpc_config.session_timeout_sec
        answers = run_isolated(
            [action(one) for one in runner_inputs], seconds, self.max_workers, "the candidate"
        )
        return [known_future(result_of("RPCRunner", answer, seconds)) for answer in answers]

    def _steps(self) -> list[Any]:
        if self.initializer is not None:
            self.initializer()
        return [
            get_global_func_with_default_on_worker(given, default)
            for given, default in (
                (self.f_create_session, default_create_session),
                (self.f_upload_module, default_upload_module),
                (self.f_alloc_argument, default_alloc_argument),
                (self.f_run_evaluator, default_run_evaluator),
                (self.f_cleanup, default_cleanup),
            )
        ]

    def _check(self) -> None:
        self._steps()

    def _run(self, one: RunnerInput) -> list[float]:
        creates, uploads, allocates, evaluates, cleans = self._steps()
        session: RPCSession | None = None
        remote_path: str | None = None
        try:
            session = creates(self.rpc_config)
            where = session.device(one.device_type, 0)
            remote_path = Path(one.artifact_path).name
            module = uploads(session, one.artifact_path, remote_path)
            described = [info.as_json() for info in one.args_info]
            repeated = allocates(session, where, described, self.alloc_repeat)
            costs = evaluates(session, module, where, self.evaluator_config, repeated)
            return [float(cost) for cost in costs]
        finally:
            cleans(session, remote_path)


def connect_to_tracker(config: RPCConfig) -> TrackerSession:
    """A session with the tracker of a configuration."""
    known = RPCConfig._normalized(config)
    return connect_tracker(str(known.tracker_host), int(known.tracker_port or 0))


def default_create_session(rpc_config: RPCConfig) -> RPCSession:
    """A session with a device that the tracker lends."""
    known = RPCConfig._normalized(rpc_config)
    return connect_to_tracker(known).request(
        str(known.tracker_key), priority=known.session_priority, session_timeout=known.session_timeout_sec
    )


def default_upload_module(session: RPCSession, local_path: str, remote_path: str) -> Any:
    """Copy the file of a candidate to the device's machine and load it there."""
    session.upload(local_path, remote_path)
    return session.load_module(remote_path)


def default_alloc_argument(
    session: RPCSession, device: Any, args_info: T_ARG_INFO_JSON_OBJ_LIST, alloc_repeat: int
) -> list[T_ARGUMENT_LIST]:
    """So many sets of arguments with random values on the device."""
    return allocate(device, args_info, alloc_repeat)


def default_run_evaluator(
    session: RPCSession,
    rt_mod: Any,
    device: Any,
    evaluator_config: EvaluatorConfig,
    repeated_args: list[T_ARGUMENT_LIST],
) -> list[float]:
    """The seconds of each measurement."""
    return measure(rt_mod, device, evaluator_config, repeated_args)


def default_cleanup(session: RPCSession | None, remote_path: str | None) -> None:
    """Remove the file from the device's machine."""
    if session is not None and remote_path is not None:
        # The session may have ended with the candidate.
        with contextlib.suppress(Exception):
            session.remove(remote_path)
            session.remove("")


__all__ = [
    "T_ARGUMENT",
    "T_ARGUMENT_LIST",
    "T_ARG_INFO_JSON_OBJ",
    "T_ARG_INFO_JSON_OBJ_LIST",
    "RPCRunner",
    "connect_to_tracker",
    "default_alloc_argument",
    "default_cleanup",
    "default_create_session",
    "default_run_evaluator",
    "default_upload_module",
]
