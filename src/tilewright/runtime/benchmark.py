"""Timing of packed functions. The loop is in C and returns several times a second: only the function is
measured, and a measurement can be interrupted."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure, take_failure
from tilewright.runtime.library import LIBRARY
from tilewright.runtime.ndarray import HOST
from tilewright.runtime.packed_func import PackedFunc, pack_arguments
from tilewright.runtime.registry import get_global_func
from tilewright.support import html

_UNITS = ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms"))


class BenchmarkResult:
    """Run times in seconds: ``results`` holds the mean of each repeat, the other fields summarise them."""

    def __init__(self, results: Sequence[float]) -> None:
        self.results = tuple(float(value) for value in results)
        self.mean = float(np.mean(self.results))
        self.std = float(np.std(self.results))
        self.median = float(np.median(self.results))
        self.min = min(self.results)
        self.max = max(self.results)

    def __repr__(self) -> str:
        return (
            f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, max={self.max}, std={self.std}, "
            f"results={self.results})"
        )

    def _repr_html_(self) -> str:
        """The times for a notebook."""
        scale, unit = self._unit()
        names = ("mean", "median", "max", "min", "std")
        row = [f"{getattr(self, name) * scale:.4g} {unit}" for name in names]
        return html.fragment("Times", html.table(names, [row]), subtitle=f"of {len(self.results)} repeats")

    def _unit(self) -> tuple[float, str]:
        """The unit that suits the times: how many there are in a second, and its name."""
        return next(((scale, unit) for limit, scale, unit in _UNITS if self.median < limit), (1.0, "s"))

    def __str__(self) -> str:
        scale, unit = self._unit()
        names = ("mean", "median", "max", "min", "std")
        head = "".join(f"{f'{name} ({unit})':^14}" for name in names)
        row = "".join(f"{getattr(self, name) * scale:^14.4f}" for name in names)
        return f"Execution time summary:\n{head}\n{row}\n"


_MOST = (1 << 31) - 1
_MOST_CALLS = 1_000_000_000
_SECONDS_OF_A_PIECE = 0.05
_MOST_NANOSECONDS = 300_000_000


def require_counts(number: int, repeat: int, min_repeat_ms: int) -> None:
    """Raises an error for numbers of calls below 1, or too large for C."""
    if number < 1 or repeat < 1:
        raise failure("ValueError", f"number and repeat must be at least 1, not {number} and {repeat}")
    for name, value in (("number", number), ("repeat", repeat), ("min_repeat_ms", min_repeat_ms)):
        if value > _MOST:
            raise failure("ValueError", f"{name} is {value}; {_MOST} is the most")


def time_evaluator(
    function: PackedFunc,
    number: int = 10,
    repeat: int = 1,
    min_repeat_ms: int = 0,
    f_preproc: str = "",
    device: Device = HOST,
    cache_flush_bytes: int = 0,
) -> Callable[..., BenchmarkResult]:
    """A function that runs ``function`` on its arguments ``repeat`` times ``number`` times and reports the times.

    Each repeat's number of calls is raised until it lasts ``min_repeat_ms``. The global function named ``f_preproc`` is
    called with the same arguments before each repeat, and ``cache_flush_bytes`` are written, which empties the caches.
    What a device does is measured by the device's own events where it has them.
    """
    require_counts(number, repeat, min_repeat_ms)
    prepare = get_global_func(f_preproc) if f_preproc else None
    elsewhere = np.zeros(cache_flush_bytes, "uint8")

    def evaluate(*args: Any) -> BenchmarkResult:
        packed, kept = pack_arguments(args)
        timer = _Timer(function, packed, len(args), device)
        count, seconds = number, []
        for _ in range(repeat):
            if prepare is not None:
                prepare(*args)
            elsewhere.fill(1)
            spent = timer.time(count)
            while spent * 1e3 < min_repeat_ms and count < _MOST_CALLS:
                # Aim at the wanted time, and grow by at least the golden ratio, so that few attempts are needed.
                wanted = min_repeat_ms * 1e-3 * count / max(spent, 1e-9)
                count = min(_MOST_CALLS, int(max(wanted, count * 1.618)) + 1)
                spent = timer.time(count)
            seconds.append(spent / count)
        kept.clear()
        return BenchmarkResult(seconds)

    return evaluate


def in_groups(
    measure: Callable[[int], BenchmarkResult],
    repeat: int,
    cooldown_interval_ms: int,
    repeats_to_cooldown: int,
    limit_zero_time_iterations: int,
) -> BenchmarkResult:
    """``measure`` is given numbers of repeats; after every ``repeats_to_cooldown`` of them the device rests.

    TVM gives up after ``limit_zero_time_iterations`` calls that take no time by its clock; this clock counts
    nanoseconds and sees all of them.
    """
    if min(cooldown_interval_ms, limit_zero_time_iterations) < 0 or repeats_to_cooldown < 1:
        raise failure(
            "ValueError",
            f"cooldown_interval_ms={cooldown_interval_ms}, repeats_to_cooldown={repeats_to_cooldown} and "
            f"limit_zero_time_iterations={limit_zero_time_iterations} must not be negative, nor the second zero",
        )
    if not cooldown_interval_ms:
        return measure(repeat)
    seconds: list[float] = []
    while len(seconds) < repeat:
        seconds += measure(min(repeats_to_cooldown, repeat - len(seconds))).results
        time.sleep(cooldown_interval_ms * 1e-3)
    return BenchmarkResult(seconds)


def evaluator_in_groups(
    evaluator_of: Callable[[int], Callable[..., BenchmarkResult]],
    repeat: int,
    cooldown_interval_ms: int,
    repeats_to_cooldown: int,
    limit_zero_time_iterations: int,
) -> Callable[..., BenchmarkResult]:
    """An evaluator that measures ``in_groups``, each by the evaluator for so many repeats."""

    def evaluate(*args: Any) -> BenchmarkResult:
        return in_groups(
            lambda repeats: evaluator_of(repeats)(*args),
            repeat,
            cooldown_interval_ms,
            repeats_to_cooldown,
            limit_zero_time_iterations,
        )

    return evaluate


class _Timer:
    """Calls a function many times, in pieces, between which Python handles signals such as Ctrl-C."""

    def __init__(self, function: PackedFunc, packed: bytes, num_args: int, device: Device) -> None:
        self.function, self.packed, self.num_args, self.device = function, packed, num_args, device
        self.piece = ctypes.c_int64(1)
        # Once without the clock, which also tells how many calls make a piece.
        first = self.time(1)
        self.piece.value = min(_MOST_CALLS, max(1, int(_SECONDS_OF_A_PIECE / max(first, 1e-9))))

    def time(self, number: int) -> float:
        """The seconds of a number of calls; excludes what Python does between pieces."""
        done, nanoseconds = ctypes.c_int64(), ctypes.c_int64()
        total = 0
        while number > 0:
            status = LIBRARY.tilewright_time_some(
                self.device.described,
                self.function.address,
                self.function.self_address,
                self.packed,
                self.num_args,
                number,
                _MOST_NANOSECONDS,
                ctypes.byref(self.piece),
                ctypes.byref(done),
                ctypes.byref(nanoseconds),
            )
            if status:
                raise take_failure()
            number -= done.value
            total += nanoseconds.value
        return total * 1e-9
