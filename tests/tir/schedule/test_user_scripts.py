"""Schedules as users write them, from the first step to numbers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tir.schedule.programs import matmul, matmul_relu, refused, row_maximum

import tilewright as tvm
from tilewright import tir
from tilewright.script import tir as T
from tilewright.support.errors import LoweringError


def test_a_tiled_product() -> None:
    """Tiles, lanes, threads, and the start of the sum before its loop."""
    program = matmul(64, 48, 40)
    schedule = tir.Schedule(program.function)
    block = schedule.get_block("C")
    i, j, k = schedule.get_loops(block)
    i0, i1 = schedule.split(i, [None, 8])
    j0, j1 = schedule.split(j, [None, 16])
    k0, k1 = schedule.split(k, [None, 4])
    schedule.reorder(i0, j0, k0, i1, k1, j1)
    schedule.vectorize(j1)
    schedule.parallel(i0)
    schedule.decompose_reduction(block, k0)
    text = schedule.mod["main"].script()
    assert "for i_0 in T.parallel(8)" in text and "T.vectorized(16)" in text and 'T.block("C_init")' in text
    program.check(schedule.mod["main"])


def test_a_whole_module_is_built() -> None:
    """``sch.mod`` itself goes to ``build``."""
    program = matmul_relu()
    schedule = tir.Schedule(program.function)
    schedule.reverse_compute_at(schedule.get_block("D"), schedule.get_loops(schedule.get_block("C"))[0])
    arrays = [tvm.nd.array(array) for array in program.arrays(1)]
    tvm.build(schedule.mod, target="llvm")(*arrays)
    a, b, c = (array.numpy() for array in arrays)
    np.testing.assert_array_equal(c, np.maximum(a @ b, 0))


def test_guards_leave_the_inner_loops() -> None:
    """Of a split that does not divide, all but the last part runs without a condition."""
    program = matmul(8, 21, 4)
    schedule = tir.Schedule(program.function)
    block = schedule.get_block("C")
    _, j, k = schedule.get_loops(block)
    j0, j1 = schedule.split(j, [None, 8])
    schedule.reorder(j0, k, j1)
    schedule.vectorize(j1)
    schedule.decompose_reduction(block, k)
    text = str(tvm.lower(schedule.mod)["main"])
    whole = text[: text.index("T.likely")] if "T.likely" in text else text
    assert "float32x8" in whole and "if " not in whole
    program.check(schedule.mod["main"])


def test_a_kernel_with_shared_memory() -> None:
    """Operands in shared memory, which the threads of a block fill together, and the sum in registers."""
    program = matmul(16, 16, 8)
    schedule = tir.Schedule(program.function, debug_mask="all")
    block = schedule.get_block("C")
    a = schedule.cache_read(block, 1, "shared")
    b = schedule.cache_read(block, 2, "shared")
    local = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    i0, i1 = schedule.split(i, [None, 4])
    j0, j1 = schedule.split(j, [None, 4])
    k0, k1 = schedule.split(k, [None, 4])
    schedule.reorder(i0, j0, i1, j1, k0, k1)
    axes = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, axis in zip((i0, j0, i1, j1), axes, strict=True):
        schedule.bind(loop, axis)
    schedule.reverse_compute_at(local, j1)
    for copy in (a, b):
        schedule.compute_at(copy, k0)
        first, second = schedule.get_loops(copy)[-2:]
        schedule.bind(first, "threadIdx.y")
        schedule.bind(second, "threadIdx.x")
    schedule.decompose_reduction(block, k0)
    program.check(schedule.mod["main"], compiled=False)
    program.check(tvm.lower(schedule.mod)["main"], compiled=False)
    source = tvm.build(schedule.mod["main"], target="cuda").imported_modules[0].get_source()
    assert source.count("__shared__ __align__(16) float") == 2 and source.count("__syncthreads()") == 2
    assert "A_shared[16]" in source and "B_shared[16]" in source and "C_local[1]" in source


def test_threads_that_share_memory_do_not_reduce_into_it() -> None:
    """A reduction of one thread for itself cannot be put into memory of all: they would add to one place."""
    program = row_maximum(8, 8)
    schedule = tir.Schedule(program.function)
    b, c = schedule.get_block("B"), schedule.get_block("C")
    schedule.cache_write(b, 0, "shared")
    schedule.compute_inline(schedule.get_block("B_shared"))
    i, j = schedule.get_loops(c)
    schedule.bind(i, "blockIdx.x")
    schedule.bind(j, "threadIdx.x")
    refused(
        schedule,
        lambda: schedule.compute_at(b, j),
        "iterations may write the same place: no axis depends on the loop",
    )
    schedule.compute_at(b, i)
    with pytest.raises(
        LoweringError, match="block B updates B_shared, which the threads of threadIdx.x share"
    ):
        tvm.build(schedule.mod["main"], target="cuda")


def test_blocks_without_axes() -> None:
    """A block that uses the loop's variable itself: the new value stands in its body, and the guard at the block."""

    @T.prim_func
    def program(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (10,))
        B = T.match_buffer(b, (10,))
        for i in T.serial(0, 10):
            with T.block("B"):
                T.reads(A[i])
                T.writes(B[i])
                B[i] = A[i] + 1.0

    schedule = tir.Schedule(program, debug_mask="all")
    block = schedule.get_block("B")
    (i,) = schedule.get_loops(block)
    outer, inner = schedule.split(i, [None, 4])
    text = schedule.mod["main"].script()
    assert "T.where(i_0 * 4 + i_1 < 10)" in text and "B[i_0 * 4 + i_1] = A[i_0 * 4 + i_1]" in text
    refused(
        schedule,
        lambda: schedule.reorder(inner, outer),
        "it has no axes, but uses the variables of the loops",
    )
    refused(schedule, lambda: schedule.parallel(outer), "no axis depends on the loop in block B")
    schedule.fuse(outer, inner)
    values = [tvm.nd.array(np.arange(10, dtype="float32")), tvm.nd.array(np.zeros(10, "float32"))]
    tvm.build(schedule.mod["main"], target="llvm")(*values)
    np.testing.assert_array_equal(values[1].numpy(), np.arange(10) + 1)


def test_shapes_that_are_not_known() -> None:
    """Loops of unknown length are split with a guard and run in parallel."""

    @T.prim_func
    def program(a: T.handle, b: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (n, 6))
        B = T.match_buffer(b, (n, 6))
        for i, j in T.grid(n, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

    schedule = tir.Schedule(program, debug_mask="all")
    block = schedule.get_block("B")
    i, j = schedule.get_loops(block)
    outer, inner = schedule.split(i, [None, 4])
    schedule.reorder(outer, j, inner)
    schedule.parallel(outer)
    assert str(schedule.get(outer).extent) == "(n + 3) // 4"
    for size in (1, 4, 11):
        values = np.arange(size * 6, dtype="float32").reshape(size, 6)
        arrays = [tvm.nd.array(values), tvm.nd.array(np.zeros_like(values))]
        tvm.build(schedule.mod["main"], target="llvm")(*arrays, size)
        np.testing.assert_array_equal(arrays[1].numpy(), values * 2)
