"""Blocks moved to loops of their readers, and of what they read."""

from __future__ import annotations

from tests.tir.schedule.programs import (
    chain,
    elementwise,
    matmul_relu,
    padded_sum,
    refused,
    row_maximum,
    two_consumers,
)

import tilewright as tvm
from tilewright import tir
from tilewright.script import tir as T


@T.prim_func
def row_by_row(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    C = T.match_buffer(c, (16, 8))
    B = T.alloc_buffer((16, 8))
    for i in T.serial(0, 16):
        for ax0 in T.serial(0, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, ax0])
                B[vi, vj] = A[vi, vj] * 2.0
        for j in T.serial(0, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1.0


def test_compute_at() -> None:
    """One row of the producer in each iteration of the reader's outer loop."""
    schedule = tir.Schedule(chain, debug_mask="all")
    i, _ = schedule.get_loops(schedule.get_block("C"))
    schedule.compute_at(schedule.get_block("B"), i)
    tvm.ir.assert_structural_equal(schedule.mod["main"], row_by_row)


def test_reverse_compute_at() -> None:
    """The same program, with the reader moved."""
    schedule = tir.Schedule(chain, debug_mask="all")
    i, _ = schedule.get_loops(schedule.get_block("B"))
    schedule.reverse_compute_at(schedule.get_block("C"), i)
    tvm.ir.assert_structural_equal(schedule.mod["main"], row_by_row)


def test_loops_of_one_iteration() -> None:
    """They are left out, or kept if so wanted."""
    for keep, count in ((False, 2), (True, 4)):
        schedule = tir.Schedule(chain, debug_mask="all")
        block = schedule.get_block("B")
        _, j = schedule.get_loops(schedule.get_block("C"))
        schedule.compute_at(block, j, preserve_unit_loops=keep)
        assert len(schedule.get_loops(block)) == count


def test_what_readers_of_a_tile_need() -> None:
    """A sum of three neighbours in tiles of four needs six elements, but none beyond the ends of the buffer."""
    program = padded_sum(14)
    schedule = tir.Schedule(program.function, debug_mask="all")
    i, _ = schedule.get_loops(schedule.get_block("S"))
    outer, _ = schedule.split(i, [None, 4])
    block = schedule.get_block("P")
    schedule.compute_at(block, outer)
    _, inner = schedule.get_loops(block)
    assert schedule.get(inner).extent == 6
    assert "T.where(i_0 * 4 + ax0 < 16)" in schedule.mod["main"].script()
    program.check(schedule.mod["main"])


def test_in_parallel() -> None:
    """Each iteration of a parallel loop computes what it needs into memory of its own."""
    program = padded_sum(14)
    schedule = tir.Schedule(program.function, debug_mask="all")
    i, _ = schedule.get_loops(schedule.get_block("S"))
    outer, _ = schedule.split(i, [None, 4])
    schedule.parallel(outer)
    schedule.compute_at(schedule.get_block("P"), outer)
    program.check(schedule.mod["main"])
    again = tir.Schedule(program.function, debug_mask="all")
    outer, _ = again.split(again.get_loops(again.get_block("S"))[0], [None, 4])
    again.compute_at(again.get_block("P"), outer)
    again.parallel(outer)
    tvm.ir.assert_structural_equal(again.mod, schedule.mod)


def test_epilogue() -> None:
    """A product in tiles, its epilogue on each tile when the tile is finished."""
    program = matmul_relu(12, 16, 10)
    schedule = tir.Schedule(program.function, debug_mask="all")
    c, d = schedule.get_block("C"), schedule.get_block("D")
    i, j, k = schedule.get_loops(c)
    i0, i1 = schedule.split(i, [None, 4])
    j0, j1 = schedule.split(j, [None, 8])
    schedule.reorder(i0, j0, k, i1, j1)
    refused(
        schedule,
        lambda: schedule.reverse_compute_at(d, k),
        "reverse_compute_at on block D: the reduction of block C is not finished in one iteration of loop k",
    )
    schedule.reverse_compute_at(d, j0)
    assert [int(schedule.get(one).extent) for one in schedule.get_loops(d)] == [3, 2, 4, 8]
    program.check(schedule.mod["main"])


def test_tiles_that_do_not_divide() -> None:
    """The part of the last tile that is outside the buffer is not computed."""
    program = matmul_relu(10, 14, 6)
    schedule = tir.Schedule(program.function, debug_mask="all")
    i, j, k = schedule.get_loops(schedule.get_block("C"))
    i0, i1 = schedule.split(i, [None, 4])
    j0, j1 = schedule.split(j, [None, 8])
    schedule.reorder(i0, j0, k, i1, j1)
    schedule.reverse_compute_at(schedule.get_block("D"), j0)
    assert "T.where(i_0 * 4 + ax0 < 10 and j_0 * 8 + ax1 < 14)" in schedule.mod["main"].script()
    program.check(schedule.mod["main"])


def test_a_reduction_at_its_reader() -> None:
    """The whole reduction runs for what is read."""
    program = row_maximum()
    schedule = tir.Schedule(program.function, debug_mask="all")
    i, _ = schedule.get_loops(schedule.get_block("C"))
    schedule.compute_at(schedule.get_block("B"), i)
    program.check(schedule.mod["main"])


def test_compute_at_refuses() -> None:
    """Readers elsewhere, outputs, other scopes, lanes."""
    schedule = tir.Schedule(two_consumers().function)
    b, c, d = (schedule.get_block(name) for name in "BCD")
    i, j = schedule.get_loops(c)
    refused(
        schedule,
        lambda: schedule.compute_at(b, i),
        "requires all the consumers to be inside loop i",
    )
    refused(schedule, lambda: schedule.compute_at(d, i), "it is an output block: all of D must be written")
    refused(schedule, lambda: schedule.compute_at(c, i), "loop i is an ancestor of block")
    schedule = tir.Schedule(elementwise().function)
    b, c = schedule.get_block("B"), schedule.get_block("C")
    i, j = schedule.get_loops(c)
    schedule.vectorize(j)
    refused(
        schedule, lambda: schedule.compute_at(b, j), "loop j is vectorized: no block can be moved into lanes"
    )


def test_reverse_compute_at_refuses() -> None:
    """Reads beyond the tile, producers elsewhere."""
    schedule = tir.Schedule(padded_sum().function)
    (i,) = schedule.get_loops(schedule.get_block("P"))
    outer, _ = schedule.split(i, [None, 4])
    refused(
        schedule,
        lambda: schedule.reverse_compute_at(schedule.get_block("S"), outer),
        r"it reads P at v_i \+ v_r, which is not a data-parallel axis",
    )
    schedule = tir.Schedule(elementwise().function)
    i, _ = schedule.get_loops(schedule.get_block("D"))
    refused(
        schedule,
        lambda: schedule.reverse_compute_at(schedule.get_block("B"), i),
        "none of its producers is inside loop i",
    )


def test_partial_writes_are_not_taken_for_whole() -> None:
    """Where a producer writes under a condition, nobody may rely on a tile being there."""

    @T.prim_func
    def program(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (16,))
        C = T.match_buffer(c, (16,))
        B = T.alloc_buffer((16,))
        for i in T.serial(0, 16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                if A[vi] > 0.0:
                    B[vi] = A[vi]
        for i in T.serial(0, 16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi]

    schedule = tir.Schedule(program)
    (i,) = schedule.get_loops(schedule.get_block("B"))
    refused(
        schedule,
        lambda: schedule.reverse_compute_at(schedule.get_block("C"), i),
        "it cannot be told which part of B an iteration of loop i writes",
    )
    refused(
        schedule,
        lambda: schedule.cache_write(schedule.get_block("B"), 0, "global"),
        "it cannot be told which part of B block B writes",
    )


def test_compute_at_keeps_the_variables_of_unit_loops() -> None:
    """A loop of one iteration that is preserved is part of the axis's value."""
    schedule = tir.Schedule(elementwise().function)
    loop = schedule.get_loops(schedule.get_block("C"))[0]
    schedule.compute_at(schedule.get_block("B"), loop, preserve_unit_loops=True)
    assert "i + ax0" in schedule.mod["main"].script()
