"""The runner that measures on this machine, each candidate in a fork of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.meta_schedule.isolated import Answer, run_isolated
from tilewright.meta_schedule.runner.arguments import (
    T_ARG_INFO_JSON_OBJ,
    T_ARG_INFO_JSON_OBJ_LIST,
    T_ARGUMENT,
    T_ARGUMENT_LIST,
    allocate,
    measure,
)
from tilewright.meta_schedule.runner.config import EvaluatorConfig
from tilewright.meta_schedule.runner.runner import (
    PyRunner,
    RunnerFuture,
    RunnerInput,
    RunnerResult,
    known_future,
)
from tilewright.meta_schedule.utils import get_global_func_with_default_on_worker
from tilewright.runtime.device import Device, device
from tilewright.runtime.loading import load_module
from tilewright.runtime.module import Module

_Step = None | str | Callable[..., Any]


class LocalRunner(PyRunner):
    """Runs candidates one after the other, each within ``timeout_sec``. The steps can be replaced; as names of
    registered functions, they may be registered by ``initializer``, which runs in each worker first."""

    def __init__(
        self,
        timeout_sec: float = 30.0,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_alloc_argument: _Step = None,
        f_run_evaluator: _Step = None,
        f_cleanup: _Step = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self.timeout_sec = timeout_sec
        self.evaluator_config = EvaluatorConfig._normalized(evaluator_config)
        self.cooldown_sec = cooldown_sec
        self.alloc_repeat = alloc_repeat
        self.f_alloc_argument = f_alloc_argument
        self.f_run_evaluator = f_run_evaluator
        self.f_cleanup = f_cleanup
        self.initializer = initializer
        (answer,) = run_isolated([self._check], timeout_sec, 1, "the runner")
        if answer.problem is not None:
            raise ValueError(f"LocalRunner cannot start: {answer.problem}")

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        def action(one: RunnerInput) -> Callable[[], list[float]]:
            return lambda: self._run(one)

        # One at a time: measurements would disturb each other.
        answers = run_isolated([action(one) for one in runner_inputs], self.timeout_sec, 1, "the candidate")
        return [known_future(result_of("LocalRunner", answer, self.timeout_sec)) for answer in answers]

    def _steps(self) -> tuple[Any, Any, Any]:
        if self.initializer is not None:
            self.initializer()
        return (
            get_global_func_with_default_on_worker(self.f_alloc_argument, default_alloc_argument),
            get_global_func_with_default_on_worker(self.f_run_evaluator, default_run_evaluator),
            get_global_func_with_default_on_worker(self.f_cleanup, default_cleanup),
        )

    def _check(self) -> None:
        self._steps()

    def _run(self, one: RunnerInput) -> list[float]:
        allocates, evaluates, cleans = self._steps()
        try:
            module = load_module(one.artifact_path)
            where = device(one.device_type, 0)
            described = [info.as_json() for info in one.args_info]
            repeated = allocates(where, described, self.alloc_repeat)
            return [float(cost) for cost in evaluates(module, where, self.evaluator_config, repeated)]
        finally:
            cleans()


def result_of(name: str, answer: Answer, seconds: float) -> RunnerResult:
    """What an answer says of a candidate."""
    if answer.timed_out:
        return RunnerResult(None, f"{name}: Timeout, killed after {seconds} seconds")
    if answer.problem is not None:
        return RunnerResult(None, f"{name}: An exception occurred\n{answer.problem}")
    return RunnerResult(answer.value, None)


def default_alloc_argument(
    device: Device, args_info: T_ARG_INFO_JSON_OBJ_LIST, alloc_repeat: int
) -> list[T_ARGUMENT_LIST]:
    """So many sets of arguments with random values."""
    return allocate(device, args_info, alloc_repeat)


def default_run_evaluator(
    rt_mod: Module, device: Device, evaluator_config: EvaluatorConfig, repeated_args: list[T_ARGUMENT_LIST]
) -> list[float]:
    """The seconds of each measurement."""
    return measure(rt_mod, device, evaluator_config, repeated_args)


def default_cleanup() -> None:
    """Nothing is left behind: the process that ran the candidate ends."""


__all__ = [
    "T_ARGUMENT",
    "T_ARGUMENT_LIST",
    "T_ARG_INFO_JSON_OBJ",
    "T_ARG_INFO_JSON_OBJ_LIST",
    "LocalRunner",
    "default_alloc_argument",
    "default_cleanup",
    "default_run_evaluator",
]
