"""Runners: candidates measured in a process of this machine, or on remote devices, which may crash or hang."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.autotvm.measure.executor import Executor, LocalExecutor
from tilewright.autotvm.measure.local_builder import BuildResult, LocalBuilder
from tilewright.autotvm.measure.measure import Builder, MeasureErrorNo, MeasureInput, MeasureResult, Runner
from tilewright.rpc.tracker_session import connect_tracker
from tilewright.runtime import ndarray
from tilewright.runtime.device import device as device_of
from tilewright.runtime.loading import load_module
from tilewright.search.measure import Argument, Built, Measured, RunOptions, run_all
from tilewright.search.remote import Devices, run_remotely
from tilewright.support.errors import RPCError, TilewrightError
from tilewright.support.options import tracker_address
from tilewright.target.target import Target

logger = logging.getLogger("autotvm")

_FLUSH = "cache_flush_cpu_non_first_arg"
"""The function of the runtime that empties the caches before each call."""


class MeasuringRunner(Runner):
    """What runners have in common: how often a candidate is measured, on what, and where jobs go.

    Each of ``repeat`` costs is the mean of ``number`` calls, raised until they last ``min_repeat_ms``. After a
    candidate it waits ``cooldown_interval`` seconds. ``enable_cpu_cache_flush`` empties the caches before each call.
    ``module_loader`` loads programs in a way of your own.
    """

    def __init__(
        self,
        timeout: float = 10,
        n_parallel: int | None = None,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(timeout, n_parallel)
        self.number = number
        self.repeat = repeat
        self.min_repeat_ms = min_repeat_ms
        self.cooldown_interval = cooldown_interval
        self.enable_cpu_cache_flush = enable_cpu_cache_flush
        self.module_loader = module_loader
        self.executor: Executor = LocalExecutor()
        self._ref_input: list[Any] | None = None

    @property
    def ref_input(self) -> list[Any] | None:
        """Values for the arguments, instead of random ones: for operators whose time depends on values."""
        return self._ref_input

    @ref_input.setter
    def ref_input(self, val: list[Any] | None) -> None:
        self._ref_input = val

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        """Measure one candidate after the other."""
        results: dict[int, MeasureResult] = {}
        if isinstance(self.executor, LocalExecutor) and self.module_loader is None:
            results = self._run_together(measure_inputs, build_results)
        for number, (measured, built) in enumerate(zip(measure_inputs, build_results, strict=True)):
            if number not in results:
                results[number] = self._run_one(measured, built)
        return [results[number] for number in range(len(build_results))]

    def _run_together(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> dict[int, MeasureResult]:
        """Measure the candidates that take the same arguments, which are made once."""
        groups: dict[Any, list[int]] = {}
        for number, built in enumerate(build_results):
            if isinstance(built, BuildResult) and built.built is not None:
                groups.setdefault(built.arg_info, []).append(number)
        results: dict[int, MeasureResult] = {}
        for described, numbers in groups.items():
            arguments = _arguments(described, self._ref_input)
            options = self._options(measure_inputs[numbers[0]].target)
            found = self._run_built([build_results[number].built for number in numbers], arguments, options)
            results.update(zip(numbers, map(_result, found), strict=True))
        return results

    def _run_built(
        self, built: Sequence[Built], arguments: Sequence[Argument], options: RunOptions
    ) -> list[Measured]:
        return run_all(built, arguments, options)

    def _options(self, target: Target) -> RunOptions:
        return RunOptions(
            seconds=self.timeout,
            number=self.number,
            repeat=self.repeat,
            min_repeat_ms=self.min_repeat_ms,
            flush=self.enable_cpu_cache_flush,
            cooldown=self.cooldown_interval,
            device="cuda" if "cuda" in target.keys else "cpu",
        )

    def _run_one(self, measured: Any, built: Any) -> Any:
        if isinstance(built, MeasureResult):
            return built
        future = self.executor.submit(
            run_locally,
            measured,
            built,
            self.number,
            self.repeat,
            self.min_repeat_ms,
            self.cooldown_interval,
            ref_input=self._ref_input,
            enable_cpu_cache_flush=self.enable_cpu_cache_flush,
            module_loader=self.module_loader,
            timeout=self.timeout,
        )
        try:
            return future.result()
        except TilewrightError as problem:
            return MeasureResult((problem,), MeasureErrorNo.RUNTIME_DEVICE, 0.0, time.time())


def _arguments(
    described: Sequence[tuple[tuple[int, ...], str]], ref_input: list[Any] | None
) -> list[Argument]:
    if ref_input is not None:
        return [Argument.of(_as_array(value)) for value in ref_input]
    return [Argument(shape, dtype) for shape, dtype in described]


class LocalRunner(MeasuringRunner):
    """Measures on this machine, in a process of its own."""

    def __init__(
        self,
        timeout: float = 10,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(
            timeout,
            1,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
            module_loader,
        )


class RPCRunner(MeasuringRunner):
    """Measures on the devices with the label ``key`` of a tracker, ``n_parallel`` of them at once; who has a larger
    ``priority`` comes first. A candidate that crashes or hangs ends its session, and nothing else."""

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        timeout: float = 10,
        n_parallel: int | None = None,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(
            timeout,
            n_parallel,
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval,
            enable_cpu_cache_flush,
            module_loader,
        )
        self.key, self.host, self.port, self.priority = key, host, int(port), priority

    def set_task(self, task: Any) -> None:
        """An error at once, and not in every measurement, where the tracker has no such device."""
        super().set_task(task)
        if not check_remote(task.target, self.key, self.host, self.port):
            raise RPCError(
                f"the tracker {self.host}:{self.port} has no free device {self.key!r} for {task.target}; "
                "`python -m tilewright.exec.query_rpc_tracker` shows what it has"
            )

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        """Measure the candidates, as many at once as devices may be used."""
        if self.module_loader is not None:
            described = {"device_key": self.key, "host": self.host, "port": self.port}
            return [
                run_through_rpc(
                    measured,
                    built,
                    self.number,
                    self.repeat,
                    self.min_repeat_ms,
                    self.cooldown_interval,
                    {**described, "priority": self.priority, "timeout": self.timeout},
                    self._ref_input,
                    self.enable_cpu_cache_flush,
                    self.module_loader,
                )
                for measured, built in zip(measure_inputs, build_results, strict=True)
            ]
        found = self._run_together(measure_inputs, build_results)
        return [found.get(number, built) for number, built in enumerate(build_results)]

    def _run_built(
        self, built: Sequence[Built], arguments: Sequence[Argument], options: RunOptions
    ) -> list[Measured]:
        devices = Devices(self.key, self.host, self.port, self.priority, self.n_parallel or 1)
        return run_remotely(built, arguments, options, devices)


def run_locally(
    measure_input: MeasureInput,
    build_result: Any,
    number: int,
    repeat: int,
    min_repeat_ms: int,
    cooldown_interval: float,
    ref_input: list[Any] | None = None,
    enable_cpu_cache_flush: bool = False,
    module_loader: Callable[..., Any] | None = None,
    timeout: float = 10,
) -> MeasureResult:
    """Measure one candidate; a failed build stays what it is."""
    if isinstance(build_result, MeasureResult):
        return build_result
    options = RunOptions(
        seconds=timeout,
        number=number,
        repeat=repeat,
        min_repeat_ms=min_repeat_ms,
        flush=enable_cpu_cache_flush,
        cooldown=cooldown_interval,
        device="cuda" if "cuda" in measure_input.target.keys else "cpu",
    )
    if module_loader is not None or build_result.built is None:
        return _run_loaded(measure_input, build_result, options, ref_input, module_loader)
    (measured,) = run_all([build_result.built], _arguments(build_result.arg_info, ref_input), options)
    return _result(measured)


def _as_array(value: Any) -> Any:
    return value if hasattr(value, "numpy") or isinstance(value, np.ndarray) else np.asarray(value)


def _result(measured: Measured) -> MeasureResult:
    if measured.is_good:
        return MeasureResult(measured.costs, MeasureErrorNo.NO_ERROR, measured.seconds, measured.timestamp)
    error = TilewrightError(measured.message)
    kind = MeasureErrorNo(int(measured.error_kind))
    return MeasureResult((error,), kind, measured.seconds, measured.timestamp)


def _run_loaded(
    measure_input: MeasureInput,
    build_result: BuildResult,
    options: RunOptions,
    ref_input: list[Any] | None,
    module_loader: Callable[..., Any] | None,
    remote_kwargs: Mapping[str, Any] | None = None,
) -> MeasureResult:
    """Measure a library in this process or on a remote device, loaded by the user's loader."""
    starts = time.monotonic()
    loader = module_loader or default_module_loader()
    try:
        with loader(dict(remote_kwargs or {}), build_result) as (remote, module):
            where = remote.device(str(measure_input.target.kind.name), 0)
            given = ref_input or [
                np.random.default_rng(0).uniform(size=shape).astype(dtype)
                for shape, dtype in build_result.arg_info
            ]
            arguments = [ndarray.array(_as_array(value), where) for value in given]
            limits = (options.number, options.repeat, options.min_repeat_ms, _FLUSH if options.flush else "")
            timer = module.time_evaluator(module.entry_name, where, *limits)
            costs = tuple(timer(*arguments).results)
            time.sleep(options.cooldown)
    except (TilewrightError, OSError) as problem:
        return MeasureResult(
            (problem,), MeasureErrorNo.RUNTIME_DEVICE, time.monotonic() - starts, time.time()
        )
    return MeasureResult(costs, MeasureErrorNo.NO_ERROR, time.monotonic() - starts, time.time())


def run_through_rpc(
    measure_input: MeasureInput,
    build_result: Any,
    number: int,
    repeat: int,
    min_repeat_ms: int,
    cooldown_interval: float,
    remote_kwargs: dict[str, Any],
    ref_input: list[Any] | None,
    enable_cpu_cache_flush: bool = False,
    module_loader: Callable[..., Any] | None = None,
) -> MeasureResult:
    """Measure one candidate on a remote device, which ``remote_kwargs`` describes; without any, on this machine."""
    if remote_kwargs:
        if isinstance(build_result, MeasureResult):
            return build_result
        options = RunOptions(
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            flush=enable_cpu_cache_flush,
            cooldown=cooldown_interval,
        )
        return _run_loaded(measure_input, build_result, options, ref_input, module_loader, remote_kwargs)
    return run_locally(
        measure_input,
        build_result,
        number,
        repeat,
        min_repeat_ms,
        cooldown_interval,
        ref_input,
        enable_cpu_cache_flush,
        module_loader,
    )


class _ThisMachine:
    """What a loader gives as the remote machine."""

    @staticmethod
    def device(name: str, number: int = 0) -> Any:
        """A device of this machine."""
        return device_of(name, number)


class DefaultModuleLoader:
    """Loads the library of a build in this process, or on the remote device that it is told."""

    def __init__(self, pre_load_function: Callable[..., Any] | None = None) -> None:
        self.pre_load_function = pre_load_function

    @contextmanager
    def __call__(self, remote_kwargs: dict[str, Any], build_result: BuildResult) -> Iterator[tuple[Any, Any]]:
        """The machine and the module, for ``with``."""
        if not remote_kwargs:
            here = _ThisMachine()
            if self.pre_load_function is not None:
                self.pre_load_function(here, build_result)
            yield here, load_module(str(build_result.filename))
            return
        with request_remote(**remote_kwargs) as remote:
            if self.pre_load_function is not None:
                self.pre_load_function(remote, build_result)
            path = Path(str(build_result.filename))
            remote.upload(path)
            yield remote, remote.load_module(path.name)


def default_module_loader(pre_load_function: Callable[..., Any] | None = None) -> DefaultModuleLoader:
    """A loader that calls a function before it loads."""
    return DefaultModuleLoader(pre_load_function)


def measure_option(builder: Any, runner: Any) -> dict[str, Any]:
    """How candidates are built and measured: a builder (or ``"local"``) and a runner (or ``"local"``)."""
    if isinstance(builder, str):
        if builder != "local":
            raise TilewrightError(f"unknown builder {builder!r}: it is 'local', or a Builder")
        builder = LocalBuilder()
    if isinstance(runner, str):
        if runner != "local":
            raise TilewrightError(f"unknown runner {runner!r}: it is 'local', or a Runner")
        runner = LocalRunner()
    if not isinstance(builder, Builder) or not isinstance(runner, Runner):
        raise TilewrightError(
            f"measure_option takes a Builder and a Runner, not {type(builder).__name__} and {type(runner).__name__}"
        )
    return {"builder": builder, "runner": runner}


def create_measure_batch(
    task: Any, option: dict[str, Any]
) -> Callable[[Sequence[MeasureInput]], list[MeasureResult]]:
    """A function that builds and measures inputs."""
    builder, runner = option["builder"], option["runner"]
    runner.set_task(task)
    builder.set_task(task, runner.get_build_kwargs())

    def measure_batch(measure_inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        built = builder.build(measure_inputs)
        results: list[MeasureResult] = runner.run(measure_inputs, built)
        return results

    measure_batch.n_parallel = builder.n_parallel  # type: ignore[attr-defined]
    return measure_batch


def request_remote(
    device_key: str, host: str | None = None, port: int | None = None, priority: int = 1, timeout: int = 60
) -> Any:
    """A session on a device of a tracker, which ends after ``timeout`` seconds; the tracker is by default that of
    ``TVM_TRACKER_HOST`` and ``TVM_TRACKER_PORT``."""
    named_host, named_port = tracker_address()
    where, number = host or named_host, port or named_port
    if not where or not number:
        raise RPCError(
            "no tracker is named: give host and port, or set TVM_TRACKER_HOST and TVM_TRACKER_PORT"
        )
    with connect_tracker(where, number) as tracker:
        return tracker.request(device_key, priority, session_timeout=int(timeout))


def check_remote(
    target: Target,
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 100,
    timeout: int = 10,
) -> bool:
    """True if a tracker lends a device within ``timeout`` seconds, and the device can run code for a target."""
    named_host, named_port = tracker_address()
    where, number = host or named_host, port or named_port
    if not where or not number:
        return False
    try:
        kind = "cuda" if "cuda" in Target(target).keys else "cpu"
        with (
            connect_tracker(where, number) as tracker,
            tracker.request(device_key, priority, session_timeout=60, wait_seconds=int(timeout)) as session,
        ):
            return bool(session.device(kind).exist)
    except RPCError as problem:
        logger.warning("the device %r cannot be used: %s", device_key, problem.message)
        return False


def set_cuda_target_arch(arch: str | Sequence[str]) -> None:
    """TVM's way to name the architecture of a GPU. Here it is an option of the target."""
    logger.warning("set_cuda_target_arch has no effect: use a target such as 'cuda -arch=%s'", arch)
