"""Initialisations as blocks of their own."""

from __future__ import annotations

from tests.tir.schedule.programs import elementwise, matmul, refused, row_maximum

import tilewright as tvm
from tilewright import tir
from tilewright.script import tir as T


@T.prim_func
def total(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    B = T.match_buffer(b, (16,))
    for i, k in T.grid(16, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def total_decomposed(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    B = T.match_buffer(b, (16,))
    for i in T.serial(0, 16):
        with T.block("B_init"):
            vi = T.axis.spatial(16, i)
            B[vi] = 0.0
        for k in T.serial(0, 8):
            with T.block("B_update"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(B[vi], A[vi, vk])
                T.writes(B[vi])
                B[vi] = B[vi] + A[vi, vk]


def test_decompose() -> None:
    """The initialisation stands before the loop; the rest goes on without."""
    schedule = tir.Schedule(total, debug_mask="all")
    block = schedule.get_block("B")
    _, k = schedule.get_loops(block)
    made = schedule.decompose_reduction(block, k)
    assert schedule.get(made).name_hint == "B_init" and schedule.get(block).name_hint == "B_update"
    tvm.ir.assert_structural_equal(schedule.mod["main"], total_decomposed)


def test_decompose_a_tiled_product() -> None:
    """Copies of the loops over data inside the loop are the loops of the initialisation, and run as they do."""
    program = matmul(12, 16, 10)
    schedule = tir.Schedule(program.function, debug_mask="all")
    c = schedule.get_block("C")
    i, j, k = schedule.get_loops(c)
    i0, i1 = schedule.split(i, [None, 5])
    j0, j1 = schedule.split(j, [None, 8])
    k0, k1 = schedule.split(k, [None, 4])
    schedule.reorder(i0, j0, k0, i1, k1, j1)
    schedule.vectorize(j1)
    made = schedule.decompose_reduction(c, k0)
    kinds = [(int(schedule.get(one).extent), schedule.get(one).kind) for one in schedule.get_loops(made)]
    serial, lanes = tir.ForKind.SERIAL, tir.ForKind.VECTORIZED
    assert kinds == [(3, serial), (2, serial), (5, serial), (8, lanes)]
    assert str(schedule.state.realize(schedule.get_sref(made)).predicate) == "i_0 * 5 + i_1_init < 12"
    program.check(schedule.mod["main"])


def test_afterwards_data_loops_still_run_at_the_same_time() -> None:
    """Both blocks are independent over the loops around them."""
    program = matmul()
    schedule = tir.Schedule(program.function, debug_mask="all")
    c = schedule.get_block("C")
    i, j, k = schedule.get_loops(c)
    schedule.reorder(i, k, j)
    schedule.decompose_reduction(c, k)
    schedule.vectorize(j)
    schedule.parallel(i)
    program.check(schedule.mod["main"])


def test_refuses() -> None:
    """Blocks that do not reduce, loops too far inside or elsewhere, loops of data and reduction together."""
    schedule = tir.Schedule(elementwise().function)
    b = schedule.get_block("B")
    i, _ = schedule.get_loops(b)
    refused(
        schedule,
        lambda: schedule.decompose_reduction(b, i),
        "it is not a reduction: it has no initialisation",
    )
    schedule = tir.Schedule(row_maximum().function)
    b, c = schedule.get_block("B"), schedule.get_block("C")
    i, _ = schedule.get_loops(c)
    refused(schedule, lambda: schedule.decompose_reduction(b, i), "loop i is not around it")
    i, k = schedule.get_loops(b)
    schedule.reorder(k, i)
    refused(
        schedule,
        lambda: schedule.decompose_reduction(b, i),
        "loop k, over which it reduces, is outside loop i",
    )
    schedule.reorder(i, k)
    fused = schedule.fuse(i, k)
    refused(
        schedule,
        lambda: schedule.decompose_reduction(b, fused),
        "loop i_k_fused is used by data axes and reduction axes alike",
    )


def test_reads_of_the_updated_buffer_may_be_left_out() -> None:
    """A reduction that says what it reads need not name what it updates."""

    @T.prim_func
    def said(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16, 8))
        B = T.match_buffer(b, (16,))
        for i, k in T.grid(16, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]

    schedule = tir.Schedule(said, debug_mask="all")
    block = schedule.get_block("B")
    schedule.decompose_reduction(block, schedule.get_loops(block)[1])
    tvm.ir.assert_structural_equal(schedule.mod["main"], total_decomposed)
