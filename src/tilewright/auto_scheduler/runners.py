"""Measuring built programs on this machine or another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.auto_scheduler.measure_types import BuildResult, MeasureErrorNo, MeasureInput, MeasureResult
from tilewright.auto_scheduler.task_inputs import prepare_runner_args
from tilewright.rpc.tracker_session import connect_tracker
from tilewright.search.measure import Argument, Built, Measured, RunOptions, run_all
from tilewright.search.remote import Devices, run_remotely
from tilewright.support.errors import RPCError, TilewrightError
from tilewright.te.operation import PlaceholderOp

_SECONDS_FOR_A_DEVICE = 20


class ProgramRunner:
    """Measures programs."""

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult], verbose: int = 1
    ) -> list[MeasureResult]:
        """The times of each program."""
        raise NotImplementedError(
            f"{type(self).__name__} has no method run(measure_inputs, build_results, verbose)"
        )


@dataclass(frozen=True)
class Comparison:
    """A program and another one measured in turns."""

    first: Measured
    other_costs: tuple[float, ...]


class LocalRunner(ProgramRunner):
    """Measures programs on this machine, in a process of their own: each ``repeat`` times the mean of ``number`` calls,
    or of as many as last ``min_repeat_ms``, all within ``timeout`` seconds."""

    def __init__(
        self,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
    ) -> None:
        if enable_cpu_cache_flush:
            number, min_repeat_ms = 1, 0
        self.options = RunOptions(
            seconds=timeout,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            flush=enable_cpu_cache_flush,
            cooldown=cooldown_interval,
        )

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult], verbose: int = 1
    ) -> list[MeasureResult]:
        """The times of each program."""
        return self.run_below(measure_inputs, build_results, float("inf"))

    def run_below(
        self,
        measure_inputs: Sequence[MeasureInput],
        build_results: Sequence[BuildResult],
        give_up_above: float,
        on_done: Callable[[int, MeasureResult], None] | None = None,
    ) -> list[MeasureResult]:
        """The times of each program; one whose first call takes longer than a limit is not measured well. ``on_done``
        is told of each as it ends."""
        found: dict[int, MeasureResult] = {}

        def keep(number: int, result: MeasureResult) -> None:
            found[number] = result
            if on_done is not None:
                on_done(number, result)

        failed: dict[int, MeasureResult] = {}
        groups = _by_arguments(measure_inputs, build_results, failed)
        for number, result in failed.items():
            keep(number, result)
        for numbers, arguments in groups.values():
            options = replace(self._options_for(measure_inputs[numbers[0]].task), give_up_above=give_up_above)
            run_all(
                [build_results[number].built for number in numbers],
                arguments,
                options,
                on_done=lambda place, one, numbers=numbers: keep(numbers[place], as_result(one)),  # type: ignore[misc]
            )
        return [found[number] for number in range(len(measure_inputs))]

    def compare(self, task: Any, built: Built, other: Built, arguments: Sequence[Argument]) -> Comparison:
        """Measure a program in turns with another one that takes the same arguments, and compare their results."""
        outputs = count_outputs(task)
        options = replace(self._options_for(task), outputs=outputs)
        (measured,) = run_all([built], arguments, options, other)
        return Comparison(measured, measured.incumbent_costs)

    def run_untuned(self, task: Any, built: Built, arguments: Sequence[Argument]) -> Measured:
        """The times of a task's constructed schedule."""
        (measured,) = run_all([built], arguments, self._options_for(task))
        return measured

    def _options_for(self, task: Any) -> RunOptions:
        return options_for(self.options, task)


def options_for(options: RunOptions, task: Any) -> RunOptions:
    """The options with the kind of device that a task is for."""
    kind = "cuda" if task.target.kind.name in ("cuda", "nvptx") else "cpu"
    return replace(options, device=kind)


def _by_arguments(
    measure_inputs: Sequence[MeasureInput],
    build_results: Sequence[BuildResult],
    failed: dict[int, MeasureResult],
) -> dict[Any, tuple[list[int], tuple[Argument, ...]]]:
    """The places of the programs that take the same arguments, with these; programs with the same ones share a process
    and its arrays. What was not built goes to ``failed``."""
    groups: dict[Any, tuple[list[int], tuple[Argument, ...]]] = {}
    for number, (measured, built) in enumerate(zip(measure_inputs, build_results, strict=True)):
        if built.error_no != MeasureErrorNo.NO_ERROR:
            failed[number] = MeasureResult((), built.error_no, built.error_msg, built.time_cost, time.time())
            continue
        shapes = tuple((tuple(map(int, one.shape)), one.dtype) for one in built.args)
        key = (measured.task.workload_key, str(measured.task.target), shapes)
        if key not in groups:
            groups[key] = ([], arguments_for(measured, built))
        groups[key][0].append(number)
    return groups


def count_outputs(task: Any) -> int:
    """How many of a program's last arguments are results, which can be compared."""
    count = 0
    for tensor in reversed(task.compute_dag.tensors):
        if isinstance(tensor.op, PlaceholderOp):
            break
        count += 1
    return count


def untuned_arguments(task: Any) -> tuple[Argument, ...]:
    """What a task's constructed schedule is called with."""
    tensors = task.compute_dag.tensors
    plain = MeasureInput(task, task.compute_dag.init_state)
    return arguments_for(plain, BuildResult(None, tensors, 0, None, 0.0))


def arguments_for(measured: MeasureInput, built: BuildResult) -> tuple[Argument, ...]:
    """What a program is called with: a task's given arrays, random numbers otherwise."""
    values = prepare_runner_args(measured, built)
    return tuple(
        Argument.of(tensor if value is None else value)
        for tensor, value in zip(built.args, values, strict=True)
    )


def as_result(measured: Measured) -> MeasureResult:
    """What is recorded of a measurement."""
    kind = MeasureErrorNo(int(measured.error_kind))
    return MeasureResult(measured.costs, kind, measured.message, measured.seconds, measured.timestamp)


class RPCRunner(ProgramRunner):
    """Measures programs on the devices with the label ``key`` of a tracker, ``n_parallel`` of them at once; who has a
    larger ``priority`` comes first. A program that crashes or hangs ends its session, and nothing else."""

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
    ) -> None:
        if enable_cpu_cache_flush:
            number, min_repeat_ms = 1, 0
        self.key, self.host, self.port = key, host, int(port)
        self.devices = Devices(key, host, int(port), priority, n_parallel)
        self.options = RunOptions(
            seconds=timeout,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            flush=enable_cpu_cache_flush,
            cooldown=cooldown_interval,
        )
        try:
            with (
                connect_tracker(host, int(port)) as tracker,
                tracker.request(key, priority, session_timeout=60, wait_seconds=_SECONDS_FOR_A_DEVICE),
            ):
                pass
        except RPCError as problem:
            raise RPCError(
                f"cannot get the device {key!r} from the tracker {host}:{port}: {problem.message}"
            ) from problem

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult], verbose: int = 1
    ) -> list[MeasureResult]:
        """The times of each program."""
        found: dict[int, MeasureResult] = {}
        for numbers, arguments in _by_arguments(measure_inputs, build_results, found).values():
            options = options_for(self.options, measure_inputs[numbers[0]].task)
            measured = run_remotely(
                [build_results[number].built for number in numbers], arguments, options, self.devices
            )
            found.update(zip(numbers, map(as_result, measured), strict=True))
        return [found[number] for number in range(len(measure_inputs))]


class LocalRPCMeasureContext:
    """Measures on this machine in a process of its own. TVM starts a tracker and a server for that; here every local
    runner does it, so that no port is opened."""

    def __init__(
        self,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
    ) -> None:
        if n_parallel < 1 or priority < 0:
            raise TilewrightError(
                f"n_parallel is {n_parallel}, priority {priority}: at least one and zero are needed"
            )
        self.runner = LocalRunner(
            timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush
        )
