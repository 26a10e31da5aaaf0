"""Reductions of blocks over threads: what they become, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tir.schedule.programs import refused

import tilewright as tvm
from tilewright import te, tir
from tilewright.script import tir as T
from tilewright.support.errors import LoweringError
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform import LowerCrossThreadReduction


@T.prim_func
def row_sums(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (3, 20))
    B = T.match_buffer(b, (3,))
    for i, k in T.grid(3, 20):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def row_sums_by_threads(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (3, 20))
    B = T.match_buffer(b, (3,))
    total = T.alloc_buffer([1], dtype="float32", scope="local", strides=[1])
    own = T.alloc_buffer([1], dtype="float32", scope="local", strides=[1])
    for i in T.serial(3):
        for k_1 in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B_in_thread_init"):
                T.reads()
                T.writes(own[0])
                own[0] = 0.0
            for k_0 in T.serial(5):
                with T.block("B_in_thread"):
                    vi = T.axis.S(3, i)
                    vk = T.axis.R(20, k_0 * 4 + k_1)
                    T.reads(A[vi, vk], own[0])
                    T.writes(own[0])
                    own[0] = own[0] + A[vi, vk]
            with T.block("B_cross_thread"):
                T.reads(own[0])
                T.writes(total[0])
                T.attr(
                    T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                    "reduce_scope",
                    T.reinterpret(T.uint64(0), dtype="handle"),
                )
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), own[0], True, total.data, k_1, dtype="handle"))
            with T.block("B_write_back"):
                vi = T.axis.S(3, i)
                T.reads(total[0])
                T.writes(B[vi])
                B[vi] = total[0]


@T.prim_func
def maximum(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (3, 4, 20))
    B = T.match_buffer(b, (3,))
    for i, j, k in T.grid(3, 4, 20):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                B[vi] = T.min_value("float32")
            B[vi] = T.max(B[vi], A[vi, vj, vk])


@T.prim_func
def doubled_sums(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (3, 4, 5))
    B = T.match_buffer(b, (3,))
    D = T.alloc_buffer((3, 4, 5))
    for i in T.thread_binding(3, thread="blockIdx.x"):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            for k in range(5):
                with T.block("D"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    D[vi, vj, vk] = A[vi, vj, vk] * 2.0
                with T.block("B"):
                    vi, vj, vk = T.axis.remap("SRR", [i, j, k])
                    with T.init():
                        B[vi] = 0.0
                    B[vi] = B[vi] + D[vi, vj, vk]


@T.prim_func
def used_too_early(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (20,))
    B = T.match_buffer(b, (1,))
    C = T.match_buffer(c, (20,))
    for k in T.thread_binding(20, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.S(1, 0)
            vk = T.axis.R(20, k)
            with T.init():
                B[v] = 0.0
            B[v] = B[v] + A[vk]
        with T.block("C"):
            vk = T.axis.S(20, k)
            C[vk] = B[0]


@T.prim_func
def under_a_condition(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (20,))
    B = T.match_buffer(b, (1,))
    for k in T.thread_binding(20, thread="threadIdx.x"):
        if k < 10:
            with T.block("B"):
                v = T.axis.S(1, 0)
                vk = T.axis.R(20, k)
                with T.init():
                    B[v] = 0.0
                B[v] = B[v] + A[vk]


def test_the_form() -> None:
    """Each thread's own sum, the sum over the threads, and the store of the result."""
    schedule = tir.Schedule(row_sums, debug_mask="all")
    _, k = schedule.get_loops(schedule.get_block("B"))
    schedule.bind(schedule.split(k, [None, 4])[1], "threadIdx.x")
    made = LowerCrossThreadReduction()(schedule.mod)
    tvm.ir.assert_structural_equal(made["main"], row_sums_by_threads)


@pytest.mark.parametrize("threads", [4, 20, 8, 32])
def test_sums(threads: int) -> None:
    """Threads that divide the rows, that are all of a row, that do not divide it, and that are more than it has."""
    schedule = tir.Schedule(row_sums, debug_mask="all")
    i, k = schedule.get_loops(schedule.get_block("B"))
    schedule.bind(schedule.split(k, [None, threads])[1], "threadIdx.x")
    schedule.bind(i, "blockIdx.x")
    a, b = np.arange(60, dtype="float32").reshape(3, 20) - 11, np.full(3, 77, "float32")
    interpret(tvm.lower(schedule.mod)["main"], a, b)
    np.testing.assert_array_equal(b, a.sum(axis=1))


def test_two_thread_axes() -> None:
    """A maximum over two axes of threads."""
    schedule = tir.Schedule(maximum, debug_mask="all")
    _, j, k = schedule.get_loops(schedule.get_block("B"))
    schedule.bind(j, "threadIdx.y")
    schedule.bind(k, "threadIdx.x")
    a, b = -np.arange(240, dtype="float32").reshape(3, 4, 20) - 1, np.zeros(3, "float32")
    interpret(tvm.lower(schedule.mod)["main"], a, b)
    np.testing.assert_array_equal(b, a.max(axis=(1, 2)))


def test_other_blocks_in_the_loops() -> None:
    """Each thread computes what it adds up in the same loops; the sum over the threads comes after them."""
    a, b = np.arange(60, dtype="float32").reshape(3, 4, 5) - 11, np.full(3, 77, "float32")
    interpret(tvm.lower(tvm.IRModule({"main": doubled_sums}))["main"], a, b)
    np.testing.assert_array_equal(b, a.sum(axis=(1, 2)) * 2)


def test_tensor_expressions() -> None:
    """A maximum that a tensor expression describes, which starts from minus infinity."""
    A, k = te.placeholder((3, 20), name="A"), te.reduce_axis((0, 20), "k")
    B = te.compute((3,), lambda i: te.max(A[i, k], axis=k), name="B")
    schedule = tir.Schedule(te.create_prim_func([A, B]))
    _, k = schedule.get_loops(schedule.get_block("B"))
    schedule.bind(schedule.split(k, [None, 8])[1], "threadIdx.x")
    a, b = -np.arange(60, dtype="float32").reshape(3, 20), np.ones(3, "float32")
    interpret(tvm.lower(schedule.mod)["main"], a, b)
    np.testing.assert_array_equal(b, a.max(axis=1))


def test_what_threads_cannot_combine() -> None:
    """Blocks of threads, loops of data axes inside, other statements in the loop, starts other than the identity."""
    schedule = tir.Schedule(row_sums)
    i, k = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.bind(k, "blockIdx.x"), "only threads of one block of threads")
    schedule.bind(k, "threadIdx.x")
    schedule.reorder(k, i)
    with pytest.raises(LoweringError, match="loop i, over which it does not reduce, is inside"):
        tvm.lower(schedule.mod)
    other = tvm.script.from_source(
        row_sums.script().replace("B[vi] = T.float32(0.0)", "B[vi] = T.float32(3.0)")
    )
    schedule = tir.Schedule(other)
    _, k = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.bind(k, "threadIdx.x"), "that starts with the identity; use rfactor")
    with pytest.raises(LoweringError, match="block C uses B in the loops over threads"):
        LowerCrossThreadReduction()(tvm.IRModule({"main": used_too_early}))
    with pytest.raises(LoweringError, match="block B reduces over threads in a loop with other statements"):
        LowerCrossThreadReduction()(tvm.IRModule({"main": under_a_condition}))
