"""Schedules with thread bindings become OpenCL source.

A C compiler reads it, with the language's own words defined away.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
from tests.codegen.row_sums import row_sums

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import CodegenError

_AS_C = """
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#define __kernel
#define __global
#define __local static
#define __private
#define __attribute__(x)
#define CLK_LOCAL_MEM_FENCE 1
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
size_t get_group_id(uint axis);
size_t get_local_id(uint axis);
void barrier(int flags);
"""


def read_by_c(source: str, tmp_path: Any) -> None:
    """A C compiler finds nothing to object to."""
    path = tmp_path / "kernel.c"
    path.write_text(_AS_C + source.replace("#pragma OPENCL", "//"))
    found = shutil.which("cc")
    if found is None:
        return
    command = [found, "-fsyntax-only", "-std=c11", "-Wall", "-Werror", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def source_of(schedule: Any, args: list[Any]) -> str:
    return (
        tvm.build(schedule, args, "opencl", target_host="llvm", name="main")
        .imported_modules[0]
        .get_source("cl")
    )


def test_words_of_the_language(tmp_path: Any) -> None:
    """Work items, local memory and barriers have OpenCL's names."""
    source = source_of(*row_sums())
    read_by_c(source, tmp_path)
    assert "__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void main_kernel0(" in source
    assert "const __global float* restrict A" in source and "__global float* restrict B" in source
    for word in ("get_group_id(0)", "get_local_id(0)", "__local float", "barrier(CLK_LOCAL_MEM_FENCE);"):
        assert word in source


@pytest.mark.parametrize(
    ("kind", "extension"), [("float16", "cl_khr_fp16"), ("float64", "cl_khr_fp64"), ("int32", None)]
)
def test_extensions(kind: str, extension: str | None, tmp_path: Any) -> None:
    """Types beyond the core are enabled where they are used."""
    source = source_of(*row_sums(kind))
    read_by_c(source, tmp_path)
    assert ("EXTENSION" in source) is (extension is not None)
    assert extension is None or f"#pragma OPENCL EXTENSION {extension} : enable" in source


def test_math(tmp_path: Any) -> None:
    """Functions have one name for every type."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: te.exp(a[i]) + te.sigmoid(a[i]) + tir.max(a[i], 0.0), name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    source = source_of(s, [a, b])
    read_by_c(source, tmp_path)
    assert "exp(A[" in source and "expf" not in source


def test_unknown_memory() -> None:
    """A scope that OpenCL does not have is an error that names it."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    cached = s.cache_read(a, "local.L0A", [b])
    tx = te.thread_axis("threadIdx.x")
    s[b].bind(b.op.axis[0], tx)
    s[cached].compute_at(s[b], b.op.axis[0])
    with pytest.raises(CodegenError, match=r"OpenCL has no memory of scope 'local.L0A'"):
        source_of(s, [a, b])
