"""Schedules with thread bindings become CUDA source.

It is right by the interpreter, and accepted by nvcc where there is one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codegen.nvptx.kernels import warp_product

import tilewright as tvm
from tilewright import te, tir
from tilewright.codegen.cuda import generate_cuda
from tilewright.ir.intrinsics import MATH_UNARY
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Sequential
from tilewright.support.errors import CodegenError, LoweringError
from tilewright.target import Target
from tilewright.tir.build_pipeline import device_passes, host_passes, mixed_passes
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.split_host_device import SplitHostDevice

CUDA, HOST = Target("cuda"), Target("llvm")


def block(letter: str = "x") -> Any:
    return te.thread_axis(f"blockIdx.{letter}")


def thread(letter: str = "x") -> Any:
    return te.thread_axis(f"threadIdx.{letter}")


def kernels(module: IRModule) -> IRModule:
    """The device part of a lowered module."""
    return Sequential(device_passes(CUDA, HOST))(Sequential(mixed_passes(CUDA, HOST))(module))


def threaded(module: IRModule) -> tir.PrimFunc:
    """The function with barriers and reductions lowered, before it is packed and split: what the interpreter runs."""
    passes = [
        each
        for each in mixed_passes(CUDA, HOST)
        if each.name not in ("tir.MakePackedAPI", SplitHostDevice.name)
    ]
    return Sequential(passes)(module)["main"]


def checked(schedule: Any, args: list[Any], nvcc: Any, *arrays: Any) -> str:
    """The source of a schedule, accepted by nvcc; the arrays are written by the interpreter."""
    module = tvm.lower(schedule, args)
    interpret(threaded(module), *arrays)
    source = generate_cuda(kernels(module))
    nvcc(source)
    return source


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Collects sources and compiles all of them together at the end: starting nvcc takes longer than its work."""
    sources: list[str] = []
    yield sources.append
    found = shutil.which("nvcc")
    if found is None or not sources:
        return
    headers = sorted(
        {line for source in sources for line in source.splitlines() if line.startswith("#include")}
    )
    parts = []
    for number, source in enumerate(sources):
        plain = "\n".join(line for line in source.splitlines() if not line.startswith("#include"))
        parts.append(f"namespace n{number} {{\n{plain.replace('main_kernel', f'n{number}_kernel')}\n}}")
    folder: Path = tmp_path_factory.mktemp("cuda")
    (folder / "kernel.cu").write_text("\n".join([*headers, *parts]))
    command = [found, "-ptx", "-arch=sm_80", "-o", "kernel.ptx", "kernel.cu"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"nvcc refuses {folder / 'kernel.cu'}:\n{done.stderr}"


def test_elementwise(nvcc: Any) -> None:
    """One thread an element, with a guard at the end; inputs are read-only, nothing aliases, the block is bounded."""
    n = te.var("n")
    a, b = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    bx, tx = s[c].split(c.op.axis[0], factor=64)
    s[c].bind(bx, block())
    s[c].bind(tx, thread())
    x, y, z = (np.arange(100, dtype="float32") for _ in range(3))
    source = checked(s, [a, b, c], nvcc, x, y, z)
    np.testing.assert_array_equal(z, 2 * x)
    assert 'extern "C" __global__ void __launch_bounds__(64) main_kernel0(' in source
    for declaration in (
        "float* __restrict__ C",
        "const float* __restrict__ A",
        "const float* __restrict__ B",
        "int n",
    ):
        assert declaration in source


def test_the_host_part() -> None:
    """The host packs a call of the kernel with its values and extents; the device module holds the source."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    bx, tx = s[b].split(b.op.axis[0], factor=32)
    s[b].bind(bx, block())
    s[b].bind(tx, thread())
    built = tvm.build(s, [a, b], "cuda", target_host="llvm", name="twice")
    (device,) = built.imported_modules
    assert device.type_key == "cuda" and device.function_names == ("twice_kernel0",)
    assert "twice_kernel0(" in device.get_source("cu")
    assert "twice_kernel0" in built.get_source("ll")
    host = Sequential(host_passes(CUDA, HOST))(
        Sequential(mixed_passes(CUDA, HOST))(tvm.lower(s, [a, b], name="twice"))
    )
    assert [variable.name_hint for variable in host.functions] == ["twice"]


def matmul(size: int = 32, vthread: bool = False) -> tuple[Any, list[Any]]:
    """Blocks of 16 by 16, operands in shared memory, sums in registers, loads and stores of four."""
    a, b = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    a_shared, b_shared = s.cache_read(a, "shared", [c]), s.cache_read(b, "shared", [c])
    c_local = s.cache_write(c, "local")
    i, j = s[c].op.axis
    by, i = s[c].split(i, factor=16)
    bx, j = s[c].split(j, factor=16)
    s[c].reorder(by, bx, i, j)
    rows = [by, bx]
    if vthread:
        vy, i = s[c].split(i, nparts=2)
        s[c].reorder(by, bx, vy, i, j)
        s[c].bind(vy, te.thread_axis("vthread", name="vy"))
        rows.append(vy)
    ty, i = s[c].split(i, nparts=4)
    tx, j = s[c].split(j, nparts=4)
    s[c].reorder(*rows, ty, tx, i, j)
    for axis, index in ((by, block("y")), (bx, block()), (ty, thread("y")), (tx, thread())):
        s[c].bind(axis, index)
    s[c].vectorize(j)
    s[c_local].compute_at(s[c], tx)
    outer, inner = s[c_local].split(c_local.op.reduce_axis[0], factor=8)
    s[c_local].reorder(outer, inner, *c_local.op.axis)
    s[c_local].unroll(inner)
    for stage in (a_shared, b_shared):
        s[stage].compute_at(s[c_local], outer)
        fused = s[stage].fuse(*s[stage].op.axis)
        rest, four = s[stage].split(fused, factor=4)
        ty, rest = s[stage].split(rest, nparts=4)
        tx, rest = s[stage].split(rest, nparts=4)
        s[stage].bind(ty, thread("y"))
        s[stage].bind(tx, thread())
        s[stage].vectorize(four)
    return s, [a, b, c]


@pytest.mark.parametrize("vthread", [False, True])
def test_shared_memory(nvcc: Any, vthread: bool) -> None:
    """Tiles go through shared memory between two barriers, four elements at a time; virtual threads interleave."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, (32, 32)).astype("float32") for _ in range(2))
    z = np.zeros((32, 32), "float32")
    source = checked(*matmul(vthread=vthread), nvcc, x, y, z)
    np.testing.assert_array_equal(z, x @ y)
    assert source.count("__syncthreads();") == 2
    assert "__shared__ __align__(16) float A_shared[128];" in source
    assert re.search(r"\*\(float4\*\)\(&A_shared\[.*\]\) = \*\(float4\*\)\(&A\[", source)
    assert "__launch_bounds__(16)" in source


def reduction(threads: int, n: Any = 8, m: Any = 40) -> tuple[Any, list[Any]]:
    """Row sums with the columns split over threads."""
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.reduce_axis[0], factor=threads)
    partial = s.rfactor(b, inner)
    xo, xi = s[b].split(s[b].op.axis[0], factor=4)
    s[b].bind(xo, block())
    s[b].bind(xi, thread("y"))
    tx = thread()
    s[b].bind(s[b].op.reduce_axis[0], tx)
    s[partial].compute_at(s[b], s[b].op.reduce_axis[0])
    s[b].set_store_predicate(tx.var.equal(0))
    return s, [a, b]


def test_reduction_across_threads(nvcc: Any) -> None:
    """Sixteen threads a row exchange registers; twelve, which are no power of two, meet in shared memory."""
    x, y = np.arange(8 * 40, dtype="float32").reshape(8, 40), np.zeros(8, "float32")
    for threads, barriers in ((16, 0), (12, 5)):
        source = checked(*reduction(threads), nvcc, x, y)
        np.testing.assert_array_equal(y, x.sum(1))
        assert source.count("__syncthreads();") == barriers


def test_reduction_of_symbolic_sizes(nvcc: Any) -> None:
    """Rows and columns that divide nothing are guarded, also where the program has two branches."""
    x, y = np.arange(6 * 21, dtype="float32").reshape(6, 21), np.zeros(6, "float32")
    checked(*reduction(16, te.var("n"), te.var("m")), nvcc, x, y)
    np.testing.assert_array_equal(y, x.sum(1))


def test_reduction_in_a_warp(nvcc: Any) -> None:
    """Thirty-two threads a row exchange registers."""
    source = generate_cuda(kernels(tvm.lower(*reduction(32))))
    nvcc(source)
    assert source.count("__shfl_down_sync(") == 5 and source.count("__shfl_sync(") == 1
    assert "__shared__" not in source and "__syncthreads" not in source


@pytest.mark.parametrize(
    ("kind", "header"),
    [("float16", "cuda_fp16.h"), ("float64", None), ("int8", None), ("uint16", None), ("bool", None)],
)
def test_types(nvcc: Any, kind: str, header: str | None) -> None:
    """Every element type is written, and its header included where it needs one."""
    a, b = te.placeholder((64,), kind, name="A"), te.placeholder((64,), kind, name="B")
    if kind == "bool":
        make = lambda i: tir.all(a[i], b[i])
    else:
        make = lambda i: tir.max(a[i] + b[i], tir.const(2, kind))
    c = te.compute((64,), make, name="C")
    s = te.create_schedule(c.op)
    s[c].bind(c.op.axis[0], thread())
    source = generate_cuda(kernels(tvm.lower(s, [a, b, c])))
    nvcc(source)
    assert (f"#include <{header}>" in source) is (header is not None)


@pytest.mark.parametrize(
    ("kind", "lanes"), [("float16", 8), ("int8", 4), ("float32", 8), ("float64", 2), ("int16", 2)]
)
def test_vectors(nvcc: Any, kind: str, lanes: int) -> None:
    """Aligned neighbours move together, in pieces of at most sixteen bytes."""
    a = te.placeholder((64 * lanes,), kind, name="A")
    b = te.compute(a.shape, lambda i: a[i] + a[i], name="B")
    s = te.create_schedule(b.op)
    tx, inner = s[b].split(b.op.axis[0], factor=lanes)
    s[b].bind(tx, thread())
    s[b].vectorize(inner)
    x = np.arange(64 * lanes).astype(kind)
    y = np.zeros_like(x)
    source = checked(s, [a, b], nvcc, x, y)
    np.testing.assert_array_equal(y, x + x)
    pieces = max(1, lanes * np.dtype(kind).itemsize // 16)
    assert len(re.findall(r"= \*\(\w+(?: \w+)?\*\)\(&A\[", source)) == pieces


def test_misaligned_vectors_go_one_by_one(nvcc: Any) -> None:
    """An access that may begin anywhere is not made at once: the device would fault."""
    a = te.placeholder((65,), name="A")
    b = te.compute((64,), lambda i: a[i + 1], name="B")
    s = te.create_schedule(b.op)
    tx, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].bind(tx, thread())
    s[b].vectorize(inner)
    x, y = np.arange(65, dtype="float32"), np.zeros(64, "float32")
    source = checked(s, [a, b], nvcc, x, y)
    np.testing.assert_array_equal(y, x[1:])
    assert not re.search(r"float4\*\)\(&A", source) and re.search(r"float4\*\)\(&B", source)


def launched(body: tir.Stmt, *params: Any, extent: int = 32) -> IRModule:
    """A kernel with this body and one thread index."""
    axis = te.thread_axis("threadIdx.x")
    body = tir.AttrStmt(axis, "thread_extent", extent, body)
    function = tir.PrimFunc(list(params), body, attrs={"global_symbol": "main"})
    return kernels(IRModule({"main": function}))


def test_dot_products_of_bytes(nvcc: Any) -> None:
    """Four bytes are passed as an int, as the instruction takes them."""
    a, b = tir.decl_buffer((4,), "int8", name="A"), tir.decl_buffer((4,), "int8", name="B")
    c = tir.decl_buffer((1,), "int32", name="C")
    four = lambda buffer: tir.Load("int8x4", buffer.data, tir.Ramp(0, 1, 4))
    dot = tir.call_pure_extern("int32", "__dp4a", four(a), four(b), tir.Load("int32", c.data, 0))
    source = generate_cuda(launched(tir.Store(c.data, dot, 0), a, b, c))
    nvcc(source)
    assert "__dp4a(*(int*)(&A[0]), *(int*)(&B[0]), C[0])" in source
    summed = tir.call_pure_extern("int32", "__dp4a", four(a) + four(b), four(b), tir.Load("int32", c.data, 0))
    nvcc(generate_cuda(launched(tir.Store(c.data, summed, 0), a, b, c)))


def test_dynamic_shared_memory(nvcc: Any) -> None:
    """Two dynamic buffers become one array without a size."""
    out = tir.decl_buffer((32,), name="out")
    builder = tir.ir_builder.create()
    first = builder.allocate("float32", 32, name="first", scope="shared.dyn")
    second = builder.allocate("float16", 32, name="second", scope="shared.dyn")
    first[0] = 1.0
    second[0] = tir.const(2.0, "float16")
    target = builder.buffer_ptr(out)
    target[0] = first[0] + second[0].astype("float32")
    source = generate_cuda(launched(builder.get(), out))
    nvcc(source)
    assert source.count("extern __shared__") == 1 and "unsigned char buf_dyn_shmem[];" in source


def test_constants_and_math(nvcc: Any) -> None:
    """Infinities, NaN and every function of the tables have CUDA forms."""
    a = tir.decl_buffer((64,), name="A")
    x = tir.Load("float32", a.data, 0)
    values = [
        tir.const(value, "float32") for value in (float("inf"), -float("inf"), float("nan"), 1e-45, -0.5)
    ]
    values += [tir.call_intrin("float32", f"tir.{name}", x) for name in MATH_UNARY]
    values += [tir.pow(x, x), tir.Cast("float32", tir.popcount(tir.Cast("int32", x)))]
    values += [tir.Select(tir.isnan(x), x, -x), tir.reinterpret("float32", tir.reinterpret("int32", x))]
    body = tir.SeqStmt([tir.Store(a.data, value, place) for place, value in enumerate(values)])
    nvcc(generate_cuda(launched(body, a)))


def test_tensor_cores(nvcc: Any) -> None:
    """Fragments are declared with shape, type and layout, and the four calls are made on them."""
    a, b = (tir.decl_buffer((256,), "float16", name=name) for name in "AB")
    c = tir.decl_buffer((256,), "float32", name="C")
    scopes = {
        "fa": ("wmma.matrix_a", "float16"),
        "fb": ("wmma.matrix_b", "float16"),
        "fc": ("wmma.accumulator", "float32"),
    }
    memory = {
        name: tir.decl_buffer((256,), kind, name=name, scope=scope).data
        for name, (scope, kind) in scopes.items()
    }

    def do(name: str, *arguments: Any) -> tir.Stmt:
        return tir.Evaluate(tir.call_intrin("handle", f"tir.{name}", *arguments))

    shape = (16, 16, 16)
    body: tir.Stmt = tir.SeqStmt(
        [
            do("tvm_fill_fragment", memory["fc"], *shape, 0, tir.const(0.0, "float32")),
            do("tvm_load_matrix_sync", memory["fa"], *shape, 0, a.access_ptr("r"), 16, "row_major"),
            do("tvm_load_matrix_sync", memory["fb"], *shape, 0, b.access_ptr("r"), 16, "col_major"),
            do("tvm_mma_sync", memory["fc"], 0, memory["fa"], 0, memory["fb"], 0, memory["fc"], 0),
            do("tvm_store_matrix_sync", memory["fc"], *shape, 0, c.access_ptr("w"), 16, "row_major"),
        ]
    )
    for name, (_, kind) in scopes.items():
        body = tir.Allocate(memory[name], kind, [256], True, body)
    source = generate_cuda(launched(body, a, b, c))
    nvcc(source)
    assert "fragment<nvcuda::wmma::matrix_b, 16, 16, 16, half, nvcuda::wmma::col_major> fb[1];" in source
    assert "nvcuda::wmma::mma_sync(fc[0], fa[0], fb[0], fc[0]);" in source


def test_instructions(nvcc: Any) -> None:
    """What has no function in CUDA is inline assembly."""
    source = generate_cuda(kernels(tvm.lower(warp_product(32, 16, 32))))
    nvcc(source)
    assert 'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}' in source
    assert 'asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"' in source


def test_forgotten_bindings() -> None:
    """A schedule without threads is refused, with the tensors named."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
    with pytest.raises(
        LoweringError,
        match=r"Variable `B` is directly written by host code in loop i.*Did you forget to bind",
    ):
        tvm.build(te.create_schedule(b.op), [a, b], "cuda")


def test_unknown_thread_index() -> None:
    """A thread index that CUDA does not have is an error that lists those it has."""
    a = tir.decl_buffer((4,), name="A")
    axis = tir.IterVar((0, 4), "t", 1, "laneIdx.x")
    body = tir.AttrStmt(axis, "thread_extent", 4, tir.Store(a.data, tir.const(1.0, "float32"), axis.var))
    module = kernels(IRModule({"main": tir.PrimFunc([a], body, attrs={"global_symbol": "main"})}))
    with pytest.raises(CodegenError, match=r"CUDA has no thread index 'laneIdx.x'; it has blockIdx.x"):
        generate_cuda(module)
