"""Kernels become PTX: thread axes, address spaces, barriers, vectors; ptxas takes it for every generation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.codegen.nvptx.code import merged
from tilewright.runtime.device_module import DeviceModule
from tilewright.support.errors import CodegenError, TargetError
from tilewright.tir import ptx
from tilewright.tir.interpreter import interpret

ARCHS = ["sm_75", "sm_80", "sm_90a"]


def thread(tag: str) -> Any:
    return te.thread_axis(tag)


def rows(n: int, dtype: str = "float32", lanes: int = 1) -> tuple[Any, list[Any]]:
    """A schedule of a sum, a block of 64 threads, each with some lanes."""
    a, b = te.placeholder((n,), dtype, name="A"), te.placeholder((n,), dtype, name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=64 * lanes)
    if lanes > 1:
        inner, lane = s[c].split(inner, factor=lanes)
        s[c].vectorize(lane)
    s[c].bind(outer, thread("blockIdx.x"))
    s[c].bind(inner, thread("threadIdx.x"))
    return s, [a, b, c]


@pytest.mark.parametrize("arch", ARCHS)
def test_elementwise(kit: Any, arch: str) -> None:
    """Inputs are read through the read-only cache, the block's size is stated, indices take 32 bits."""
    ptx = kit.ptx(*rows(1024), arch=arch)
    assert f".target {arch}" in ptx and ".maxntid 64" in ptx
    assert ptx.count("ld.global.nc.b32") == 2 and "st.global.b32" in ptx
    assert "mul.lo.s64" not in ptx and "cvt.s64" not in ptx
    assert not kit.assemble(ptx, arch).spills


@pytest.mark.parametrize(
    ("dtype", "lanes", "words"),
    [
        ("float32", 4, 4),
        ("float16", 8, 4),
        ("bfloat16", 8, 4),
        ("int8", 16, 4),
        ("float16", 4, 2),
        ("float64", 2, 2),
    ],
)
def test_vectors_are_one_access(kit: Any, dtype: str, lanes: int, words: int) -> None:
    """Sixteen bytes are one load and one store."""
    ptx = kit.ptx(*rows(4096, dtype, lanes), arch="sm_90a")
    bits = 64 if dtype == "float64" else 32
    assert ptx.count(f"ld.global.nc.v{words}.b{bits}") == 2, ptx
    assert ptx.count(f"st.global.v{words}.b{bits}") == 1
    if dtype == "float16":
        assert "add.rn.f16x2" in ptx or "add.f16x2" in ptx
    kit.assemble(ptx, "sm_90a")


@pytest.mark.parametrize("arch", ARCHS)
def test_shared_memory(kit: Any, arch: str) -> None:
    """A product with tiles in shared memory: no generic access, accumulators in registers, right by the interpreter."""
    n = 32
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    shared = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    total = s.cache_write(c, "local")
    (i, j), (by, bx) = c.op.axis, (thread("blockIdx.y"), thread("blockIdx.x"))
    ty, tx = thread("threadIdx.y"), thread("threadIdx.x")
    io, ii = s[c].split(i, factor=16)
    jo, ji = s[c].split(j, factor=16)
    iio, iii = s[c].split(ii, factor=4)
    jio, jii = s[c].split(ji, factor=4)
    s[c].reorder(io, jo, iio, jio, iii, jii)
    for axis, bound in ((io, by), (jo, bx), (iio, ty), (jio, tx)):
        s[c].bind(axis, bound)
    s[c].vectorize(jii)
    s[total].compute_at(s[c], jio)
    ko, ki = s[total].split(s[total].op.reduce_axis[0], factor=8)
    ci, cj = s[total].op.axis
    s[total].reorder(ko, ki, ci, cj)
    for axis in (ki, ci, cj):
        s[total].unroll(axis)
    for tensor in shared:
        s[tensor].compute_at(s[total], ko)
        fused = s[tensor].fuse(*s[tensor].op.axis)
        rest, column = s[tensor].split(fused, factor=4)
        rest, row = s[tensor].split(rest, factor=4)
        s[tensor].bind(column, tx)
        s[tensor].bind(row, ty)
    args = [a, b, c]
    ptx = kit.ptx(s, args, arch)
    assert ptx.count("bar.sync") == 2
    assert "st.shared" in ptx and "ld.shared.v4" in ptx and ".local" not in ptx
    assert "\tld.b32" not in ptx and "\tst.b32" not in ptx, "a generic access"
    assert kit.assemble(ptx, arch).stack == 0
    x, y = (np.random.default_rng(seed).standard_normal((n, n)).astype("float32") for seed in (1, 2))
    z = np.zeros((n, n), "float32")
    interpret(kit.threaded(s, args), x, y, z)
    np.testing.assert_allclose(z, x @ y, rtol=1e-4, atol=1e-4)


def test_large_tensors_are_addressed_in_64_bits(kit: Any) -> None:
    """An index of 32 bits that counts beyond 2**31 does not wrap."""
    n = 1 << 17
    a = te.placeholder((n, n), "int8", name="A")
    b = te.compute((n, n), lambda i, j: a[i, j] + tir.const(1, "int8"), name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[1], factor=128)
    s[b].bind(b.op.axis[0], thread("blockIdx.x"))
    s[b].bind(inner, thread("threadIdx.x"))
    ptx = kit.ptx(s, [a, b])
    assert "mul.wide.u32" in ptx or "shl.b64" in ptx or "mul.wide.s32" in ptx, ptx
    kit.assemble(ptx)


def test_build_gives_a_device_module(kit: Any) -> None:
    """The host imports one module of PTX, whose image ends with the NUL that the driver wants."""
    built = tvm.build(*rows(256), "cuda -arch=sm_80", name="sum")
    (device,) = built.imported_modules
    assert isinstance(device, DeviceModule) and device.type_key == "cuda"
    assert device.image.endswith(b"\0") and device.function_names == ("sum_kernel0",)
    assert ".visible .entry sum_kernel0(" in device.get_source("ptx")
    assert "ptx_kernel void @sum_kernel0" in device.get_source("ll")
    assert "__global__ void" in device.get_source("cuda")


def test_too_large_a_block(kit: Any) -> None:
    a = te.placeholder((2048,), name="A")
    b = te.compute((2048,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], thread("threadIdx.x"))
    with pytest.raises(
        CodegenError, match=r"threadIdx.x has 2048 values, CUDA allows 1024|blocks of 2048 threads"
    ):
        kit.ptx(s, [a, b])


def test_options_of_the_target(kit: Any) -> None:
    """What is not an option's value is refused."""
    for target, words in (
        ("cuda -arch=sm_80 -codegen=gcc", "code of kernels is made by llvm or by nvrtc"),
        ("cuda -arch=ampere", "is not an NVIDIA architecture; expected for example sm_80"),
        ("cuda -arch=sm_20", "is not a known NVIDIA architecture"),
    ):
        with pytest.raises(TargetError, match=words):
            tvm.build(*rows(256), target)


def test_nvrtc(kit: Any) -> None:
    """CUDA source through NVRTC where it is, and a clear error where it is not."""
    try:
        built = tvm.build(*rows(256), "cuda -arch=sm_80 -codegen=nvrtc", name="sum")
    except TargetError as missing:
        pytest.skip(str(missing))
    assert ".visible .entry sum_kernel0(" in built.imported_modules[0].get_source("ptx")


def test_launch_bounds(kit: Any) -> None:
    """Attributes of the function bound the registers of its kernels."""
    function = tvm.lower(*rows(256))["main"]
    function = function.with_attr("tir.min_blocks_per_multiprocessor", 4).with_attr("tir.max_registers", 64)
    ptx = kit.ptx(function)
    assert ".minnctapersm 4" in ptx and ".maxnreg 64" in ptx
    cluster = kit.ptx(function.with_attr("tir.cluster_dims", (2, 1, 1)), arch="sm_90a")
    assert ".reqnctapercluster 2, 1, 1" in cluster


def test_a_statement_puts_blocks_into_clusters(kit: Any) -> None:
    """As an attribute within the kernel, for one kernel of several."""
    a = tir.decl_buffer((64,), "float32", name="A")
    block, axis = thread("blockIdx.x"), thread("threadIdx.x")
    store = tir.Store(a.data, tir.const(1.0, "float32"), block.var * 32 + axis.var)
    body = tir.AttrStmt(axis, "thread_extent", 32, tir.AttrStmt("kernel", ptx.CLUSTER, ptx.cluster(2), store))
    body = tir.AttrStmt(block, "thread_extent", 2, body)
    text = kit.ptx(tir.PrimFunc([a], body, attrs={"global_symbol": "main"}), arch="sm_90a")
    assert ".reqnctapercluster 2, 1, 1" in text
    with pytest.raises(tvm.TVMError, match="1 to 8 blocks, not 16"):
        ptx.cluster(16)


def test_an_assertion_stops_the_kernel(kit: Any) -> None:
    a = tir.decl_buffer((64,), "float32", name="A")
    axis = thread("threadIdx.x")
    store = tir.Store(a.data, tir.const(1.0, "float32"), axis.var)
    body = tir.AttrStmt(axis, "thread_extent", 64, tir.AssertStmt(axis.var < 32, "too far", store))
    ptx = kit.ptx(tir.PrimFunc([a], body, attrs={"global_symbol": "main"}))
    assert "trap;" in ptx
    kit.assemble(ptx)


def test_units_become_one_module(kit: Any) -> None:
    """The PTX of kernels that were compiled apart is one text that ptxas takes."""
    first, second = (kit.ptx(tvm.lower(*rows(256), name=name)) for name in ("one", "two"))
    text = merged([first, second])
    assert text.count(".version") == 1 and text.count(".visible .entry") == 2
    kit.assemble(text)


def test_functions_that_kernels_lack(kit: Any) -> None:
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: tir.call_pure_extern("float32", "my_function", a[i]), name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], thread("threadIdx.x"))
    with pytest.raises(
        CodegenError, match="a kernel calls the function 'my_function', which PTX does not define"
    ):
        kit.ptx(s, [a, b])
