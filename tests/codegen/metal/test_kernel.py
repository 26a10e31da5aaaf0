"""Schedules with thread bindings become Metal source, which a C++ compiler reads with the language's words defined."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
from tests.codegen.row_sums import row_sums

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import CodegenError

_AS_CPP = """
#include <cmath>
#define kernel
#define device
#define constant const
#define threadgroup static
#define thread
typedef unsigned char uchar;
typedef unsigned int uint;
typedef _Float16 half;
struct uint3 { uint x, y, z; };
enum class mem_flags { mem_threadgroup };
void threadgroup_barrier(mem_flags flags);
"""


def read_by_cpp(source: str, tmp_path: Any) -> None:
    """A C++ compiler finds nothing to object to."""
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        return
    path = tmp_path / "kernel.cpp"
    path.write_text(
        _AS_CPP
        + source.replace("#include <metal_stdlib>", "").replace("using namespace metal;", "using std::exp;")
    )
    command = [found, "-fsyntax-only", "-std=c++17", "-Wall", "-Werror", "-Wno-attributes", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def source_of(schedule: Any, args: list[Any]) -> str:
    return (
        tvm.build(schedule, args, "metal", target_host="llvm", name="main")
        .imported_modules[0]
        .get_source("metal")
    )


def test_words_of_the_language(tmp_path: Any) -> None:
    """Buffers are numbered, numbers come in a structure, and threads meet at a barrier."""
    source = source_of(*row_sums())
    read_by_cpp(source, tmp_path)
    assert "const device float* A [[buffer(0)]]" in source and "device float* B [[buffer(1)]]" in source
    assert "constant main_kernel0_values& values [[buffer(2)]]" in source and "values.m" in source
    assert "[[max_total_threads_per_threadgroup(16)]]" in source
    assert "threadgroup_barrier(mem_flags::mem_threadgroup);" in source


def test_math(tmp_path: Any) -> None:
    """Metal has no error function: a polynomial stands for it."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: te.erf(a[i]) + tir.max(a[i], 0.0), name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    source = source_of(s, [a, b])
    read_by_cpp(source, tmp_path)
    assert "erf(" not in source and "exp(" in source


def test_types_that_metal_lacks() -> None:
    """There is no float64 on the device, and the error says so."""
    a = te.placeholder((64,), "float64", name="A")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(CodegenError, match="Metal has no type for float64"):
        source_of(s, [a, b])
