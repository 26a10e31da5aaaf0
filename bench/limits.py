"""The limits of the machine: multiply-adds a second, and bytes a second copied and read.

Written as LLVM IR, apart from the compiler that is measured against them: a loop of independent multiply-adds
in registers, and loops that copy (with ordinary and with non-temporal stores; the better counts) and add up
memory.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tilewright.target.cpu import describe_cpu, llvm_machine_options
from tilewright.target.target import Target

_KEPT: list[Any] = []


def _compile(text: str, name: str) -> int:
    """The address of a function given as LLVM IR, optimised for this machine."""
    triple, cpu, features = llvm_machine_options(Target("llvm"))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    module = llvm.parse_assembly(text)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _KEPT.append((engine, machine))
    return int(engine.get_function_address(name))


def peak_flops(repeats: int = 5) -> float:
    """Floating-point operations a second of one thread: chains of vector multiply-adds, as many as hide the
    latency."""
    lanes, chains, steps = describe_cpu("llvm").lanes(32), 20, 4_000_000
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
    data = np.full(3 * lanes, 0.5, "float32")
    best = min(_seconds(lambda: function(data.ctypes.data, steps)) for _ in range(repeats))
    return 2 * lanes * chains * steps / best


def bandwidth(megabytes: int, threads: int, repeats: int = 7) -> dict[str, float]:
    """Bytes a second: ``copy`` counts bytes read and written, ``read`` bytes read, over arrays of this size."""
    count = megabytes * 1024 * 1024 // 4 // (64 * threads) * 64 * threads
    source, target = _aligned(count), _aligned(count)
    found = {}
    for name, non_temporal in (("copy", False), ("copy", True)):
        run = _over_threads(_copy_kernel(non_temporal), source, target, count, threads)
        best = min(_seconds(run) for _ in range(repeats))
        found[name] = max(found.get(name, 0.0), 2 * 4 * count / best)
    run = _over_threads(_read_kernel(), source, target, count, threads)
    found["read"] = 4 * count / min(_seconds(run) for _ in range(repeats))
    return found


def _aligned(count: int) -> Any:
    """An array of ones whose memory starts at a cache line."""
    room = np.ones(count + 16, "float32")
    start = -room.ctypes.data % 64 // 4
    return room[start : start + count]


def _over_threads(kernel: Any, source: Any, target: Any, count: int, threads: int) -> Callable[[], None]:
    """Run a kernel over equal parts at the same time; foreign calls release the interpreter's lock."""
    part = count // threads

    def run() -> None:
        workers = [
            threading.Thread(
                target=kernel,
                args=(source.ctypes.data + 4 * part * index, target.ctypes.data + 4 * part * index, part),
            )
            for index in range(1, threads)
        ]
        for worker in workers:
            worker.start()
        kernel(source.ctypes.data, target.ctypes.data, part)
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
    chains = 8
    loads = "\n".join(
        f"  %p{index} = getelementptr float, ptr %from, i64 %i{index}\n"
        f"  %v{index} = load <16 x float>, ptr %p{index}, align 4\n"
        f"  %n{index} = fadd <16 x float> %a{index}, %v{index}"
        for index in range(chains)
    )
    offsets = "\n".join(f"  %i{index} = add i64 %i, {16 * index}" for index in range(chains))
    phis = "\n".join(
        f"  %a{index} = phi <16 x float> [ zeroinitializer, %entry ], [ %n{index}, %loop ]"
        for index in range(chains)
    )
    sums = "\n".join(
        f"  %s{index} = fadd <16 x float> {'%n0' if index == 1 else f'%s{index - 1}'}, %n{index}"
        for index in range(1, chains)
    )
    text = f"""
define void @read(ptr noalias %from, ptr noalias %to, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{offsets}
{loads}
  %next = add i64 %i, {16 * chains}
  %last = add i64 %next, {16 * chains - 1}
  %more = icmp ult i64 %last, %count
  br i1 %more, label %loop, label %done
done:
{sums}
  store <16 x float> %s{chains - 1}, ptr %to, align 4
  ret void
}}
"""
    return _KERNEL(_compile(text, "read"))
