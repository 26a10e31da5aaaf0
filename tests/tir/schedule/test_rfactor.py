"""Reductions in two steps."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tir.schedule.programs import Program, elementwise, matmul, refused, row_maximum

import tilewright as tvm
from tilewright import te, tir
from tilewright.script import tir as T


@T.prim_func
def total(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    B = T.match_buffer(b, (16,))
    for i, k in T.grid(16, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 3.0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def total_in_two_steps(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    B = T.match_buffer(b, (16,))
    B_rf = T.alloc_buffer((4, 16))
    for i, k0, k1 in T.grid(16, 2, 4):
        with T.block("B_rf"):
            vk1, vi, vk0 = T.axis.remap("SSR", [k1, i, k0])
            with T.init():
                B_rf[vk1, vi] = 0.0
            B_rf[vk1, vi] = B_rf[vk1, vi] + A[vi, vk0 * 4 + vk1]
    for i, k1 in T.grid(16, 4):
        with T.block("B"):
            vk1, vi = T.axis.remap("RS", [k1, i])
            with T.init():
                B[vi] = 3.0
            B[vi] = B[vi] + B_rf[vk1, vi]


def test_rfactor() -> None:
    """Partial sums by the inner loop, then their sum; the initial value counts once."""
    schedule = tir.Schedule(total, debug_mask="all")
    block = schedule.get_block("B")
    _, k = schedule.get_loops(block)
    _, k1 = schedule.split(k, [None, 4])
    first = schedule.rfactor(k1, 0)
    assert schedule.get(first).name_hint == "B_rf" and schedule.get(block).name_hint == "B"
    tvm.ir.assert_structural_equal(schedule.mod["main"], total_in_two_steps)


@pytest.mark.parametrize("factor_axis", [0, 1, 2, -1, -3])
def test_the_new_dimension_goes_anywhere(factor_axis: int) -> None:
    """Before, between or after the others."""
    program = matmul(6, 8, 12)
    schedule = tir.Schedule(program.function, debug_mask="all")
    _, _, k = schedule.get_loops(schedule.get_block("C"))
    _, k1 = schedule.split(k, [None, 4])
    first = schedule.rfactor(k1, factor_axis)
    shape = [int(one) for one in schedule.get(first).writes[0].buffer.shape]
    expected = [6, 8]
    expected.insert(factor_axis if factor_axis >= 0 else factor_axis + 3, 4)
    assert shape == expected
    program.check(schedule.mod["main"])


def test_then_it_runs_in_parallel() -> None:
    """The factored loop is a data axis now."""
    program = matmul(6, 8, 12)
    schedule = tir.Schedule(program.function, debug_mask="all")
    _, _, k = schedule.get_loops(schedule.get_block("C"))
    k0, k1 = schedule.split(k, [None, 4])
    first = schedule.rfactor(k1, 2)
    schedule.reorder(k1, k0)
    schedule.vectorize(k1)
    schedule.decompose_reduction(first, k0)
    program.check(schedule.mod["main"])


@pytest.mark.parametrize("factors", [[None, 4], [4, None], [2, 8]])
def test_parts_that_do_not_divide(factors: list[int | None]) -> None:
    """Partial results that nothing is added to are initialised all the same."""
    program = row_maximum(6, 9)
    schedule = tir.Schedule(program.function, debug_mask="all")
    _, k = schedule.get_loops(schedule.get_block("B"))
    k0, k1 = schedule.split(k, factors)
    for loop in (k0, k1):
        copy = schedule.copy()
        copy.rfactor(loop, 1)
        program.check(copy.mod["main"])


def test_products_and_conditions() -> None:
    """A product of what a condition picks."""
    a = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    times = te.comm_reducer(lambda x, y: x * y, lambda dtype: tir.const(1, dtype), name="times")
    b = te.compute((4,), lambda i: times(a[i, k], axis=k, where=k >= 2), name="B")
    program = Program(te.create_prim_func([a, b]), [(4, 6), (4,)], 1, lambda x: np.prod(x[:, 2:], axis=1))
    schedule = tir.Schedule(program.function, debug_mask="all")
    _, loop = schedule.get_loops(schedule.get_block("B"))
    _, inner = schedule.split(loop, [None, 3])
    schedule.rfactor(inner, 0)
    program.check(schedule.mod["main"])


def test_refuses() -> None:
    """Loops over data, blocks that do not reduce, dimensions that are not there."""
    schedule = tir.Schedule(matmul().function)
    i, j, k = schedule.get_loops(schedule.get_block("C"))
    refused(schedule, lambda: schedule.rfactor(i, 0), "rfactor on loop i: block C does not reduce over it")
    refused(
        schedule,
        lambda: schedule.rfactor(k, 3),
        "the new buffer has 3 dimensions; 3 is the number of none of them",
    )
    fused = schedule.fuse(j, k)
    refused(schedule, lambda: schedule.rfactor(fused, 0), "is used by data axes and reduction axes alike")
    schedule = tir.Schedule(elementwise().function)
    i, _ = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.rfactor(i, 0), "block B is not a reduction: it has no initialisation")


def test_values_that_nobody_wrote() -> None:
    """A later block that reads more than the reduction writes makes the scope no pipeline."""

    @T.prim_func
    def program(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (16, 8))
        B = T.alloc_buffer((16,))
        C = T.match_buffer(c, (16,))
        for i, k in T.grid(8, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi]

    schedule = tir.Schedule(program)
    _, k = schedule.get_loops(schedule.get_block("B"))
    refused(
        schedule, lambda: schedule.rfactor(k, 0), "reads more of a buffer than the blocks before it write"
    )


def test_unknown_reductions() -> None:
    """Only what is known to be the same in parts is taken apart."""

    @T.prim_func
    def program(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16, 8))
        B = T.match_buffer(b, (16,))
        for i, k in T.grid(16, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] - A[vi, vk]

    schedule = tir.Schedule(program)
    _, k = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.rfactor(k, 0), "block B is not a sum, product, minimum or maximum")


def test_a_loop_of_one_iteration() -> None:
    """A loop that the values of the axes do not mention can be factored, too; axes of other loops stay as they are."""
    schedule = tir.Schedule(total, debug_mask="all")
    _, inner = schedule.split(schedule.get_loops(schedule.get_block("B"))[1], [None, 1])
    made = schedule.get(schedule.rfactor(inner, 0))
    assert [axis.var.name for axis in made.iter_vars] == ["v_k_1", "vi", "vk"]
    Program(total, [(16, 8), (16,)], 1, lambda a: a.sum(axis=1) + 3).check(schedule.mod["main"])


@pytest.mark.parametrize(("factor", "number", "as_predicate"), [(3, 0, True), (3, 1, True), (12, 1, False)])
def test_a_predicate_of_the_reduction(factor: int, number: int, as_predicate: bool) -> None:
    """A condition that holds where the partial results are initialised is a predicate of their block; another one is
    inside of it."""
    schedule = tir.Schedule(total, debug_mask="all")
    loops = schedule.split(schedule.get_loops(schedule.get_block("B"))[1], [None, factor])
    made = schedule.get_sref(schedule.rfactor(loops[number], 0))
    assert (str(schedule.state.realize(made).predicate) != "True") == as_predicate
    Program(total, [(16, 8), (16,)], 1, lambda a: a.sum(axis=1) + 3).check(schedule.mod["main"])
