"""Measures this machine for the description that schedules are computed from: see ``target/measured.py``.

Beside the limits (``limits``): the clock, the latency of a multiply-add, the rate at which a loop of multiply-adds
streams a panel from L2, and what a parallel loop costs. Every figure is the best of many short measurements, because
other programs only ever take away.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from tilewright.codegen.llvm.limits import MachineLimits, machine_limits, peak_flops
from tilewright.codegen.llvm.measuring import calls_per_second, compile_function
from tilewright.runtime.library import LIBRARY
from tilewright.target.cpu import CPUDescription, describe_cpu
from tilewright.target.host import host_cores, host_processor
from tilewright.target.measured import LevelRate, MeasuredCPU

_REPEATS: Final = 50
_CHAIN: Final = 32
"""Additions in an iteration of the loop that measures the clock."""
_PANEL_VECTORS, _PANEL_ROWS = 4, 2
"""The tile that streams a panel: wide, with few rows, so that it waits for the panel rather than for its units."""
_LAUNCHES: Final = 2000


def measure_machine() -> MeasuredCPU:
    """Measure this machine with one core and with all that this process may use: a few seconds."""
    cpu, cores = describe_cpu("llvm"), host_cores()
    alone = machine_limits(1)
    together = machine_limits(cores) if cores > 1 else alone
    return MeasuredCPU(
        processor=host_processor() or cpu.name,
        cores=cores,
        vector_bits=cpu.vector_bits,
        cycles_per_second=_clock(),
        flops_one_core=max(alone.flops_per_second, peak_flops(_REPEATS, 1, 50_000)),
        flops_all_cores=together.flops_per_second,
        fma_latency=_fma_latency(cpu),
        panel_bytes=_panel_rate(cpu),
        dispatch_seconds=_dispatch_seconds(),
        levels=_levels(alone, together),
    )


def _levels(alone: MachineLimits, together: MachineLimits) -> tuple[LevelRate, ...]:
    """The levels that are faster than those beyond them, for one core and for all."""
    shared = {one.level: one.bytes_per_second for one in together.bandwidths}
    return tuple(
        LevelRate(one.level, one.bytes_per_second, shared[one.level])
        for one in alone.bandwidths
        if one.level in shared
    )


def _loop(state: str, body: str, result: str, parameters: str = "ptr %data, i64 %steps") -> str:
    """A function that repeats a body; ``state`` are the values that it carries, set up in ``entry``."""
    setup, _, phis = state.partition("---\n")
    return f"""
define void @measured({parameters}) {{
entry:
{setup}  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}{body}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %steps
  br i1 %more, label %loop, label %done
done:
{result}
  ret void
}}
"""


_FUNCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


def _seconds(function: Any, data: Any, steps: int) -> float:
    return 1.0 / calls_per_second([lambda: function(data.ctypes.data, steps)], _REPEATS)


def _clock() -> float:
    """Cycles a second: additions and exclusive ors that wait for one another take a cycle each on every CPU."""
    lines, last = [], "%x"
    for index in range(_CHAIN):
        lines.append(f"  %x{index} = {('add', 'xor')[index % 2]} i64 {last}, {('%a', '%b')[index % 2]}")
        last = f"%x{index}"
    state = (
        "  %a = load i64, ptr %data\n  %bp = getelementptr i64, ptr %data, i64 1\n  %b = load i64, ptr %bp\n"
        f"---\n  %x = phi i64 [ %a, %entry ], [ {last}, %loop ]\n"
    )
    text = _loop(state, "\n".join(lines), f"  store i64 {last}, ptr %data")
    function = _FUNCTION(compile_function(text, "measured"))
    steps = 10_000
    return _CHAIN * steps / _seconds(function, np.array([12345, 67891], "int64"), steps)


def _fma_latency(cpu: CPUDescription) -> float:
    """Seconds of a multiply-add that waits for the one before."""
    vector = f"<{cpu.lanes(32)} x float>"
    name = f"llvm.fma.v{cpu.lanes(32)}f32"
    lines, last = [], "%x"
    for index in range(_CHAIN):
        lines.append(f"  %x{index} = call {vector} @{name}({vector} {last}, {vector} %a, {vector} %a)")
        last = f"%x{index}"
    state = f"  %a = load {vector}, ptr %data, align 4\n---\n  %x = phi {vector} [ %a, %entry ], [ {last}, %loop ]\n"
    text = _loop(state, "\n".join(lines), f"  store {vector} {last}, ptr %data, align 4")
    text += f"declare {vector} @{name}({vector}, {vector}, {vector})\n"
    function = _FUNCTION(compile_function(text, "measured"))
    steps = 5_000
    # Sums that start at one half, are halved and get one half added stay normal numbers.
    return _seconds(function, np.full(max(cpu.lanes(32), 4), 0.5, "float32"), steps) / (_CHAIN * steps)


def _panel_rate(cpu: CPUDescription) -> float:
    """Bytes a second of a panel that stays in L2, and that a small register tile multiplies with a few scalars."""
    lanes = cpu.lanes(32)
    vector, name = f"<{lanes} x float>", f"llvm.fma.v{lanes}f32"
    width = _PANEL_VECTORS * lanes
    length = max(4, min(cpu.l2_bytes // 2, 1 << 20) // (4 * width))
    phis, body, sums = [], [f"  %start = mul i64 %i, {width}"], ["  %s0 = fadd " + vector + " %n0_0, %n0_0"]
    for column in range(_PANEL_VECTORS):
        body += [
            f"  %o{column} = add i64 %start, {lanes * column}",
            f"  %p{column} = getelementptr float, ptr %panel, i64 %o{column}",
            f"  %v{column} = load {vector}, ptr %p{column}, align 4",
        ]
        for row in range(_PANEL_ROWS):
            place = f"{row}_{column}"
            phis.append(f"  %a{place} = phi {vector} [ %zero, %entry ], [ %n{place}, %loop ]")
            arguments = f"{vector} %v{column}, {vector} %f{row}, {vector} %a{place}"
            body.append(f"  %n{place} = call {vector} @{name}({arguments})")
            sums.append(f"  %s{len(sums)} = fadd {vector} %s{len(sums) - 1}, %n{place}")
    setup = [f"  %zero = load {vector}, ptr %data, align 4"]
    for row in range(_PANEL_ROWS):
        setup += [
            f"  %q{row} = getelementptr float, ptr %data, i64 {lanes * (row + 1)}",
            f"  %f{row} = load {vector}, ptr %q{row}, align 4",
        ]
    state = "\n".join(setup) + "\n---\n" + "\n".join(phis) + "\n"
    result = "\n".join(sums) + f"\n  store {vector} %s{len(sums) - 1}, ptr %to, align 4"
    text = _loop(state, "\n".join(body), result, "ptr %data, i64 %steps, ptr %panel, ptr %to")
    text += f"declare {vector} @{name}({vector}, {vector}, {vector})\n"
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    function = kernel(compile_function(text, "measured"))
    panel = np.ones(length * width, "float32")
    data = np.full(lanes * (_PANEL_ROWS + 1), 0.5, "float32")
    to = np.zeros(lanes, "float32")

    def stream() -> None:
        function(data.ctypes.data, length, panel.ctypes.data, to.ctypes.data)

    return panel.nbytes * calls_per_second([stream], 10 * _REPEATS)


def _dispatch_seconds() -> float:
    """Seconds of a parallel loop whose iterations do nothing, among many that follow one another."""
    text = f"""
define i32 @body(i32 %task, i32 %tasks, ptr %closure) {{
  ret i32 0
}}
define void @measured(ptr %launch, i64 %steps) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %status = call i32 %launch(ptr @body, ptr null, i32 {-0x7FFFFFFF})
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %steps
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
    function = _FUNCTION(compile_function(text, "measured"))
    launch = ctypes.cast(LIBRARY.tilewright_parallel_launch, ctypes.c_void_p).value
    return 1.0 / (_LAUNCHES * calls_per_second([lambda: function(launch, _LAUNCHES)], _REPEATS))
