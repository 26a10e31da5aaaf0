"""Builds candidates in worker processes of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilewright.autotvm.measure.measure import Builder, MeasureErrorNo, MeasureInput, MeasureResult
from tilewright.compile import build, get_binds, lower
from tilewright.contrib.utils import TempDirectory
from tilewright.ir.module import IRModule
from tilewright.search.measure import Argument, BuildJob, Built, arguments_of, build_all
from tilewright.support.errors import TilewrightError

_KNOWN = ("default", "ndk", "stackvm")


class BuildResult(NamedTuple):
    """A built candidate: its code in memory (``built``) or in a file, and the shapes and types of its arguments.
    ``error`` is why there is none."""

    filename: str | None
    arg_info: tuple[tuple[tuple[int, ...], str], ...]
    error: Exception | None
    time_cost: float
    built: Built | None = None


class LocalBuilder(Builder):
    """Builds in worker processes, each program within ``timeout`` seconds. A ``build_func`` of your own gets the name
    of a file and object files, as ``export_library`` gives them to its ``fcompile``; programs are then libraries."""

    def __init__(
        self,
        timeout: float = 10,
        n_parallel: int | None = None,
        build_kwargs: dict[str, Any] | None = None,
        build_func: str | Callable[..., Any] = "default",
        do_fork: bool = False,
        runtime: Any = None,
    ) -> None:
        super().__init__(timeout, n_parallel, build_kwargs)
        if isinstance(build_func, str) and build_func not in _KNOWN:
            raise TilewrightError(f"unknown build_func {build_func!r}: it is 'default', or a function")
        self.build_func = build_func
        self._folder: TempDirectory | None = None

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        """Build each input; what cannot be instantiated is a failed result at once."""
        results: dict[int, Any] = {}
        jobs: dict[int, BuildJob] = {}
        arguments: dict[int, tuple[Argument, ...]] = {}
        for number, measured in enumerate(measure_inputs):
            starts = time.monotonic()
            try:
                schedule, tensors = _instantiated(measured)
                arguments[number] = arguments_of(tensors)
                if callable(self.build_func):
                    results[number] = self._library(measured, schedule, tensors, arguments[number], starts)
                else:
                    jobs[number] = _job(measured, schedule, tensors)
            except Exception as problem:  # noqa: BLE001 - whatever a template raises is this candidate's failure
                results[number] = _failed(problem, time.monotonic() - starts)
        built = build_all(list(jobs.values()), self.timeout, self.n_parallel)
        for number, one in zip(jobs, built, strict=True):
            results[number] = _result(one, arguments[number])
        return [results[number] for number in range(len(measure_inputs))]

    def _library(
        self,
        measured: MeasureInput,
        schedule: Any,
        tensors: list[Any],
        given: tuple[Argument, ...],
        starts: float,
    ) -> BuildResult:
        """The program as a library that the user's function makes."""
        if self._folder is None:
            self._folder = TempDirectory()
        with measured.target:
            module = build(schedule, tensors, target=measured.target)
        suffix = getattr(self.build_func, "output_format", "so")
        path = self._folder / f"candidate_{time.monotonic_ns()}.{suffix}"
        assert callable(self.build_func)
        module.export_library(str(path), fcompile=self.build_func)
        return BuildResult(str(path), _described(given), None, time.monotonic() - starts)


def _instantiated(measured: MeasureInput) -> tuple[Any, list[Any]]:
    with measured.target:
        made: tuple[Any, list[Any]] = measured.task.instantiate(measured.config)
        return made


def _job(measured: MeasureInput, schedule: Any, tensors: list[Any]) -> BuildJob:
    def loops() -> IRModule:
        """Runs in a worker that has inherited the schedule."""
        binds, _ = get_binds(tensors, compact=True)
        with measured.target:
            return lower(schedule, tensors, "main", binds)

    return BuildJob(loops, measured.target, getattr(measured.target, "host", None))


def _described(given: Sequence[Argument]) -> tuple[tuple[tuple[int, ...], str], ...]:
    return tuple((argument.shape, argument.dtype) for argument in given)


def _result(built: Built, given: Sequence[Argument]) -> Any:
    if built.is_good:
        return BuildResult(None, _described(given), None, built.seconds, built)
    error = TilewrightError(built.message)
    return MeasureResult((error,), MeasureErrorNo(int(built.error_kind)), built.seconds, time.time())


def _failed(problem: Exception, seconds: float) -> MeasureResult:
    return MeasureResult((problem,), MeasureErrorNo.INSTANTIATION_ERROR, seconds, time.time())
