"""The peak rate of arithmetic of this machine for an element type: chains of multiply-adds that stay in registers.

Each type is measured with the instruction that multiplies most of it at once: vectors of multiply-adds, or the
dot-product instructions of int8 and bfloat16.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.codegen.llvm.measuring import calls_per_second, compile_function
from tilewright.target.cpu import CPUDescription, describe_cpu

RATE_TYPES: Final = ("float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64")
"""The element types whose rates may differ."""

_MATRIX_UNITS: Final = {"int8": ("amx-int8", 32.0), "bfloat16": ("amx-bf16", 16.0)}
"""Of the types that a matrix unit multiplies, the feature, and its products for each of the float32 units: tiles of
16 x 16 sums over 64 bytes, one in 16 cycles, against two vectors of 16 in every cycle."""

_FILLED_AS: Final = {"double": "float64", "half": "float16"}


def rate_type(dtype: str) -> str:
    """The type among ``RATE_TYPES`` that an element type is computed as fast as."""
    plain = dtype.replace("uint", "int").partition("x")[0]
    if plain in RATE_TYPES:
        return plain
    return "int8" if plain in ("bool", "int4", "int1") else "float32"


@dataclass(frozen=True)
class _Instruction:
    """An instruction (accumulators, operand, operand) to accumulators: LLVM's name and types, and how many operations
    it does."""

    name: str
    sums: str
    operands: str
    operations: int


def _fused(element: str, letter: str, lanes: int) -> _Instruction:
    vector = f"<{lanes} x {element}>"
    return _Instruction(f"llvm.fma.v{lanes}{letter}", vector, vector, 2 * lanes)


def _dot_product(name: str, sums: str, operands: str, products: int) -> _Instruction:
    return _Instruction(name, sums, operands, 2 * products)


def _instruction(dtype: str, cpu: CPUDescription) -> _Instruction | None:
    """The instruction to measure; None where the type has none of its own, and float32's counts."""
    lanes, features = cpu.lanes(32), cpu.features
    if dtype == "float64":
        return _fused("double", "f64", max(cpu.lanes(64), 1))
    if dtype == "float16" and features & {"avx512fp16", "fullfp16"}:
        return _fused("half", "f16", cpu.lanes(16))
    if cpu.family == "x86":
        if dtype == "bfloat16" and "avx512bf16" in features:
            return _dot_product(
                f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}",
                f"<{lanes} x float>",
                f"<{2 * lanes} x bfloat>",
                2 * lanes,
            )
        if dtype == "int8" and features & {"avx512vnni", "avxvnni"}:
            wide = lanes if "avx512vnni" in features else min(lanes, 8)
            return _dot_product(
                f"llvm.x86.avx512.vpdpbusd.{32 * wide}", f"<{wide} x i32>", f"<{4 * wide} x i8>", 4 * wide
            )
    if cpu.family == "aarch64" and dtype == "int8" and "dotprod" in features:
        return _dot_product("llvm.aarch64.neon.sdot.v4i32.v16i8", "<4 x i32>", "<16 x i8>", 16)
    return None


def peak_operations(dtype: str, repeats: int = 5, threads: int = 1, steps: int = 4_000_000) -> float:
    """Operations a second of all threads in an element type of ``RATE_TYPES``; a multiply-add is two."""
    cpu = describe_cpu("llvm")
    feature, ratio = _MATRIX_UNITS.get(dtype, ("", 1.0))
    if feature in cpu.features:
        # Tiles need leave of the operating system and a set-up of their own; their rate is a fixed one.
        return ratio * peak_operations("float32", repeats, threads, steps)
    instruction = _instruction(dtype, cpu)
    if instruction is None:
        rate = _measured(_fused("float", "f32", cpu.lanes(32)), cpu, repeats, threads, steps)
        # Integers that no instruction of their own multiplies still come as many to a vector as fit.
        bits = {"int8": 8, "int16": 16, "int64": 64}.get(dtype, 32)
        return rate * 32 / bits
    return _measured(instruction, cpu, repeats, threads, steps)


def _measured(
    instruction: _Instruction, cpu: CPUDescription, repeats: int, threads: int, steps: int
) -> float:
    """Chains as many as hide the latency and stay in registers with the two operands that all of them use."""
    chains = max(2, min(20, cpu.vector_registers - 4))
    sums, operands = instruction.sums, instruction.operands
    phis, updates = [], []
    for index in range(chains):
        phis.append(f"  %a{index} = phi {sums} [ %start, %entry ], [ %n{index}, %loop ]")
        arguments = [f"{sums} %a{index}", f"{operands} %m", f"{operands} %c"]
        updates.append(f"  %n{index} = call {sums} @{instruction.name}({', '.join(arguments)})")
    add = "fadd" if any(name in sums for name in ("float", "double", "half")) else "add"
    total = [f"  %t0 = {add} {sums} %n0, %n1"]
    for index in range(2, chains):
        total.append(f"  %t{index - 1} = {add} {sums} %t{index - 2}, %n{index}")
    text = f"""
declare {sums} @{instruction.name}({sums}, {operands}, {operands})
define void @peak(ptr %data, i64 %steps) {{
entry:
  %start = load {sums}, ptr %data, align 4
  %mp = getelementptr i8, ptr %data, i64 64
  %m = load {operands}, ptr %mp, align 4
  %cp = getelementptr i8, ptr %data, i64 128
  %c = load {operands}, ptr %cp, align 4
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
  store {sums} %t{chains - 2}, ptr %data, align 4
  ret void
}}
"""
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(compile_function(text, "peak"))
    # Sums that start at one half, are halved and get one half added stay normal numbers.
    dtype = next((name for word, name in _FILLED_AS.items() if word in sums), "float32")
    data = [np.full(192 // np.dtype(dtype).itemsize, 0.5, dtype) for _ in range(threads)]
    calls = [lambda own=own: function(own.ctypes.data, steps) for own in data]
    return instruction.operations * chains * steps * threads * calls_per_second(calls, repeats)
