"""The limits of this machine: arithmetic operations per second for each element type, and bytes per second copied and
read.

The measuring loops are written in LLVM IR, independently of the compiler that is compared with them: independent
multiply-adds in registers (``peaks``), and loops that copy memory (with ordinary and with non-temporal stores; the
faster counts) and sum it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewright.codegen.llvm.measuring import calls_per_second, compile_function
from tilewright.codegen.llvm.peaks import peak_operations, rate_type
from tilewright.target.cpu import describe_cpu

_MEGABYTE = 1024 * 1024
_PEAK_REPEATS, _PEAK_STEPS = 50, 50_000


@dataclass(frozen=True)
class Bandwidth:
    """Bytes a second that all threads together read where ``capacity_bytes`` hold the data; None is main memory."""

    level: str
    capacity_bytes: int | None
    bytes_per_second: float


@dataclass(frozen=True)
class MachineLimits:
    """The peak rates of this machine with a number of threads: float32 operations per second, bytes per second from
    each level of memory, the smallest first, and the operations per second of other element types by their name in
    ``peaks.RATE_TYPES``."""

    processor: str
    threads: int
    flops_per_second: float
    bandwidths: tuple[Bandwidth, ...]
    peaks: Mapping[str, float] = field(default_factory=dict)
    unit: str = "thread"
    """What ``threads`` counts: ``multiprocessor`` for a GPU, whose peak rates are computed from its clock."""

    def best_of(self, other: MachineLimits) -> MachineLimits:
        """The better figure of two measurements of the same machine: other programs only ever take away."""
        levels = {one.level: one for one in self.bandwidths}
        for one in other.bandwidths:
            mine = levels.get(one.level)
            if mine is None or one.bytes_per_second > mine.bytes_per_second:
                levels[one.level] = one
        best = max(self.flops_per_second, other.flops_per_second)
        peaks = {**self.peaks}
        for dtype, rate in other.peaks.items():
            peaks[dtype] = max(rate, peaks.get(dtype, 0.0))
        return replace(self, flops_per_second=best, bandwidths=_useful(list(levels.values())), peaks=peaks)

    def peak_for(self, dtype: str) -> float:
        """Operations a second in an element type; those of float32 where it was not measured."""
        return self.peaks.get(rate_type(dtype), self.flops_per_second)

    def bandwidth_for(self, size_bytes: float) -> Bandwidth:
        """The fastest level that holds this much."""
        for one in self.bandwidths[:-1]:
            if one.capacity_bytes is not None and size_bytes <= one.capacity_bytes:
                return one
        return self.bandwidths[-1]

    def least_move_seconds(self, size_bytes: float) -> float:
        """The least time in which this much can be read: each level may still hold as much of it as fits there, and
        only the rest comes from the next."""
        total, below = 0.0, 0.0
        for one in self.bandwidths:
            upto = size_bytes if one.capacity_bytes is None else min(size_bytes, one.capacity_bytes)
            total += max(upto - below, 0.0) / one.bytes_per_second
            below = max(below, upto)
        return total + (size_bytes - below) / self.bandwidths[-1].bytes_per_second

    def least_seconds(self, flops: float, size_bytes: float, dtype: str = "float32") -> float:
        """No program that does this many operations on this much data takes less time."""
        return max(flops / self.peak_for(dtype), self.least_move_seconds(size_bytes))


def machine_limits(threads: int, dtypes: Iterable[str] = ()) -> MachineLimits:
    """Measure the limits with this many threads, and the peak of these element types: about a second."""
    cpu = describe_cpu("llvm")
    levels = [
        (name, capacity)
        for name, capacity in (
            ("L1", cpu.l1d_bytes * threads),
            ("L2", cpu.l2_bytes * threads),
            ("L3", cpu.l3_bytes),
        )
        if capacity
    ]
    found: list[Bandwidth] = []
    for name, capacity in levels:
        # Half of the level: the rest is for what else runs. A large one is not read whole, which would take long.
        found.append(Bandwidth(name, capacity, _read_speed(min(capacity // 2, 32 * _MEGABYTE), threads)))
    # Two arrays, larger together than what one machine has of a cache that many share.
    beyond = max(64 * _MEGABYTE, min(2 * cpu.l3_bytes, 96 * _MEGABYTE))
    memory = Bandwidth("memory", None, max(bandwidth(beyond // _MEGABYTE, threads, repeats=3).values()))
    # Many short measurements: one of them falls between what other programs do.
    peak = peak_flops(_PEAK_REPEATS, threads, _PEAK_STEPS)
    others = {rate_type(dtype) for dtype in dtypes} - {"float32"}
    peaks = {dtype: peak_operations(dtype, _PEAK_REPEATS, threads, _PEAK_STEPS) for dtype in sorted(others)}
    return MachineLimits(cpu.name, threads, peak, _useful([*found, memory]), peaks)


def peak_flops(repeats: int = 5, threads: int = 1, steps: int = 4_000_000) -> float:
    """The float32 operations a second of all threads."""
    return peak_operations("float32", repeats, threads, steps)


def _useful(levels: Sequence[Bandwidth]) -> tuple[Bandwidth, ...]:
    """The levels in order of size, without those that are no faster than a larger one: a cache that is shared with
    other machines says nothing."""
    kept: list[Bandwidth] = []
    for one in sorted(levels, key=lambda one: -(one.capacity_bytes or float("inf"))):
        if not kept or one.bytes_per_second > kept[-1].bytes_per_second:
            kept.append(one)
    return tuple(reversed(kept))


def _read_speed(size_bytes: int, threads: int, repeats: int = 15) -> float:
    """Bytes a second read from an array of this size, again and again."""
    count = max(size_bytes // 4 // (128 * threads), 1) * 128 * threads
    rounds = max(1, 32 * _MEGABYTE // (4 * count))
    sums = np.zeros((threads, 16), "float32")
    calls = _over_threads(_read_kernel(), _aligned(count), sums, count, threads, rounds)
    return 4 * count * rounds * calls_per_second(calls, repeats)


def bandwidth(megabytes: int, threads: int, repeats: int = 7) -> dict[str, float]:
    """Bytes a second: ``copy`` counts bytes read and written, ``read`` bytes read, over arrays of this size."""
    count = megabytes * 1024 * 1024 // 4 // (64 * threads) * 64 * threads
    source, target = _aligned(count), _aligned(count)
    found: dict[str, float] = {}
    for name, non_temporal in (("copy", False), ("copy", True)):
        calls = _over_threads(_copy_kernel(non_temporal), source, target, count, threads)
        found[name] = max(found.get(name, 0.0), 2 * 4 * count * calls_per_second(calls, repeats))
    calls = _over_threads(_read_kernel(), source, target, count, threads, 1)
    found["read"] = 4 * count * calls_per_second(calls, repeats)
    return found


def _aligned(count: int) -> Any:
    """An array of ones whose memory starts at a cache line."""
    room = np.ones(count + 16, "float32")
    start = -room.ctypes.data % 64 // 4
    return room[start : start + count]


def _over_threads(
    kernel: Any, source: Any, target: Any, count: int, threads: int, *more: int
) -> list[Callable[[], object]]:
    """The calls of a kernel over equal parts, one for each thread."""
    part, step = count // threads, target.nbytes // threads
    return [
        lambda index=index: kernel(  # type: ignore[misc]
            source.ctypes.data + 4 * part * index, target.ctypes.data + step * index, part, *more
        )
        for index in range(threads)
    ]


_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def _copy_kernel(non_temporal: bool) -> Any:
    metadata = ", !nontemporal !0" if non_temporal else ""
    text = f"""
define void @copy(ptr noalias %from, ptr noalias %to, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %from, i64 %i
  %q = getelementptr float, ptr %to, i64 %i
  %v = load <16 x float>, ptr %p, align 64
  store <16 x float> %v, ptr %q, align 64{metadata}
  %next = add i64 %i, 16
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
!0 = !{{i32 1}}
"""
    return _KERNEL(compile_function(text, "copy"))


def _read_kernel() -> Any:
    """Sums memory, a number of times; the sums continue from round to round, so that no round can be optimised away."""
    chains = 8
    loads = "\n".join(
        f"  %p{index} = getelementptr float, ptr %from, i64 %i{index}\n"
        f"  %v{index} = load <16 x float>, ptr %p{index}, align 4\n"
        f"  %n{index} = fadd <16 x float> %a{index}, %v{index}"
        for index in range(chains)
    )
    offsets = "\n".join(f"  %i{index} = add i64 %i, {16 * index}" for index in range(chains))
    outer = "\n".join(
        f"  %o{index} = phi <16 x float> [ zeroinitializer, %entry ], [ %n{index}, %again ]"
        for index in range(chains)
    )
    phis = "\n".join(
        f"  %a{index} = phi <16 x float> [ %o{index}, %round ], [ %n{index}, %loop ]"
        for index in range(chains)
    )
    sums = "\n".join(
        f"  %s{index} = fadd <16 x float> {'%n0' if index == 1 else f'%s{index - 1}'}, %n{index}"
        for index in range(1, chains)
    )
    text = f"""
define void @read(ptr noalias %from, ptr noalias %to, i64 %count, i64 %rounds) {{
entry:
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %r_next, %again ]
{outer}
  br label %loop
loop:
  %i = phi i64 [ 0, %round ], [ %next, %loop ]
{phis}
{offsets}
{loads}
  %next = add i64 %i, {16 * chains}
  %last = add i64 %next, {16 * chains - 1}
  %more = icmp ult i64 %last, %count
  br i1 %more, label %loop, label %again
again:
  %r_next = add i64 %r, 1
  %r_more = icmp ult i64 %r_next, %rounds
  br i1 %r_more, label %round, label %done
done:
{sums}
  store <16 x float> %s{chains - 1}, ptr %to, align 4
  ret void
}}
"""
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return kernel(compile_function(text, "read"))
