"""Copies of buffers in other memory."""

from __future__ import annotations

import numpy as np
from tests.tir.schedule.programs import (
    Program,
    elementwise,
    matmul,
    matmul_relu,
    padded_sum,
    refused,
    two_consumers,
)

import tilewright as tvm
from tilewright import tir
from tilewright.script import tir as T


@T.prim_func
def double(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    B = T.match_buffer(b, (16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


@T.prim_func
def double_of_a_copy(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    B = T.match_buffer(b, (16, 8))
    A_shared = T.alloc_buffer((16, 8), scope="shared")
    for ax0, ax1 in T.grid(16, 8):
        with T.block("A_shared"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            A_shared[v0, v1] = A[v0, v1]
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A_shared[vi, vj] * 2.0


@T.prim_func
def double_by_a_copy(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    B = T.match_buffer(b, (16, 8))
    B_local = T.alloc_buffer((16, 8), scope="local")
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B_local[vi, vj] = A[vi, vj] * 2.0
    for ax0, ax1 in T.grid(16, 8):
        with T.block("B_local"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            B[v0, v1] = B_local[v0, v1]


def test_cache_read() -> None:
    """A block that copies stands before, and the reader reads the copy."""
    schedule = tir.Schedule(double, debug_mask="all")
    made = schedule.cache_read(schedule.get_block("B"), 0, "shared")
    assert schedule.get(made).name_hint == "A_shared"
    tvm.ir.assert_structural_equal(schedule.mod["main"], double_of_a_copy)


def test_cache_write() -> None:
    """The block writes to the copy, and a block that copies back stands after it."""
    schedule = tir.Schedule(double, debug_mask="all")
    made = schedule.cache_write(schedule.get_block("B"), 0, "local")
    assert schedule.get(made).name_hint == "B_local"
    tvm.ir.assert_structural_equal(schedule.mod["main"], double_by_a_copy)


def test_between_blocks() -> None:
    """A copy of what one block writes stands between it and all that read it."""
    program = two_consumers()
    schedule = tir.Schedule(program.function, debug_mask="all")
    schedule.cache_read(schedule.get_block("C"), 0, "global")
    root = schedule.get_block("root")
    assert [schedule.get(one).name_hint for one in schedule.get_child_blocks(root)] == [
        "B",
        "B_global",
        "C",
        "D",
    ]
    for name in "CD":
        assert schedule.get(schedule.get_block(name)).reads[-1].buffer.name == "B_global"
    program.check(schedule.mod["main"])


def test_inside_of_a_loop() -> None:
    """Where writer and reader share a loop, the copy stands in it, of what one iteration writes."""
    program = elementwise()
    schedule = tir.Schedule(program.function, debug_mask="all")
    i, _ = schedule.get_loops(schedule.get_block("C"))
    schedule.compute_at(schedule.get_block("B"), i)
    copy = schedule.cache_read(schedule.get_block("C"), 0, "global")
    assert [int(schedule.get(one).extent) for one in schedule.get_loops(copy)] == [12, 10]
    assert schedule.get(schedule.get_loops(copy)[0]) is schedule.get(i)
    program.check(schedule.mod["main"])


def test_copies_at_tiles() -> None:
    """The classic: operands copied tile by tile, the result kept apart until it is whole."""
    program = matmul_relu(12, 16, 10)
    schedule = tir.Schedule(program.function, debug_mask="all")
    c = schedule.get_block("C")
    a = schedule.cache_read(c, 1, "global")
    b = schedule.cache_read(c, 2, "global")
    w = schedule.cache_write(c, 0, "global")
    i, j, k = schedule.get_loops(c)
    i0, i1 = schedule.split(i, [None, 4])
    j0, j1 = schedule.split(j, [None, 8])
    k0, k1 = schedule.split(k, [None, 4])
    schedule.reorder(i0, j0, k0, i1, j1, k1)
    schedule.compute_at(a, k0)
    schedule.compute_at(b, k0)
    schedule.reverse_compute_at(w, j0)
    schedule.reverse_compute_at(schedule.get_block("D"), j0)
    schedule.parallel(i0)
    assert [int(schedule.get(one).extent) for one in schedule.get_loops(a)] == [3, 2, 3, 4, 4]
    program.check(schedule.mod["main"])


def test_refuses() -> None:
    """Numbers of nothing, blocks that do more than write once, reads through a view."""
    schedule = tir.Schedule(matmul().function)
    c = schedule.get_block("C")
    refused(
        schedule,
        lambda: schedule.cache_read(c, 3, "global"),
        "it reads 3 regions; 3 is the number of none of them",
    )
    refused(
        schedule, lambda: schedule.cache_write(c, 1, "global"), "it writes 1 regions; 1 is the number of none"
    )
    _, _, k = schedule.get_loops(c)
    schedule.decompose_reduction(c, k)
    refused(
        schedule,
        lambda: schedule.cache_write(c, 0, "global"),
        "it is neither a complete block nor a reduction",
    )
    refused(schedule, lambda: schedule.cache_read(c, 0, "global"), "more than one block writes C")


def test_copy_of_what_a_padding_block_writes() -> None:
    """Only what is written is copied; the rest of the program does not change its result."""
    program = padded_sum()
    schedule = tir.Schedule(program.function, debug_mask="all")
    schedule.cache_write(schedule.get_block("P"), 0, "global")
    schedule.cache_read(schedule.get_block("S"), 1, "global")
    program.check(schedule.mod["main"])


@T.prim_func
def shared_rows(b: T.handle, c: T.handle) -> None:
    A = T.alloc_buffer((12,))
    B = T.match_buffer(b, (12,))
    C = T.match_buffer(c, (12,))
    for i in range(3):
        for j in range(4):
            with T.block("A"):
                vi = T.axis.S(12, i * 4 + j)
                A[vi] = T.cast(vi, "float32")
        for j in range(4):
            with T.block("B"):
                vi = T.axis.S(12, i * 4 + j)
                B[vi] = A[vi] + 1.0
    for i in range(12):
        with T.block("C"):
            vi = T.axis.S(12, i)
            C[vi] = A[vi] * 2.0


@T.prim_func
def nested(b: T.handle, c: T.handle) -> None:
    A = T.alloc_buffer((12,))
    B = T.match_buffer(b, (12,))
    C = T.match_buffer(c, (12,))
    for i in range(3):
        with T.block("row"):
            v = T.axis.S(3, i)
            for j in range(4):
                with T.block("A"):
                    vi = T.axis.S(12, v * 4 + j)
                    A[vi] = T.cast(vi, "float32")
            for j in range(4):
                with T.block("B"):
                    vi = T.axis.S(12, v * 4 + j)
                    B[vi] = A[vi] + 1.0
    for i in range(12):
        with T.block("C"):
            vi = T.axis.S(12, i)
            C[vi] = A[vi] * 2.0


@T.prim_func
def accumulating(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (12,))
    B = T.match_buffer(b, (12,))
    for i in range(3):
        with T.block("row"):
            v = T.axis.S(3, i)
            for j in range(4):
                with T.block("A"):
                    vi = T.axis.S(12, v * 4 + j)
                    B[vi] = B[vi] + A[vi]


@T.prim_func
def by_pointer(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (4, 3))
    B = T.match_buffer(b, (4, 3))
    for i, j in T.grid(4, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B.data[vi * 3 + vj] = T.load("float32", A.data, vi * 3 + vj) + 1.0


@T.prim_func
def by_view(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (4, 3))
    B = T.match_buffer(b, (4, 3))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.S(4, i)
            T.reads(A[vi, 0:3])
            T.writes(B[vi, 0:3])
            row = T.match_buffer(A[vi, 0:3], (1, 3), "float32", strides=[3, 1], offset_factor=1)
            for j in range(3):
                B[vi, j] = row[0, j] + 1.0


def rows_program(function: tir.PrimFunc) -> Program:
    """Both of the programs above whose blocks share rows compute the same."""
    return Program(function, [(12,), (12,)], 2, lambda: (np.arange(12.0) + 1, np.arange(12.0) * 2))


def plus_one(function: tir.PrimFunc) -> Program:
    return Program(function, [(4, 3), (4, 3)], 1, lambda a: a + 1)


def test_a_copy_near_the_first_reader() -> None:
    """A block whose readers are in its own loop and outside of it is copied in its loop, row by row."""
    program = rows_program(shared_rows)
    for step, name in (("cache_read", "B"), ("cache_write", "A")):
        schedule = tir.Schedule(program.function, debug_mask="all")
        made = getattr(schedule, step)(schedule.get_block(name), 0, "global")
        assert [int(schedule.get(one).extent) for one in schedule.get_loops(made)] == [3, 4]
        program.check(schedule.mod["main"])


def test_blocks_of_blocks() -> None:
    """A block that reads what a block inside it writes can be copied from as a whole, and its blocks one by one."""
    program = rows_program(nested)
    schedule = tir.Schedule(program.function, debug_mask="all")
    schedule.cache_read(schedule.get_block("B"), 0, "global")
    schedule.cache_read(schedule.get_block("C"), 0, "global")
    schedule.cache_write(schedule.get_block("A"), 0, "global")
    schedule.cache_write(schedule.get_block("row"), 0, "global")
    program.check(schedule.mod["main"])


def test_refuses_values_from_before() -> None:
    """A block that adds to what was there cannot write elsewhere: that memory does not hold it. Nor can what a block
    changes be copied before it runs."""
    schedule = tir.Schedule(accumulating)
    row, inner = schedule.get_block("row"), schedule.get_block("A")
    refused(
        schedule,
        lambda: schedule.cache_write(row, 0, "global"),
        "reads B where nothing inside has written it",
    )
    refused(schedule, lambda: schedule.cache_write(inner, 0, "global"), "it reads the buffer that it writes")
    refused(schedule, lambda: schedule.cache_read(inner, 0, "global"), "it writes B itself")


def test_pointers_and_views() -> None:
    """What is used by its pointer is used by the pointer of the copy; a view stays in the memory it is declared in."""
    program = plus_one(by_pointer)
    schedule = tir.Schedule(program.function, debug_mask="all")
    schedule.cache_read(schedule.get_block("B"), 0, "global")
    schedule.cache_write(schedule.get_block("B"), 0, "global")
    program.check(schedule.mod["main"])
    program = plus_one(by_view)
    schedule = tir.Schedule(program.function, debug_mask="all")
    block = schedule.get_block("B")
    refused(
        schedule, lambda: schedule.cache_read(block, 0, "shared"), "a view, which is not in shared memory"
    )
    schedule.cache_read(block, 0, "global")
    program.check(schedule.mod["main"])
