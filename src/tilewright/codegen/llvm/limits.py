"""The limits of this machine: multiply-adds per second, and bytes per second copied and read.

The measuring loops are written in LLVM IR, independently of the compiler that is compared with them: independent
multiply-adds in registers, and loops that copy memory (with ordinary and with non-temporal stores; the faster counts)
and sum it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.codegen.llvm.machine import load_llvm
from tilewright.target.cpu import describe_cpu, llvm_machine_options
from tilewright.target.target import Target

_KEPT: list[Any] = []
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Bandwidth:
    """Bytes a second that all threads together read where ``capacity_bytes`` hold the data; None is main memory."""

    level: str
    capacity_bytes: int | None
    bytes_per_second: float


@dataclass(frozen=True)
class MachineLimits:
    """The peak rates of this machine with a number of threads: float32 operations per second, and bytes per second from
    each level of memory, the smallest first."""

    processor: str
    threads: int
    flops_per_second: float
    bandwidths: tuple[Bandwidth, ...]

    def best_of(self, other: MachineLimits) -> MachineLimits:
        """The better figure of two measurements of the same machine: other programs only ever take away."""
        levels = {one.level: one for one in self.bandwidths}
        for one in other.bandwidths:
            mine = levels.get(one.level)
            if mine is None or one.bytes_per_second > mine.bytes_per_second:
                levels[one.level] = one
        best = max(self.flops_per_second, other.flops_per_second)
        return MachineLimits(self.processor, self.threads, best, _useful(list(levels.values())))

    def bandwidth_for(self, size_bytes: float) -> Bandwidth:
        """The fastest level that holds this much."""
        for one in self.bandwidths[:-1]:
            if one.capacity_bytes is not None and size_bytes <= one.capacity_bytes:
                return one
        return self.bandwidths[-1]

    def least_seconds(self, flops: float, size_bytes: float) -> float:
        """No program that does this many operations on this much data takes less time."""
        return max(
            flops / self.flops_per_second, size_bytes / self.bandwidth_for(size_bytes).bytes_per_second
        )


def machine_limits(threads: int) -> MachineLimits:
    """Measure the limits with this many threads: about a second."""
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
    peak = peak_flops(repeats=5, threads=threads, steps=1_000_000)
    return MachineLimits(cpu.name, threads, peak, _useful([*found, memory]))


def _useful(levels: Sequence[Bandwidth]) -> tuple[Bandwidth, ...]:
    """The levels in order of size, without those that are no faster than a larger one: a cache that is shared with
    other machines says nothing."""
    kept: list[Bandwidth] = []
    for one in sorted(levels, key=lambda one: -(one.capacity_bytes or float("inf"))):
        if not kept or one.bytes_per_second > kept[-1].bytes_per_second:
            kept.append(one)
    return tuple(reversed(kept))


def _read_speed(size_bytes: int, threads: int, repeats: int = 5) -> float:
    """Bytes a second read from an array of this size, again and again."""
    count = max(size_bytes // 4 // (128 * threads), 1) * 128 * threads
    rounds = max(1, 64 * _MEGABYTE // (4 * count))
    run = _over_threads(
        _read_kernel(), _aligned(count), np.zeros((threads, 16), "float32"), count, threads, rounds
    )
    return 4 * count * rounds / min(_seconds(run) for _ in range(repeats))


def _compile(text: str, name: str) -> int:
    """The address of a function given as LLVM IR, optimised for this machine."""
    llvm = load_llvm()
    triple, cpu, features = llvm_machine_options(Target("llvm"))
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    module = llvm.parse_assembly(text)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _KEPT.append((engine, machine))
    return int(engine.get_function_address(name))


def peak_flops(repeats: int = 5, threads: int = 1, steps: int = 4_000_000) -> float:
    """Floating-point operations a second of all threads: chains of vector multiply-adds, as many as hide the
    latency and stay in registers with the two numbers that all of them use."""
    cpu = describe_cpu("llvm")
    lanes, chains = cpu.lanes(32), max(2, min(20, cpu.vector_registers - 4))
    vector = f"<{lanes} x float>"
    phis, updates = [], []
    for index in range(chains):
        phis.append(f"  %a{index} = phi {vector} [ %start, %entry ], [ %n{index}, %loop ]")
        updates.append(
            f"  %n{index} = call {vector} @llvm.fma.v{lanes}f32({vector} %a{index}, {vector} %m, {vector} %c)"
        )
    total = ["  %t0 = fadd " + f"{vector} %n0, %n1"]
    for index in range(2, chains):
        total.append(f"  %t{index - 1} = fadd {vector} %t{index - 2}, %n{index}")
    text = f"""
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
define void @peak(ptr %data, i64 %steps) {{
entry:
  %start = load {vector}, ptr %data, align 4
  %mp = getelementptr {vector}, ptr %data, i64 1
  %m = load {vector}, ptr %mp, align 4
  %cp = getelementptr {vector}, ptr %data, i64 2
  %c = load {vector}, ptr %cp, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{chr(10).join(phis)}
{chr(10).join(updates)}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %steps
  br i1 %more, label %loop, label %done
done:
{chr(10).join(total)}
  store {vector} %t{chains - 2}, ptr %data, align 4
  ret void
}}
"""
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(_compile(text, "peak"))
    data = [np.full(3 * lanes, 0.5, "float32") for _ in range(threads)]
    run = _at_once([lambda own=own: function(own.ctypes.data, steps) for own in data])  # type: ignore[misc]
    best = min(_seconds(run) for _ in range(repeats))
    return 2 * lanes * chains * steps * threads / best


def bandwidth(megabytes: int, threads: int, repeats: int = 7) -> dict[str, float]:
    """Bytes a second: ``copy`` counts bytes read and written, ``read`` bytes read, over arrays of this size."""
    count = megabytes * 1024 * 1024 // 4 // (64 * threads) * 64 * threads
    source, target = _aligned(count), _aligned(count)
    found: dict[str, float] = {}
    for name, non_temporal in (("copy", False), ("copy", True)):
        run = _over_threads(_copy_kernel(non_temporal), source, target, count, threads)
        best = min(_seconds(run) for _ in range(repeats))
        found[name] = max(found.get(name, 0.0), 2 * 4 * count / best)
    run = _over_threads(_read_kernel(), source, target, count, threads, 1)
    found["read"] = 4 * count / min(_seconds(run) for _ in range(repeats))
    return found


def _aligned(count: int) -> Any:
    """An array of ones whose memory starts at a cache line."""
    room = np.ones(count + 16, "float32")
    start = -room.ctypes.data % 64 // 4
    return room[start : start + count]


def _over_threads(
    kernel: Any, source: Any, target: Any, count: int, threads: int, *more: int
) -> Callable[[], None]:
    """Run a kernel over equal parts at the same time."""
    part, step = count // threads, target.nbytes // threads
    return _at_once(
        [
            lambda index=index: kernel(  # type: ignore[misc]
                source.ctypes.data + 4 * part * index, target.ctypes.data + step * index, part, *more
            )
            for index in range(threads)
        ]
    )


def _at_once(calls: Sequence[Callable[[], object]]) -> Callable[[], None]:
    """A function that runs all of these at the same time; foreign calls release the interpreter's lock."""

    def run() -> None:
        workers = [threading.Thread(target=call) for call in calls[1:]]
        for worker in workers:
            worker.start()
        calls[0]()
        for worker in workers:
            worker.join()

    return run


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


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
    return _KERNEL(_compile(text, "copy"))


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
    return kernel(_compile(text, "read"))
