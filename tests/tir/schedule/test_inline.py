"""Blocks put into their readers, or into what they read."""

from __future__ import annotations

import numpy as np
from tests.tir.schedule.programs import (
    Program,
    chain,
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
def chain_in_one(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    C = T.match_buffer(c, (16, 8))
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = A[vi, vj] * 2.0 + 1.0


def test_inline() -> None:
    """The value stands where it was read, the buffer is gone, and the reader's boxes are of what it reads now."""
    schedule = tir.Schedule(chain, debug_mask="all")
    schedule.compute_inline(schedule.get_block("B"))
    tvm.ir.assert_structural_equal(schedule.mod["main"], chain_in_one)


def test_reverse_inline() -> None:
    """The same program from the other side; the block that stays is the producer."""
    schedule = tir.Schedule(chain, debug_mask="all")
    consumer = schedule.get_block("C")
    producer = schedule.get_block("B")
    schedule.reverse_compute_inline(consumer)
    assert schedule.get(producer).name_hint == "B" and schedule.get_sref(producer).stmt is not None
    expected = chain_in_one.body.block.body.body.body.block
    tvm.ir.assert_structural_equal(schedule.get(producer).body, expected.body, map_free_vars=True)
    assert [region.buffer.name for region in schedule.get(producer).reads] == ["A"]
    refused(schedule, lambda: schedule.get(consumer), "the block of this random variable no longer exists")


def test_into_a_reduction_and_with_another_index() -> None:
    """Padding is computed where the sum reads it, at the sum's own index."""
    program = padded_sum()
    schedule = tir.Schedule(program.function, debug_mask="all")
    schedule.compute_inline(schedule.get_block("P"))
    assert [schedule.get(one).name_hint for one in schedule.get_child_blocks(schedule.get_block("root"))] == [
        "S"
    ]
    program.check(schedule.mod["main"])


def test_into_two_readers() -> None:
    """Every reader has its own copy of the value."""
    program = two_consumers()
    schedule = tir.Schedule(program.function, debug_mask="all")
    schedule.compute_inline(schedule.get_block("B"))
    assert not schedule.mod["main"].body.block.alloc_buffers
    program.check(schedule.mod["main"])


def test_after_loops_were_changed() -> None:
    """How the block's loops run does not matter to its value."""
    program = elementwise()
    schedule = tir.Schedule(program.function, debug_mask="all")
    c = schedule.get_block("C")
    fused = schedule.fuse(*schedule.get_loops(c))
    schedule.split(fused, [None, 7])
    schedule.compute_inline(schedule.get_block("B"))
    schedule.reverse_compute_inline(schedule.get_block("D"))
    program.check(schedule.mod["main"])
    assert [schedule.get(one).name_hint for one in schedule.get_child_blocks(schedule.get_block("root"))] == [
        "C"
    ]


def test_inline_refuses() -> None:
    """Outputs, reductions, and blocks that are the only one."""
    schedule = tir.Schedule(matmul_relu().function)
    c, d = schedule.get_block("C"), schedule.get_block("D")
    refused(
        schedule,
        lambda: schedule.compute_inline(d),
        "compute_inline on block D: D is an output: it must be written",
    )
    refused(
        schedule,
        lambda: schedule.compute_inline(c),
        "it is not a complete block: not all of its axes are data-par",
    )
    schedule = tir.Schedule(matmul().function)
    refused(schedule, lambda: schedule.compute_inline(schedule.get_block("C")), "C is an output")


def test_inline_needs_plain_indices() -> None:
    """A value can be computed anywhere only if its place says which one it is."""

    @T.prim_func
    def program(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (8,))
        C = T.match_buffer(c, (16,))
        B = T.alloc_buffer((16,))
        for i, r in T.grid(8, 2):
            with T.block("B"):
                vi, vr = T.axis.remap("SS", [i, r])
                B[vi * 2 + vr] = A[vi]
        for i in T.serial(0, 16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi]

    schedule = tir.Schedule(program)
    refused(
        schedule,
        lambda: schedule.compute_inline(schedule.get_block("B")),
        "the indices of B are not distinct axes",
    )


def test_reverse_inline_refuses() -> None:
    """Producers that are reductions or that others read, and readers of a part."""
    schedule = tir.Schedule(matmul_relu().function)
    c, d = schedule.get_block("C"), schedule.get_block("D")
    refused(
        schedule, lambda: schedule.reverse_compute_inline(d), "its producer, block C, is not a complete block"
    )
    refused(schedule, lambda: schedule.reverse_compute_inline(c), "it is not a complete block")
    schedule = tir.Schedule(two_consumers().function)
    refused(
        schedule,
        lambda: schedule.reverse_compute_inline(schedule.get_block("C")),
        "it is not the only one that reads B",
    )
    schedule = tir.Schedule(elementwise().function)
    refused(
        schedule,
        lambda: schedule.reverse_compute_inline(schedule.get_block("B")),
        "it has 0 producers, not one",
    )

    @T.prim_func
    def program(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (16,))
        C = T.match_buffer(c, (8,))
        B = T.alloc_buffer((16,))
        for i in T.serial(0, 16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi]
        for i in T.serial(0, 8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    schedule = tir.Schedule(program)
    refused(
        schedule,
        lambda: schedule.reverse_compute_inline(schedule.get_block("C")),
        "it does not certainly read all of B",
    )


def test_order_matters_where_a_buffer_is_written_again() -> None:
    """A scope in which a block overwrites what an earlier one reads keeps its order."""

    @T.prim_func
    def program(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (16,))
        C = T.match_buffer(c, (16,))
        B = T.alloc_buffer((16,))
        for i in T.serial(0, 16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi]
        for i in T.serial(0, 16):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                A[vi] = 0.0
        for i in T.serial(0, 16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi]

    schedule = tir.Schedule(program)
    message = "block A writes a buffer that block B reads before: the order of blocks matters"
    refused(schedule, lambda: schedule.compute_inline(schedule.get_block("B")), message)
    refused(schedule, lambda: schedule.cache_read(schedule.get_block("C"), 0, "global"), message)


@T.prim_func
def chosen(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 3))
    C = T.match_buffer(c, (4, 3))
    B = T.alloc_buffer((4, 3))
    for i, j in T.grid(4, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(4, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(B[i, j] < 2.0)
            C[vi, vj] = B[vi, vj] + 1.0


def test_inline_into_a_predicate() -> None:
    """The predicate of a block that reads the buffer reads what was to be in it."""
    schedule = tir.Schedule(chosen, debug_mask="all")
    schedule.compute_inline(schedule.get_block("B"))
    assert "T.where(A[i, j] * T.float32(2.0) < T.float32(2.0))" in schedule.mod.script()
    program = Program(chosen, [(4, 3), (4, 3)], 1, lambda a: np.where(a < 1, a * 2 + 1, 77.0))
    program.check(schedule.mod["main"])
