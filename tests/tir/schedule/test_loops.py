"""Loops cut, joined and put in another order: what becomes of the program, and what is refused."""

from __future__ import annotations

import numpy as np
from tests.tir.schedule.programs import Program, elementwise, matmul, matmul_relu, padded_sum, refused

import tilewright as tvm
from tilewright import tir
from tilewright.script import tir as T


def test_split_that_divides() -> None:
    """Two loops for one, no condition, and the block's axis is their sum."""
    schedule = tir.Schedule(elementwise(12, 10).function, debug_mask="all")
    i, _ = schedule.get_loops(schedule.get_block("B"))
    outer, inner = schedule.split(i, factors=[None, 4])
    assert schedule.get(outer).extent == 3 and schedule.get(inner).extent == 4
    realize = schedule.state.realize(schedule.get_sref(schedule.get_block("B")))
    assert str(realize.iter_values[0]) == "i_0 * 4 + i_1" and str(realize.predicate) in (
        "True",
        "T.bool(True)",
    )
    elementwise(12, 10).check(schedule.mod["main"])


def test_split_that_does_not_divide() -> None:
    """The blocks below get the condition that the original loop had not ended."""
    program = matmul(10, 16, 7)
    schedule = tir.Schedule(program.function, debug_mask="all")
    i, _, k = schedule.get_loops(schedule.get_block("C"))
    schedule.split(i, factors=[4, None])
    schedule.split(k, factors=[None, 2, 2])
    text = schedule.mod["main"].script()
    assert "T.where(i_0 * 3 + i_1 < 10 and " in text
    assert "k_0 * 4 + k_1 * 2 + k_2" in text and "in T.grid(4, 3, 16, 2, 2, 2)" in text
    program.check(schedule.mod["main"])


def test_split_is_what_one_would_write() -> None:
    """The result is structurally the program that one writes by hand."""

    @T.prim_func
    def given(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16,))
        B = T.match_buffer(b, (16,))
        for i in T.serial(0, 16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] + 1.0

    @T.prim_func
    def expected(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16,))
        B = T.match_buffer(b, (16,))
        for i0, i1 in T.grid(4, 5):
            with T.block("B"):
                vi = T.axis.spatial(16, i0 * 5 + i1)
                T.where(i0 * 5 + i1 < 16)
                B[vi] = A[vi] + 1.0

    schedule = tir.Schedule(given)
    (loop,) = schedule.get_loops(schedule.get_block("B"))
    schedule.split(loop, [4, 5])
    tvm.ir.assert_structural_equal(schedule.mod["main"], expected)


def test_split_refuses() -> None:
    """Wrong factors and loops that are more than serial loops from zero."""
    schedule = tir.Schedule(elementwise().function)
    i, j = schedule.get_loops(schedule.get_block("B"))
    refused(
        schedule, lambda: schedule.split(i, [None, None]), "split on loop i: more than one factor is None"
    )
    refused(
        schedule,
        lambda: schedule.split(i, [2, 3]),
        "the product of the factors, 6, is less than the extent, 12",
    )
    refused(schedule, lambda: schedule.split(i, [None, 0]), "the factor 0 is not positive")
    refused(schedule, lambda: schedule.split(i, []), "no factors are given")
    refused(
        schedule,
        lambda: schedule.split(i, ["x"]),
        "neither an integer nor a number that this schedule sampled",
    )
    schedule.parallel(i)
    refused(schedule, lambda: schedule.split(i, [None, 4]), "the loop is parallel already")
    schedule.unroll(j)
    refused(schedule, lambda: schedule.split(j, [None, 2]), "the loop is unrolled already")


def test_fuse() -> None:
    """The fused loop runs over all pairs; splitting as before gives the old values back."""
    program = elementwise(12, 10)
    schedule = tir.Schedule(program.function, debug_mask="all")
    block = schedule.get_block("C")
    fused = schedule.fuse(*schedule.get_loops(block))
    assert schedule.get(fused).extent == 120
    values = schedule.state.realize(schedule.get_sref(block)).iter_values
    assert [str(one) for one in values] == ["i_j_fused // 10", "i_j_fused % 10"]
    schedule.split(fused, [12, 10])
    values = schedule.state.realize(schedule.get_sref(block)).iter_values
    assert [str(one) for one in values] == ["i_j_fused_0", "i_j_fused_1"]
    program.check(schedule.mod["main"])


def test_fuse_after_split_simplifies() -> None:
    """Splitting and fusing again is the loop that was there."""
    schedule = tir.Schedule(elementwise(12, 10).function)
    block = schedule.get_block("B")
    i, _ = schedule.get_loops(block)
    fused = schedule.fuse(*schedule.split(i, [3, 4]))
    values = schedule.state.realize(schedule.get_sref(block)).iter_values
    assert str(values[0]) == schedule.get(fused).loop_var.name


def test_fuse_of_symbolic_extents() -> None:
    """The outermost index is one division by the product of the other extents."""

    @T.prim_func
    def program(a: T.handle, b: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (8, 4, n))
        B = T.match_buffer(b, (8, 4, n))
        for i, j, k in T.grid(8, 4, n):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk] * 2.0

    schedule = tir.Schedule(program)
    schedule.fuse(*schedule.get_loops(schedule.get_block("B")))
    assert "i_j_k_fused // (n * 4))" in schedule.mod["main"].script()


def test_fuse_refuses() -> None:
    """Loops of different nests, in the wrong order, or that run otherwise."""
    schedule = tir.Schedule(elementwise().function)
    i, j = schedule.get_loops(schedule.get_block("B"))
    x, _ = schedule.get_loops(schedule.get_block("C"))
    refused(schedule, lambda: schedule.fuse(j, i), "it is not the only statement directly inside loop j")
    refused(schedule, lambda: schedule.fuse(i, x), "it is not the only statement directly inside loop i")
    refused(schedule, lambda: schedule.fuse(), "no loops are given")
    schedule.vectorize(j)
    refused(schedule, lambda: schedule.fuse(i, j), "fuse on loop j: the loop is vectorized already")


def test_reorder() -> None:
    """Named loops change places among themselves, others stay."""
    program = matmul()
    schedule = tir.Schedule(program.function, debug_mask="all")
    block = schedule.get_block("C")
    i, _, k = schedule.get_loops(block)
    schedule.reorder(k, i)
    assert [schedule.get(one).loop_var.name for one in schedule.get_loops(block)] == ["k", "j", "i"]
    program.check(schedule.mod["main"])


def test_reorder_refuses() -> None:
    """Loops twice, of different nests, or around blocks one of which uses what other iterations of another wrote."""
    schedule = tir.Schedule(elementwise().function)
    i, j = schedule.get_loops(schedule.get_block("B"))
    x, _ = schedule.get_loops(schedule.get_block("C"))
    refused(schedule, lambda: schedule.reorder(i, i), "the loop is given twice")
    refused(schedule, lambda: schedule.reorder(i, x), "it is not in one nest with")

    @T.prim_func
    def diagonal(a: T.handle) -> None:
        A = T.match_buffer(a, (8, 8))
        for i, j in T.grid(7, 7):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = 1.0
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj + 1] = A[vi, vj + 1] + 2.0

    schedule = tir.Schedule(diagonal)
    i, j = schedule.get_loops(schedule.get_block("A"))
    refused(
        schedule,
        lambda: schedule.reorder(j, i),
        "shown that block B uses of A only what block A writes",
    )
    refused(
        schedule,
        lambda: schedule.parallel(i),
        "shown that block B uses of A only what block A writes",
    )


def test_reorder_needs_affine_bindings() -> None:
    """A block whose axis is not an affine map of the loops keeps its order."""

    @T.prim_func
    def overlapping(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16,))
        B = T.match_buffer(b, (16,))
        for i, j in T.grid(7, 4):
            with T.block("B"):
                vi = T.axis.spatial(16, i * 2 + j)
                B[vi] = A[vi]

    schedule = tir.Schedule(overlapping)
    i, j = schedule.get_loops(schedule.get_block("B"))
    refused(
        schedule, lambda: schedule.reorder(j, i), "the values of its axes are not an affine map of the loops"
    )


def test_reorder_needs_whole_domains() -> None:
    """A block whose axis takes only some values of its domain keeps its order, as in TVM."""

    @T.prim_func
    def with_gaps(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (4, 16))
        B = T.match_buffer(b, (4, 16))
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(16, j * 2)
                B[vi, vj] = A[vi, vj]

    schedule = tir.Schedule(with_gaps)
    i, j = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.reorder(j, i), "the values of an axis leave out some of its domain")


def test_reorder_keeps_the_initialisation_first() -> None:
    """Parts of a loop over data and reduction together stay in their order: the sum starts at the first of them."""
    program = matmul()
    schedule = tir.Schedule(program.function)
    i, j, k = schedule.get_loops(schedule.get_block("C"))
    outer, inner = schedule.split(schedule.fuse(j, k), [None, 6])
    refused(
        schedule,
        lambda: schedule.reorder(inner, outer),
        "it is used by data axes and reduction axes of block C alike",
    )
    program.check(schedule.mod["main"])


def test_repeated_reductions_keep_their_order() -> None:
    """A reduction under a loop that its axes do not use starts anew each time: in another order it would not."""

    @T.prim_func
    def repeated(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16, 8))
        B = T.match_buffer(b, (16,))
        for _r, i, k in T.grid(2, 16, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]

    schedule = tir.Schedule(repeated)
    block = schedule.get_block("B")
    r, i, k = schedule.get_loops(block)
    message = "it is repeated over loop _r, which none of its axes uses"
    refused(schedule, lambda: schedule.reorder(k, r), f"reorder on block B: {message}")
    refused(
        schedule, lambda: schedule.decompose_reduction(block, r), f"decompose_reduction on block B: {message}"
    )
    refused(schedule, lambda: schedule.rfactor(k, 0), f"rfactor on block B: {message}")
    schedule.reorder(k, i)
    schedule.decompose_reduction(block, k)


def test_extents_that_depend_on_outer_loops() -> None:
    """A loop cannot be fused with, or moved out of, the loop that its extent depends on."""

    @T.prim_func
    def triangle(b: T.handle) -> None:
        B = T.match_buffer(b, (8, 8))
        for i in T.serial(0, 8):
            for j in T.serial(0, i + 1):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = 1.0

    schedule = tir.Schedule(triangle)
    i, j = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.fuse(i, j), "its extent depends on a loop that it is to be fused with")
    refused(schedule, lambda: schedule.reorder(j, i), "its range depends on loop i")


def test_random_variables_stay_valid() -> None:
    """A step at one place leaves what names loops and blocks at other places alone; what it replaced is gone."""
    program = matmul_relu()
    schedule = tir.Schedule(program.function, debug_mask="all")
    c, d = schedule.get_block("C"), schedule.get_block("D")
    i, j, k = schedule.get_loops(c)
    x, y = schedule.get_loops(d)
    schedule.split(i, [None, 4])
    schedule.fuse(x, y)
    schedule.reorder(k, j)
    assert schedule.get(j).loop_var.name == "j" and schedule.get(c).name_hint == "C"
    refused(
        schedule,
        lambda: schedule.split(i, [None, 2]),
        "the loop of this random variable no longer exists",
    )
    program.check(schedule.mod["main"])


def test_padding_is_kept() -> None:
    """A condition of a value has nothing to do with that of a split."""
    program = padded_sum(14)
    schedule = tir.Schedule(program.function, debug_mask="all")
    (i,) = schedule.get_loops(schedule.get_block("P"))
    schedule.split(i, [None, 3])
    s, _ = schedule.get_loops(schedule.get_block("S"))
    schedule.split(s, [None, 4])
    program.check(schedule.mod["main"])


@T.prim_func
def first_elements(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (6, 5))
    B = T.match_buffer(b, (6, 5))
    for i, j in T.grid(6, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i * 5 + j < 13)
            B[vi, vj] = A[vi, vj] * 2.0


def test_reorder_under_a_predicate() -> None:
    """A predicate says which iterations run, whatever their order."""
    schedule = tir.Schedule(first_elements, debug_mask="all")
    i, j = schedule.get_loops(schedule.get_block("B"))
    schedule.reorder(j, i)
    assert [schedule.get(one).loop_var.name for one in schedule.get_loops(schedule.get_block("B"))] == [
        "j",
        "i",
    ]

    def expected(a: np.ndarray) -> np.ndarray:
        return np.where(np.arange(30).reshape(6, 5) < 13, a * 2, 77.0)

    Program(first_elements, [(6, 5), (6, 5)], 1, expected).check(schedule.mod["main"])


def test_unit_loops_are_preserved() -> None:
    """Steps as later versions of TVM print them; loops of one iteration cannot be left out."""
    schedule = tir.Schedule(elementwise(12, 10).function)
    outer, inner = schedule.get_loops("B")
    parts = schedule.split(inner, factors=[None, 5], preserve_unit_iters=True)
    schedule.fuse(outer, parts[0], preserve_unit_iters=True)
    assert [int(schedule.get(loop).extent) for loop in schedule.get_loops("B")] == [24, 5]
    refused(
        schedule, lambda: schedule.split(parts[1], [5, 1], preserve_unit_iters=False), "keep their variables"
    )
