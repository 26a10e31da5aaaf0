"""Copies of buffers in other memory."""

from __future__ import annotations

from tests.tir.schedule.programs import elementwise, matmul, matmul_relu, padded_sum, refused, two_consumers

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
